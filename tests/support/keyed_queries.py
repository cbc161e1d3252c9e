"""Queries whose streams can be partitioned by a key, as templates for `families.Writer`."""

from __future__ import annotations

KEYED = {
    "a join": "SELECT * <stream>{ ?x :p ?y . ?x :q ?z }",
    "a join whose variable is at different positions": "SELECT * <stream>{ ?x :p ?y . ?z :q ?x }",
    "OPTIONAL": "SELECT * <stream>{ ?x :p ?y OPTIONAL { ?x :q ?z } }",
    "MINUS": "SELECT ?x ?y <stream>{ ?x ?l ?y MINUS { ?x :q ?z } }",
    "EXISTS": "SELECT * <stream>{ ?x :p ?y FILTER EXISTS { ?x :q ?z } }",
    "a group": "SELECT ?x (COUNT(*) AS ?c) (SUM(?n) AS ?s) <stream>{ ?x :p ?n } GROUP BY ?x",
    "DISTINCT": "SELECT DISTINCT ?x <stream>{ ?x ?l ?y }",
    "UNION": "SELECT ?x <stream>{ { ?x :p ?y } UNION { ?y :q ?x } }",
}
