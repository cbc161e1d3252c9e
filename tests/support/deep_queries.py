"""Long and deeply nested group patterns, by construct; `SELECT * ` or `ASK ` precedes each."""

from __future__ import annotations

from collections.abc import Callable

from streamsparql.translator.lalr_parser import MAX_NESTING

LONG = 1_200
"""A length above Python's recursion limit; `FIVE_THOUSAND` has longer chains of some kinds."""


def _repeated(text: str, count: int = LONG) -> str:
    """Repeat a text; `{}` in it is replaced by the index of the copy."""
    return " ".join(text.replace("{}", str(number)) for number in range(count))


FIVE_THOUSAND = {
    "unions": "{ " + " UNION ".join(["{ ?s ?p ?o }"] * 5_000) + " }",
    "optionals": "{ ?s ?p ?o " + "OPTIONAL { ?s <q> ?v } " * 5_000 + "}",
    "disjunctions": "{ ?s ?p ?o FILTER(" + " || ".join(["?o = <o>"] * 5_000) + ") }",
    "sums": "{ ?s ?p ?o BIND(1 AS ?n) FILTER(" + " + ".join(["?n"] * 5_000) + " > 0) }",
    "path sequences": "{ ?s (" + "/".join(["<p>"] * 5_000) + ")? ?s }",
}
"""The kinds of chains that query generators write most, at a realistic length."""

CHAINS = {
    "unions": "{ " + " UNION ".join(["{ ?s ?p ?o }"] * LONG) + " }",
    "optionals": "{ ?s ?p ?o " + "OPTIONAL { ?s <q> ?v } " * LONG + "}",
    "minus": "{ ?s ?p ?o " + "MINUS { ?s <q> ?v } " * LONG + "}",
    "filters": "{ ?s ?p ?o " + _repeated("FILTER(?o != {})") + "}",
    "filters of exists": "{ ?s ?p ?o " + "FILTER EXISTS { ?s ?p ?v } " * LONG + "}",
    "binds": "{ ?s ?p ?o " + _repeated("BIND(?o AS ?v{})", 500) + "}",
    "groups": "{ " + "{ ?s ?p ?o } " * LONG + "}",
    "subqueries": "{ " + "{ SELECT ?s { ?s ?p ?o } } " * LONG + "}",
    "optionals in an exists": "{ ?s ?p ?o FILTER EXISTS { ?s ?p ?v "
    + "OPTIONAL { ?s <q> ?o } " * LONG
    + "} }",
    "disjunctions": "{ ?s ?p ?o FILTER(" + " || ".join(["?o = <o>"] * LONG) + ") }",
    "conjunctions": "{ ?s ?p ?o FILTER(" + " && ".join(["?o = <o>"] * LONG) + ") }",
    "sums": "{ ?s ?p ?o BIND(1 AS ?n) FILTER(" + " + ".join(["?n"] * LONG) + " > 0) }",
    "differences": "{ ?s ?p ?o FILTER(5" + " -1" * LONG + " < 0) }",
    "products": "{ ?s ?p ?o FILTER(5 -1" + " * 2" * LONG + " < 0) }",
    "options of IN": "{ ?s ?p ?o FILTER(?o IN (<o>, " + ", ".join(map(str, range(LONG))) + ")) }",
    "path sequences": "{ ?s " + "/".join(["<p>"] * LONG) + " ?o }",
    "path alternatives": "{ ?s " + "|".join(["<p>"] * LONG) + " ?o }",
    "closures of sequences": "{ ?s (" + "/".join(["<p>"] * LONG) + ")* ?o }",
    "closures of alternatives": "{ ?s (" + "|".join(["<p>"] * LONG) + ")* ?o }",
    "values": "{ ?s ?p ?o VALUES (?o ?x) { (<o> 1) " + _repeated("({} 1)") + " } }",
    "semicolons": "{ ?s ?p ?o " + "; ?p ?o " * LONG + "}",
    "commas": "{ ?s ?p ?o " + ", ?o " * LONG + "}",
    "members of a list": "{ ?s ?p (" + " 1" * LONG + ") }",
}
"""Chains without nesting; BINDs are fewer, because each adds a column to all later rows."""

SATISFIED = sorted(CHAINS.keys() - {"path sequences", "closures of sequences", "members of a list"})
"""The chains that have a solution over a graph whose only triple is <s> <p> <o>."""

