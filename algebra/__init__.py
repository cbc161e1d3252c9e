"""What a query means: the multiset temporal algebra, each operator with its executable definition.

Start at `plan`, then read the operator families: `access`, `window`, `match`, `join`, `filter`,
`shape`, `group`, `graph`, `path`, `event`. `streams` has snapshots and the map from physical to
logical streams.

SPARQL's expressions on `terms` are in `expressions`, their functions in `functions`. Below these,
`values` says what a literal is worth (of `numeric`, `moments`, `durations`), `operators`, `casts`
and `order` what is done with it; `regex` and `iri` stand alone.
"""

if __name__ == "algebra":
    raise ImportError("this is a part of a package: import streamsparql.algebra instead")
