"""The meaning of queries: a temporal multiset algebra whose operators execute their definitions.

Start at `plan`, then read the operator families: `access`, `window`, `match`, `join`, `filter`,
`shape`, `group`, `graph`, `path`, `event`. `streams` defines snapshots and the map from physical to
logical streams. `rules` has the rewrite rules, `rewrite` runs them, `cost` estimates cardinalities.

SPARQL expressions over `terms` are in `expressions`, their functions in `functions`. In `xsd`,
`values` maps literals to values (`numeric`, `moments`, `durations`), and `literal_operators` and
`casts` compute with them; `order` sorts terms.
"""

if __name__ == "algebra":
    raise ImportError("this is a part of a package: import streamsparql.algebra instead")