EVENTS = "{ " + " SEQ ".join(["{ ?s ?p ?o }"] * LONG) + " }"
MIXED_EVENTS = "{ { ?s ?p ?o }" + " SEQ { ?s ?p ?o } UNION { ?s ?p ?o }" * (LONG // 2) + " }"

Nested = Callable[[int], str]


def _around(inner: str, before: str, after: str, brackets: int = 1) -> Nested:
    """Return a function that nests a text; each copy of `before` opens `brackets` brackets."""

    def nested(levels: int) -> str:
        return before * (levels // brackets) + inner + after * (levels // brackets)

    return nested


def _inside(before: str, nested: Nested, after: str, brackets: int) -> Nested:
    """Embed a nested text in another text, which itself opens `brackets` brackets."""
    return lambda levels: before + nested(levels - brackets) + after


NESTED: dict[str, Nested] = {
    "groups": _around("", "{ ?s ?p ?o ", "}"),
    "empty groups": _around("", "{", "}"),
    "groups before others": _inside("", _around("", "{ ", "{ ?s ?p ?o } }"), "", 1),
    "optionals": _inside("{ ?s ?p ?o ", _around("", "OPTIONAL { ?s ?p ?o ", "}"), "}", 1),
    "minus": _inside("{ ?s ?p ?o ", _around("", "MINUS { ?s ?p ?o ", "}"), "}", 1),
    "unions": _inside("{ ", _around("{ }", "{ ?s ?p ?o } UNION { ", "}"), "}", 2),
    "exists": _inside("{ ?s ?p ?o ", _around("", "FILTER EXISTS { ?s ?p ?o ", "}"), "}", 1),
    "not exists": _inside(
        "{ ?s ?p ?o ", _around("", "FILTER(!EXISTS { ?s ?p ?o ", "})", 2), "}", 1
    ),
    "optionals of exists": _inside(
        "{ ?s ?p ?o ", _around("", "OPTIONAL { ?s ?p ?o FILTER EXISTS { ?s ?p ?o ", "}}", 2), "}", 1
    ),
    "graphs": _inside("{ ", _around("?s ?p ?o", "GRAPH <g> { ", "}"), "}", 1),
    "graph variables": _inside("{ ", _around("?s ?p ?o", "GRAPH ?g { ", "}"), "}", 1),
    "subqueries": _inside("{ ", _around("?s ?p ?o", "{ SELECT * WHERE { ", "} }", 2), "}", 1),
    "brackets": _inside("{ ?s ?p ?o FILTER", _around("true", "(", ")"), "}", 1),
    "negations": _inside("{ ?s ?p ?o FILTER(", _around("true", "!(", ")"), ")}", 2),
    "functions": _inside("{ ?s ?p ?o FILTER(", _around("?o", "STR(", ")"), " = 'o')}", 2),
    "coalesce": _inside("{ ?s ?p ?o FILTER(", _around("?o", "COALESCE(", ")"), " = <o>)}", 2),
    "conditions": _inside(
        "{ ?s ?p ?o FILTER(", _around("?o", "IF(?o = 1, 2, ", ")"), " = <o>)}", 2
    ),
    "sums": _inside("{ ?s ?p ?o FILTER(", _around("1", "1 + (", ")"), " > 3)}", 2),
    "disjunctions": _inside("{ ?s ?p ?o FILTER(", _around("true", "?o = 3 || (", ")"), ")}", 2),
    "memberships": _inside(
        "{ ?s ?p ?o FILTER(", _around("?o", "true IN (?o = <o>, ", ")"), ")}", 2
    ),
    "paths": _inside("{ ?s ", _around("<p>", "(", ")*"), " ?o }", 1),
    "inverse paths": _inside("{ ?s ", _around("<p>", "^(", ")"), " ?o }", 1),
    "alternative paths": _inside("{ ?s ", _around("<p>", "(<q>|", ")"), " ?o }", 1),
    "sequences of paths": _inside("{ ?s (", _around("<p>", "(<q>/", ")"), ")* ?o }", 2),
    "blank nodes": _inside("{ ?s ?p ", _around("1", "[ <p> ", "]"), "}", 1),
    "lists": _inside("{ ?s ?p ", _around("1", "( ", ")"), "}", 1),
    "binds": _inside("", _around("", "{ BIND(1 AS ?v) ", "}"), "", 1),
}
"""Functions from the number of brackets that are open at the deepest point to a text."""

DEEP = {name: nested(MAX_NESTING) for name, nested in NESTED.items()}
"""The deepest accepted texts; where a level opens two brackets, up to one bracket less."""
