"""Queries that the grammar accepts, by language."""

from __future__ import annotations

ACCEPTED = {
    "SPARQL": [
        "SELECT (?a-1 AS ?x) (?a-?b AS ?y) (?a-abs(?b) AS ?z) { ?s ?a ?b FILTER(?a< ?b&&?b>3) }",
        "PREFIX e: <e> SELECT (?a-e:b AS ?q) (?a+1-2 AS ?u) (?a -1*3 AS ?v) { ?s ?a ?b, ?c }",
        "SELECT * { ?s <p>+ ?o ; <q>* 5 ; ^<r>? +5 , -3.0e1 . ?s !(<a>|^<b>) ?x }",
        "SELECT * { ?s <p> ( 1 [ <q> () ] ) ; a [] . [ a [] ] . ( 1 ) <p> 2 }",
        "SELECT * { VALUES (?x ?y) { (1 UNDEF) } VALUES ?z { 1 2 } VALUES () { () } }",
        "SELECT (GROUP_CONCAT(DISTINCT ?x ; SEPARATOR = ', ') AS ?g) { ?x ?y ?z } GROUP BY (1 AS ?k)",
        "ASK { FILTER NOT EXISTS { ?s ?p ?o } FILTER(?x NOT IN (1, 2) || !BOUND(?y)) }",
        "DESCRIBE * { ?s ?p '''it's \"long\"''' }",
        "CONSTRUCT WHERE { ?s ?p ?o . ?o ?q ?r . } LIMIT 5 OFFSET 2",
        "SELECT * {} # a comment at the end",
        "\ufeffSELECT * {}",
    ],
    "Streaming SPARQL": [
        "SELECT * FROM STREAM <s> WINDOW RANGE 30 MINUTE SLIDE WHERE { ?x <p> ?y }",
        "SELECT * FROM NAMED STREAM <s> WINDOW RANGE 10 S SLIDE 2 S { GRAPH <s> { ?s ?p ?o } }",
        "SELECT * FROM STREAM <s> WINDOW RANGE 10 FIXED FROM <static> WHERE { ?s ?p ?o }",
        "SELECT * FROM STREAM <s> WINDOW ELEMS 1500 { ?s ?p ?o }",
        "SELECT * FROM STREAM <s> WINDOW RANGE 1000 { ?s ?p ?o . WINDOW RANGE 5 MINUTES FIXED }",
        "ASK FROM STREAM <s> { { ?s ?p ?o WINDOW ELEMS 15 } UNION { ?s ?q ?o } WINDOW ELEMS 1 }",
        "SELECT * FROM STREAM <s> { { SELECT ?s { ?s ?p ?o } LIMIT 3 WINDOW ELEMS 2 } }",
        """PREFIX elems: <e> PREFIX window: <w> SELECT * FROM STREAM window:elems WINDOW ELEMS 5
           { ?window window:range elems:slide . elems:a window: ?elems WINDOW ELEMS 5}""",
    ],
    "C-SPARQL": [
        """REGISTER QUERY Q COMPUTED EVERY 5m AS PREFIX t: <http://t/> SELECT DISTINCT ?d ?passages
           FROM STREAM <http://s.trdf> [RANGE 30m STEP 5m] WHERE { ?t t:in ?d }
           AGGREGATE { (?passages, COUNT, {?d}) FILTER(?passages > 3) }""",
        "PREFIX p: <p> REGISTER STREAM A-1.b AS CONSTRUCT { ?d p:n ?o } FROM STREAM <s> [RANGE 1h30m STEP 10 m] { ?d p:o ?o }",
        "REGISTER QUERY COUNT AS ASK FROM STREAM <s> [RANGE 24h TUMBLING] { [ <p> [ <range> 5 ] ] <q> [] }",
        "SELECT ?a, ?b FROM NAMED STREAM <t> [RANGE TRIPLES 100] { GRAPH ?g { ?a ?b timestamp: } }".replace(
            "timestamp:", "<timestamp>"
        ),
        "SELECT ?total-sensor FROM STREAM <s> [range 5000ms step 5s] { ?total-sensor <p> ?x-2 }".replace(
            "?x-2", "?x"
        ),
        "FROM STREAM <s> [RANGE 1m STEP 1s] SELECT ?x WHERE { ?x <p> ?y FILTER(timestamp(?x) > timestamp(?y, <s>)) }",
    ],
    "CQELS": [
        "SELECT ?l FROM NAMED <http://f/> WHERE { STREAM <http://s> [NOW] { ?p <at> ?l } GRAPH <http://f/> { ?l <c> ?m } }",
        "SELECT * FROM NAMED <s> [RANGE 30 seconds] as ?w FROM NAMED <x> [NOW] AS ?n WHERE { GRAPH ?w { ?s ?p ?o } GRAPH ?n { ?s ?p ?q} }",
        "select * where { stream <s> [range 3s ] {?s ?p [ <q> 1 ]} . stream <t> [TRIPLES 5] {?a ?b ?c} STREAM <t> [RANGE 15s SLIDE 5s] {} STREAM <all> [ALL] {?q ?r ?z}}",
    ],
    "EP-SPARQL": [
        "SELECT ?c WHERE { { ?a ?b ?c } EQUALS { ?c ?d ?e } OPTIONALSEQ { ?e ?f ?g } EQUALSOPTIONAL { ?g ?h ?i } UNION { ?j ?k ?l } }",
        "SELECT ?c WHERE { ?c <down> 10 } SEQ { ?c <down> 5 } FILTER (getSTARTTIME() < getENDTIME()) LIMIT 2",
        "PREFIX seq: <s> PREFIX equals: <e> SELECT * { ?s seq:a equals:b . { ?s seq: equals: } SEQ { ?seq ?equals seq:seq } }",
        "SELECT ?sum / ?count AS ?average (?next AS ?prev + 1) { { ?s ?sum ?count } SEQ { ?s ?p ?prev } }",
    ],
    "RSP-QL": [
        "REGISTER RSTREAM <out> AS SELECT ?s FROM NAMED WINDOW <w> ON <s> [RANGE PT10S STEP PT5S] WHERE { WINDOW <w> { ?s ?p ?o } }",
        "PREFIX : <x> REGISTER RStream <o> AS SELECT (AVG(?v) AS ?a) FROM NAMED WINDOW :w1 ON STREAM :s [RANGE 10 STEP 2] { WINDOW :w1 { ?x :v ?v } }",
        "PREFIX : <x> REGISTER ISTREAM :o AS PREFIX q: <q> CONSTRUCT { ?a q:b ?c } FROM <tbox> FROM NAMED WINDOW :w ON :s [RANGE P1DT2H30M STEP PT0.5S] FROM NAMED WINDOW :v ON :s [ELEMENTS 100] WHERE { WINDOW ?w { ?a :b ?c } GRAPH :g { ?c a :D } OPTIONAL { WINDOW :v { ?c :e ?f } } }",
        "REGISTER RStream SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT10S TUMBLING] WHERE { WINDOW <w> { ?s ?p ?o } }",
        "SELECT ISTREAM DISTINCT ?s FROM NAMED WINDOW ON STREAM <s> [RANGE PT1H STEP PT1H] AS <w> { WINDOW <w> { ?s ?p ?o } }",
        "CONSTRUCT DSTREAM { ?s ?p ?o } FROM NAMED WINDOW <w> ON <s> [RANGE PT1H STEP PT1H] { WINDOW <w> { ?s ?p ?o } }",
    ],
}
