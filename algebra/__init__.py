"""What a query means: the multiset temporal algebra, each operator with its executable definition.

Start at `plan`, then read the operator families: `access`, `window`, `match`, `join`, `filter`,
`shape`, `group`, `graph`, `path`, `event`. `streams` has snapshots and the map from physical to
logical streams; `expressions`, `functions` and `values` are SPARQL's expressions on `terms`.
"""

if __name__ == "algebra":
    raise ImportError("this is a part of a package: import streamsparql.algebra instead")
