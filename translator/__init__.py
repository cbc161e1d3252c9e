"""From text to algebra, and back: grammar, syntax tree, checks, `create_plan`, `unparse`."""

if __name__ == "translator":
    raise ImportError("this is a part of a package: import streamsparql.translator instead")
