"""Queries to which each rewrite rule applies, by the name of the rule."""

from __future__ import annotations

SECONDS = '"PT0.00{}S"^^<http://www.w3.org/2001/XMLSchema#duration>'
SHORT = f"getDURATION() < {SECONDS.format(5)}"
ENTAILED = {"match_below_distinct"}
"""The rules that apply to plans with entailment only."""

WINDOW = "FROM STREAM :s WINDOW RANGE 7 MS SLIDE 2 MS "
BRACKET = "FROM STREAM :s [RANGE 7ms STEP 2ms] "
QUERIES = {
    "absence_before": [
        "SELECT * { { ?x :p ?y } OPTIONALSEQ { ?x :q ?z } FILTER(!BOUND(?y)) }",
        "SELECT * { { ?x :p ?y . ?y ?r ?w FILTER(?w != ?z) } OPTIONALSEQ { { ?x :q ?z } SEQ { ?x ?p ?v }"
        f" }} FILTER(!BOUND(?w) && ?v = 1 && {SHORT}) }}",
    ],
    "absence_in_between": [
        "SELECT * { { { ?x ?l ?y } SEQ { ?x ?m ?z } } EQUALSOPTIONAL"
        " { { ?x ?l ?y } SEQ { ?x :q ?b } SEQ { ?x ?m ?z } } FILTER(!BOUND(?b)) }",
        "SELECT * { { { ?x :p ?y } SEQ { ?y ?m ?z } SEQ { ?x ?r ?w } } EQUALSOPTIONAL"
        " { { ?x :p ?y } SEQ { { ?y ?m ?z } SEQ { ?w ?l ?b } } SEQ { ?x ?r ?w } }"
        f" FILTER(!BOUND(?b) && {SHORT}) }}",
    ],
    "order_sequences": [
        "SELECT * { { ?x ?l ?y } SEQ { ?x ?m ?z } SEQ { ?w :p 1 } FILTER(?z = ?w) }",
        "SELECT * { { ?x ?l ?y } SEQ { ?y ?m ?z } SEQ { ?x :p ?w } SEQ { ?x ?r 1 }"
        f" FILTER(?z != ?w) FILTER(?l != ?r || ?m = ?l) FILTER({SHORT}) }}",
    ],
    "prune_events": [
        "SELECT DISTINCT ?x { { ?x ?l ?y } SEQ { ?x ?m ?z } SEQ { ?w ?l 1 } FILTER(?z != ?w) }",
        "SELECT DISTINCT ?x (?v + 1 AS ?n) { { ?x :p ?y . ?y ?l ?v } OPTIONALSEQ { { ?x ?m ?z } UNION"
        " { ?x :q ?w } } FILTER(?y != ?x || !BOUND(?y)) }",
        "ASK { { ?x ?l ?y FILTER(?y != ?z) } OPTIONALSEQ { ?x ?m ?z } OPTIONAL { ?z :p ?w } }",
        "ASK { { ?x ?l ?y BIND(?y + 1 AS ?v) } EQUALSOPTIONAL { ?z ?l ?w } FILTER(!BOUND(?w)) }",
    ],
    "fold_constants": [
        "SELECT ?x (1 + 2 AS ?v) { ?x :p ?y FILTER(?y = 1 + 1 || 1 > 2) }",
        "SELECT ?x { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z < 3 - 1 && true) } }",
        "SELECT ?x { ?x :p ?y FILTER(COALESCE(1/0, ?y, 3) = IF(true, 1, ?x)) } ORDER BY (1 + ?y - 1)",
        "SELECT (SUM(?y * (2 + 1)) AS ?v) { ?x :p ?y FILTER(1 IN (1, 2) && !(1 = 2)) }",
    ],
    "drop_constant_conditions": [
        "SELECT * { ?x :p ?y FILTER(true) }",
        "SELECT * { ?x :p ?y FILTER(?y = 1 && false) }",
        "SELECT * { ?x :p ?y FILTER(1/0) }",
        "SELECT * { ?x :p ?y FILTER(1/0 || ?y = 1) }",
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(false) } }",
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(true && EXISTS { ?z :p ?y }) } }",
        "SELECT * { ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(1/0) } }",
    ],
    "propagate_empty": [
        "SELECT * { ?x :p ?y VALUES ?y {} }",
        "SELECT * { { ?x :p ?y } UNION { VALUES ?y {} } }",
        "SELECT * { ?x :p ?y OPTIONAL { VALUES ?z {} } MINUS { VALUES ?x {} } }",
        "SELECT ?x { ?x :p ?y FILTER NOT EXISTS { VALUES ?z {} } BIND(EXISTS { VALUES ?x {} } AS ?v) }",
        "SELECT * { ?x :p ?y { SELECT ?x { ?x :q ?z } LIMIT 0 } }",
        "SELECT ?x (COUNT(*) AS ?n) { VALUES ?x {} } GROUP BY ?x",
    ],
    "fold_tables": [
        "SELECT * { VALUES ?x { 1 2 2 } VALUES ?y { 1 UNDEF } ?z :p ?y }",
        "SELECT * { VALUES ?x { 1 2 } FILTER(?x > 1) BIND(?x + 1 AS ?v) }",
        "SELECT DISTINCT ?x { VALUES ?x { 1 2 1 } }",
        "SELECT (COUNT(?x) AS ?n) { VALUES ?x { 1 UNDEF } }",
        "SELECT * { VALUES ?x { 1 2 } OPTIONAL { VALUES (?x ?y) { (1 3) (1 4) } } }",
    ],
    "drop_units": ["SELECT * { {} ?x :p ?y {} }", "SELECT * { VALUES ?z { UNDEF } ?x :p ?y }"],
    "merge_filters": [
        "SELECT * { ?x :p ?y FILTER(?y > 1) FILTER(?y < 3) FILTER(?x != ?y) }",
        "SELECT * { ?x :p ?y FILTER EXISTS { ?y :q ?z FILTER(?z > 1) FILTER(?z < ?x) } }",
    ],
    "push_filters_into_joins": [
        "SELECT * { ?x :p ?y . ?x :q ?z FILTER(?y > 1 && ?x = :a && ?z < ?y) }",
        "SELECT * { { ?x :p ?y } { ?x :q ?z OPTIONAL { ?x :r ?y } } FILTER(?y > 1) }",
        "SELECT * { ?x :p ?y FILTER EXISTS { ?x :q ?z . ?z :r ?w FILTER(?z = ?y || ?w = 1) } }",
        f"SELECT * {{ {{ ?x :p ?y }} SEQ {{ ?x :q ?z }} FILTER(?y = 1 && ?z != ?y && {SHORT}) }}",
        "SELECT * { { ?x :p ?y } EQUALS { ?x :q ?z OPTIONAL { ?z :p ?w } } FILTER(!BOUND(?w)) }",
        "SELECT * { { { ?x :p ?y } SEQ { ?v ?m ?z } } EQUALSOPTIONAL { { ?x :p ?y } SEQ { ?y ?l ?b } SEQ"
        " { ?v ?m ?z } } FILTER(!BOUND(?b) && ?y = 1 && ?z != ?v && ?v != ?x) }",
    ],
    "push_filters_into_prefixes": [
        f"SELECT * {{ ?x :p ?y . ?x :q ?z . ?z ?r ?w FILTER(?y = ?z && {SHORT}) {{ ?x ?l ?v }} SEQ"
        " { ?x ?m ?u } }",
        "SELECT * { ?x :p ?y . ?x :q ?z . ?z :r ?w FILTER(?y = ?z) }",
        "SELECT * { ?x :p ?y . ?y :q ?z . ?z ?r ?w FILTER(?x != ?z) FILTER(?x = ?w || ?r = :p) }",
    ],
    "push_filters_left": [
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z } FILTER(?y = 1 && BOUND(?z)) }",
        "SELECT * { ?x :p ?y MINUS { ?x :q ?z } FILTER(?z = 1 || ?y = 1) }",
        "SELECT * { ?x :p ?y FILTER EXISTS { ?x :q ?z } FILTER NOT EXISTS { ?y :q ?x } FILTER(?y > 1) }",
        f"SELECT * {{ {{ ?x :p ?y }} OPTIONALSEQ {{ ?x :q ?z }} FILTER(?z = 1 && ?y != ?z && {SHORT}) }}",
        f"SELECT * {{ {{ ?x :p ?y }} EQUALSOPTIONAL {{ ?x :q ?z }} FILTER(?y = 1 && {SHORT}) }}",
        "SELECT * { { ?x :p ?y } SEQ { ?x :q ?z } OPTIONAL { ?x :r ?w } FILTER(?z != ?y && BOUND(?w)) }",
    ],
    "push_filters_into_unions": [
        "SELECT * { { ?x :p ?y } UNION { ?x :q ?z } FILTER(?y = 1 || ?z = 2) }",
        "SELECT * { ?x :p ?w FILTER EXISTS { { ?x :p ?y } UNION { ?y :q ?z } FILTER(?y = ?w) } }",
    ],
    "push_filters_down": [
        "SELECT * { ?x :p ?y BIND(?y + 1 AS ?v) FILTER(?y = 1 && ?v > ?y) }",
        "SELECT * { { SELECT ?x { ?x :p ?y } } FILTER(?x = :a && ?y = 1) }",
        "SELECT * { { SELECT DISTINCT ?x ?y { ?x :p ?y } ORDER BY ?y } FILTER(?x = :a) }",
        "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x HAVING(?x = :a && ?n > 1)",
        "SELECT * { ?x :p ?y BIND(EXISTS { ?x :q ?z } AS ?v) FILTER(?y = 1 || ?v) FILTER(?x = :a) }",
        "SELECT * { ?x :p ?w FILTER EXISTS { ?x :q ?z BIND(?w AS ?y) FILTER(?z = ?w && ?y = 1) } }",
    ],
    "push_filters_below_windows": [
        "SELECT * FROM STREAM :s WINDOW RANGE 9 MS FIXED { ?x :p ?y FILTER(?y > 1) WINDOW RANGE 7 MS SLIDE 2 MS }",
    ],
    "push_left_join_conditions": [
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z > 1 && ?z != ?y) } }",
        "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?x = :a) FILTER EXISTS { ?z :p ?y } } }",
        "SELECT * { OPTIONAL { ?x :p ?y } OPTIONAL { ?z :q ?y FILTER(?y > 1) } }",
        "SELECT * { ?w :p ?w FILTER EXISTS { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?z = ?w) } } }",
        f"SELECT * {{ {{ ?x :p ?y FILTER(?y = 1 && ?y != ?z && {SHORT}) }} OPTIONALSEQ {{ ?x :q ?z }} }}",
        "SELECT * { { ?x :p ?y } EQUALSOPTIONAL { ?x :q ?z FILTER(?z = 1) } }",
    ],
    "push_slices": ["SELECT ?x { ?x :p ?y } ORDER BY ?y LIMIT 2 OFFSET 1"],
    "order_joins": [
        "SELECT * { ?x ?r ?y . ?z :p 1 . ?y :q ?z }",
        "SELECT * { { ?x ?r ?y OPTIONAL { ?y :p ?w } } { ?w :q 1 } VALUES ?y { 1 :a } }",
        "SELECT * FROM NAMED :g1 "
        + WINDOW
        + "{ ?x :p ?y GRAPH :g1 { ?y ?q ?z } GRAPH :g1 { ?z :r ?w } }",
    ],
    "prune_columns": [
        "SELECT ?x { ?x :p ?y . ?y :q ?z . ?z :r ?w }",
        "SELECT (COUNT(*) AS ?n) { ?x :p ?y OPTIONAL { ?y :q ?z FILTER(EXISTS { ?x :r ?z }) } }",
        "SELECT ?y { { ?x :p ?y } UNION { ?y :q ?z } MINUS { ?x :r ?w } }",
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?x :p ?y . ?y :q [] }",
        "ASK { ?x :p ?y . ?y :q ?z }",
        "CONSTRUCT { ?x :r ?z } { ?x :p ?y . ?y :q ?z }",
        "DESCRIBE ?x { ?x :p ?y . ?y :q ?z }",
    ],
    "drop_unused_bindings": [
        "SELECT ?x { ?x :p ?y BIND(?y + 1 AS ?v) BIND(EXISTS { ?x :q ?y } AS ?w) }",
        "SELECT ?x { { SELECT ?x (COUNT(*) AS ?n) (RAND() AS ?v) { ?x :p ?y } GROUP BY ?x } }",
    ],
    "drop_projections": ["SELECT * { ?x :p ?y { SELECT ?y ?z { ?y :q ?z } } }"],
    "merge_projections": ["SELECT ?x { { SELECT ?x ?y { ?x :p ?y } } }"],
    "drop_distinct": [
        "SELECT DISTINCT ?x { { SELECT DISTINCT ?x ?y { ?x :p ?y } } }",
        "SELECT DISTINCT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x",
        "SELECT DISTINCT ?x { { { SELECT DISTINCT ?x { ?x :p ?y } } } UNION { ?x :q ?y } }",
        "SELECT DISTINCT * FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x :p ?y . ?y :q ?z }",
    ],
    "match_below_distinct": [
        f"SELECT ?x ?c {BRACKET}{{ ?x a ?c . ?x :p ?y }}",
        f"SELECT ?x {BRACKET}{{ ?x :p ?y FILTER NOT EXISTS {{ ?x a ?y . ?y a :a }} }}",
        f"SELECT DISTINCT ?x ?y {BRACKET}{{ ?x a :a ; :q ?y }}",
        f"SELECT ?x (timestamp(?x) AS ?v) {BRACKET}{{ ?x a ?c }}",
    ],
    "group_annotations": [
        "SELECT DISTINCT ?x ?n FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x :p ?y }"
        " AGGREGATE { (?n, COUNT, {?x}) }",
        "SELECT DISTINCT ?n ?m ?x FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x ?l ?y OPTIONAL { ?x :q ?z } }"
        " AGGREGATE { (?n, SUM(?y), {?z, ?x}) FILTER(?n > 1) } AGGREGATE { (?m, MAX(?l), {?x, ?z}) }",
        "SELECT DISTINCT ?n FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x :p ?y }"
        " AGGREGATE { (?m, MIN(?x), {?y}) } AGGREGATE { (?n, COUNT(?y), {?x}) }",
        "SELECT DISTINCT ?x (?n * 2 AS ?m) FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x :p ?y"
        " FILTER EXISTS { SELECT DISTINCT ?y ?k { ?y :q ?z } } } AGGREGATE { (?n, COUNT(?y), {?x}) }",
        "CONSTRUCT { ?x :has ?n . ?x :r :a } FROM STREAM :s [RANGE 7ms STEP 2ms] { ?x ?l ?y }"
        " AGGREGATE { (?n, COUNT, {?x, ?l}) }",
    ],
    "push_aggregates_into_unions": [
        "SELECT ?m ?x (SUM(?y) AS ?n) { { ?x :p ?y BIND(1 AS ?m) } UNION { ?x :q ?y BIND(2 AS ?m) }"
        " UNION { ?x :r ?y VALUES ?m { 1 } } } GROUP BY ?m ?x",
        "SELECT ?g ?x ?n FROM NAMED STREAM :s [RANGE 7ms STEP 2ms] FROM NAMED STREAM :g1 [RANGE 5ms"
        " TUMBLING] FROM NAMED :g2 { GRAPH ?g { ?x ?l ?y } } AGGREGATE { (?n, AVG(?y), {?l, ?g}) }",
        "SELECT ?z (COUNT(*) AS ?n) (MAX(?y) AS ?m) (SAMPLE(?y) AS ?o) (COUNT(?y) AS ?k)"
        " (AVG(STRLEN(?y)) AS ?a) FROM STREAM :s [RANGE 4ms TUMBLING]"
        " { { ?y :p ?x . ?z :q ?x } UNION { ?z :q ?v OPTIONAL { ?v :r ?y } } } GROUP BY ?z",
        "SELECT ?z (MAX(?y) AS ?n) FROM STREAM :s [RANGE 4ms TUMBLING]"
        " { { ?y :p ?x . ?z :q ?x } UNION { ?y :p ?z } } GROUP BY ?z",
    ],
    "push_aggregates_into_joins": [
        "SELECT ?z (COUNT(*) AS ?n) (MIN(DISTINCT ?y) AS ?m) (SUM(STRLEN(?y)) AS ?k)"
        " FROM STREAM :s [RANGE 4ms TUMBLING] { ?y :p ?x . ?z :q ?x } GROUP BY ?z",
        "SELECT (COUNT(?y) AS ?n) (AVG(STRLEN(?y)) AS ?k) FROM NAMED :g1"
        " FROM STREAM :s [RANGE 4ms TUMBLING] { ?y :p ?x GRAPH :g1 { ?z :q ?x } }",
        "SELECT ?z (SAMPLE(?y) AS ?n) (MAX(?y) AS ?m) FROM STREAM :s [RANGE 4ms TUMBLING]"
        " { ?y :p ?x . ?v :q ?x VALUES (?w ?z) { (:a 1) (UNDEF 2) (:a 1) } } GROUP BY ?z",
    ],
    "drop_reduced": ["SELECT REDUCED ?x { ?x :p ?y }"],
    "drop_order": [
        "SELECT * { ?x :p ?y { SELECT ?y { ?y :q ?z } ORDER BY ?z } }",
        "SELECT (COUNT(*) AS ?n) { { SELECT ?x { ?x :p ?y } ORDER BY ?x } }",
        "CONSTRUCT { ?x :r ?y } { ?x :p ?y } ORDER BY ?x",
    ],
    "simplify_existence_tests": [
        "ASK { { SELECT DISTINCT ?x { ?x :p ?y } ORDER BY ?y } }",
        "SELECT * { ?x :p ?y FILTER EXISTS { SELECT DISTINCT ?x ?z { ?x :q ?z } } }",
    ],
}
