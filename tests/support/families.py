"""Random queries about one kind of operator each: a family is a list of templates.

`support/generate.py` combines all features at random. A family covers one operator, in the forms
that its implementation distinguishes: one side static, a condition over both sides, a window on one
side. The method of `Writer` of that name fills the placeholder `<name>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

PREFIX = "PREFIX : <http://e/>\n"

_TABLE = """
windows
    SELECT * <stream>{ <triple><inside>}
    SELECT * <stream>{ <triple>{ <triple>{ <triple><window>} <inside>} }
    SELECT * FROM STREAM :s <bracket> { ?x ?l ?y }
    SELECT * { <block> { ?x ?l ?y } }
    SELECT * FROM NAMED WINDOW :w ON :s <bracket> FROM NAMED WINDOW :u ON :s <bracket> {
        WINDOW :w { <triple>} WINDOW ?g { <triple>} }
joins
    SELECT * <stream>{ <triple><triple><filter>}
    SELECT * <stream>{ <triple><triple><triple><filter>}
    SELECT ?x <stream>{ <triple><triple>{ <some>} }
    SELECT * { <block> { <triple><triple>} <block> { <triple>} }
chains
    SELECT * <stream>{ <triple><triple><triple><triple>}
    SELECT * <stream>FROM NAMED :g2 { <triple>GRAPH :g2 { <triple>} <triple>GRAPH :g2 { <triple>} }
    SELECT ?x ?n <stream>{ <triple>{ <triple>OPTIONAL { <triple>} } <triple><filter>}
    SELECT ?x <stream>{ <triple>{ SELECT ?x ?y { <triple><triple>} } <triple>}
    SELECT * { <block> { <triple>} <block> { <triple>} <block> { <triple>} }
    SELECT * <stream>{ <triple>VALUES (?x ?n) { (:a UNDEF) (UNDEF 1) } <triple>}
    SELECT * <stream>{ <triple>FILTER EXISTS { <triple><triple><triple>} }
    SELECT * <stream>{ <triple>FILTER EXISTS { <triple><triple>{ <triple>OPTIONAL { <triple>} } } }
    SELECT ?x ?z FROM STREAM :s <bracket> { ?x :p ?y . ?y ?l ?z . ?z ?m ?n
        FILTER(timestamp(?x) >= timestamp(?z)) }
unions
    SELECT * <stream>{ <triple>{ <some>} UNION { <some>} UNION { <some><inside>} <filter>}
    SELECT ?x ?y <stream>{ { <some>} UNION { <some>} }
optionals
    SELECT * <stream>{ <triple>OPTIONAL { <some>} }
    SELECT * <stream>{ <triple>OPTIONAL { <some>FILTER(<test>) } <filter>}
    SELECT * <stream>{ <some>OPTIONAL { <triple>OPTIONAL { <some>} <filter>} }
    SELECT * <stream>{ <some>OPTIONAL { <triple>} OPTIONAL { <some><inside>} }
    SELECT ?x ?n <stream>{ { <triple>OPTIONAL { <triple>} } { <triple>OPTIONAL { <some>} } }
    SELECT * { <block> { <triple>} OPTIONAL { <block> { <some>} <filter>} }
    SELECT * <stream>{ OPTIONAL { <some>} OPTIONAL { <triple>} }
minus
    SELECT * <stream>{ <some>MINUS { <some><inside>} }
    SELECT * <stream>{ <triple>OPTIONAL { <triple>} MINUS { <triple>OPTIONAL { <triple>} } }
    SELECT * <stream>{ <some>MINUS { <triple>MINUS { <triple>} } }
    SELECT * FROM STREAM :s <bracket> { <some>MINUS { <some>} }
exists
    SELECT * <stream>{ <some>FILTER <exists> }
    SELECT * <stream>{ <some>FILTER NOT EXISTS { <triple>FILTER(<test>) <inside>} }
    SELECT * <stream>{ <some>FILTER(<test> || <exists>) }
    SELECT * <stream>{ <triple>BIND(<exists> AS <new>) <filter>}
    SELECT * <stream>{ <triple>OPTIONAL { <triple>FILTER <exists> } }
    SELECT * <stream>{ <some>FILTER EXISTS { <triple>FILTER <exists> } }
    SELECT * <stream>{ <triple>FILTER EXISTS { <triple>OPTIONAL { <triple>FILTER(<test>) } }
        }
    SELECT * <stream>{ <triple>FILTER EXISTS { SELECT ?x { <triple><triple>} <slice> } }
    SELECT ?x (COUNT(*) AS ?c) <stream>{ <some>} GROUP BY ?x HAVING (<exists>)
values
    SELECT * <stream>{ <triple>BIND(<value> AS <new>) BIND(<var> + 1 AS <new>) <filter>}
    SELECT * <stream>{ VALUES (?x ?n) { (:a UNDEF) (UNDEF 1) (:b 2) (:b 2) } <some>}
    SELECT (IF(<test>, <var>, <value>) AS ?a) (COALESCE(<var>, <var>, 0) AS ?b) <stream>{
        <some>}
    SELECT (CONCAT(STR(<var>), "!") AS ?a) <stream>{ <triple>FILTER(<var> IN (<value>,
        <value>)) }
sets
    SELECT DISTINCT ?x ?n <stream>{ <some>}
    SELECT REDUCED ?x <stream>{ <some>}
    SELECT * <stream>{ <triple>{ SELECT DISTINCT ?x { <some>} } }
    SELECT DISTINCT ?n { <block> { <triple>} <block> { <triple>} }
groups
    SELECT ?x (<aggregate> AS ?a) (<aggregate> AS ?b) <stream>{ <some>} GROUP BY ?x
    SELECT (<aggregate> AS ?a) (<aggregate> AS ?b) <stream>{ <some>}
    SELECT ?n (<aggregate> AS ?a) <stream>{ <triple>OPTIONAL { <triple>} } GROUP BY ?n
    SELECT ?k (<aggregate> + <aggregate> AS ?a) <stream>{ <some>} GROUP BY (<var> = <value>
        AS ?k)
    SELECT ?x ?y (<aggregate> AS ?a) <stream>{ <some>} GROUP BY ?x ?y HAVING (<aggregate> >
        1)
    SELECT * <stream>{ <triple>{ SELECT ?x (<aggregate> AS ?a) { <some>} GROUP BY ?x } }
    SELECT (<aggregate> AS ?a) { <block> { <some>} }
aggregate clauses
    SELECT ?x ?y ?a FROM STREAM :s <bracket> { ?x :p ?y . <triple>} AGGREGATE { (?a, COUNT,
        {?x}) <filter>}
    SELECT * FROM STREAM :s <bracket> { ?x ?l ?y . OPTIONAL { <triple>} } AGGREGATE { (?a,
        SUM(?y), {?x}) } AGGREGATE { (?b, MAX(?y), {?x, ?l}) FILTER(?b != 1) }
timestamps
    SELECT ?x (timestamp(?x) AS ?a) (timestamp(?y) AS ?b) FROM STREAM :s <bracket> { ?x :p
        ?y . <some>}
    SELECT ?x ?y FROM STREAM :s <bracket> FROM STREAM :g1 <bracket> { ?x ?l ?n . ?y :p ?n .
        FILTER(timestamp(?x) > timestamp(?y)) }
    SELECT ?x (MAX(timestamp(?y)) AS ?a) FROM STREAM :s <bracket> { <triple>OPTIONAL { ?x :q
        ?y } } GROUP BY ?x
    SELECT DISTINCT ?x (timestamp(?x, :s) AS ?a) FROM STREAM :s <bracket> FROM STREAM :g1
        <bracket> { ?x :p ?n . <some>}
    SELECT * FROM STREAM :s <bracket> { { ?x :p ?y } UNION { ?y :q ?x } BIND(timestamp(?x)
        AS ?a) MINUS { ?x :r ?z } }
slices
    SELECT * <stream>{ <some>} <order> <slice>
    SELECT ?x <stream>{ <some>} <order> <slice>
    SELECT DISTINCT ?x ?n <stream>{ <some>} <order> <slice>
    SELECT * <stream>{ <triple>{ SELECT * { <triple>} <order> <slice> } }
    SELECT * <stream>{ <triple>OPTIONAL { SELECT ?x ?y { <some>} <order> <slice> } }
    SELECT ?x (COUNT(*) AS ?c) <stream>{ <some>} GROUP BY ?x ORDER BY DESC(COUNT(*)) <slice>
orders
    SELECT ?x ?n <stream>{ <some>} ORDER BY <var> <slice>
    SELECT * <stream>{ <some>} ORDER BY DESC(<var>) <var>
    SELECT ?x <stream>{ <triple>OPTIONAL { <some>} } ORDER BY (<var> + 1) DESC(<var>)
    SELECT DISTINCT ?x <stream>{ <some>} ORDER BY <var>
    SELECT ?x (COUNT(*) AS ?c) <stream>{ <some>} GROUP BY ?x ORDER BY DESC(?c)
    SELECT (?n + 1 AS ?m) ?y <stream>{ <some>} ORDER BY ?m
paths
    SELECT * <stream>{ <end> <path> <end> }
    SELECT * <stream>{ <triple><end> <path> <end> <inside>}
    SELECT * <stream>{ <triple>OPTIONAL { <end> <path> <end> } <filter>}
    SELECT * <stream>{ <triple>FILTER NOT EXISTS { <end> <path> <end> } }
    SELECT * <named>{ GRAPH ?g { <end> <path> <end> } }
graphs
    SELECT * <named>{ <triple>GRAPH ?g { <triple><inside>} }
    SELECT * <named>{ <triple>OPTIONAL { GRAPH ?g { <some>} } }
    SELECT * <named>{ GRAPH ?x { <triple>} <triple>}
    SELECT ?g (COUNT(*) AS ?c) <named>{ GRAPH ?g { <some>} } GROUP BY ?g
    SELECT * <named>{ <triple>FILTER NOT EXISTS { GRAPH ?g { <triple>} } }
triples
    CONSTRUCT { ?x :by ?y . _:c :of ?x ; :is ?n } <stream>{ <some>}
    CONSTRUCT { ?x ?l ?n } <stream>{ <triple>OPTIONAL { <triple>} }
    DESCRIBE ?x ?y <stream>{ <some>} <order> <slice>
    DESCRIBE :a <stream>
    ASK <stream>{ <some>}
    ASK <stream>{ FILTER <exists> }
volatile
    SELECT ?x (RAND() AS ?a) (STRUUID() AS ?b) <stream>{ <some>}
    SELECT (BNODE("k") AS ?a) (BNODE() AS ?b) (UUID() AS ?c) <stream>{ <some>}
    SELECT * <stream>{ <triple>BIND(RAND() AS ?a) OPTIONAL { <triple>BIND(UUID() AS ?b) } }
    SELECT ?x <stream>{ <triple>FILTER(0.5 > RAND()) }
"""
"""The name of each family, and below it its templates."""


def _families() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the templates by family; a line that is indented further continues the one above."""
    for block in re.split(r"\n(?=\S)", _TABLE.strip()):
        name, _, rest = block.partition("\n")
        texts = re.split(r"\n    (?=\S)", "\n" + rest)
        yield name, tuple(" ".join(text.split()) for text in texts if text)


FAMILIES = dict(_families())


class Writer:
    """A template engine: the method of that name computes the text of each placeholder `<name>`.

    >>> Writer(Random(1)).fill("{ <triple> OPTIONAL { <triple> } }").count("OPTIONAL")
    1
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self._new = 0

    def fill(self, text: str) -> str:
        """Fill the placeholders of a template, from left to right."""
        while "<" in text:
            head, _, rest = text.partition("<")
            name, _, tail = rest.partition(">")
            text = head + str(getattr(self, name)()).replace("<", "\0") + tail
        return text.replace("\0", "<")

    def pick(self, *options: str) -> str:
        """Choose one of some templates and fill its placeholders."""
        return self.fill(self.random.choice(options)).replace("<", "\0")

    def var(self) -> str:
        return self.random.choice(["?x", "?y", "?z", "?n"])

    def new(self) -> str:
        self._new += 1
        return f"?v{self._new}"

    def triple(self) -> str:
        subject = self.random.choice(["?x", "?x", "?y", "?y", "?z", ":a", "_:b"])
        link = self.random.choice([":p", ":p", ":q", ":q", ":r", "?l"])
        value = self.random.choice(["?y", "?y", "?z", "?n", "?n", "?x", "1", ":a"])
        return f"{subject} {link} {value} . ".replace("_:b", f"_:b{self.random.getrandbits(40)}")

    def some(self) -> str:
        return self.pick("<triple>", "<triple><triple>", "<triple><triple>", "<triple><filter>")

    def value(self) -> str:
        return self.pick("<var>", "<var>", "1", "2", ":a", '"x"', "1.5")

    def test(self) -> str:
        one = f"{self.value()} {self.random.choice(['=', '!=', '<', '>='])} {self.value()}"
        more = self.pick("", "", "!", f"BOUND({self.var()}) || ", f"isIRI({self.var()}) && ")
        return (f"{more}({one})" if more else one).replace("<", "\0")

    def filter(self) -> str:
        return self.pick("", "FILTER(<test>) ")

    def exists(self) -> str:
        return self.pick("EXISTS { <some> }", "NOT EXISTS { <some> }")

    def aggregate(self) -> str:
        return self.pick(
            "COUNT(*)", "COUNT(DISTINCT *)", "COUNT(<distinct><var>)", "SUM(<distinct><var>)",
            "AVG(<distinct><var>)", "MIN(<var>)", "MAX(<distinct><var>)", "SAMPLE(<var>)",
            'GROUP_CONCAT(<distinct><var>; SEPARATOR="+")', "SUM(<var> * 2)", "COUNT(<var>)",
        )  # fmt: skip

    def distinct(self) -> str:
        return self.random.choice(["", "", "DISTINCT "])

    def path(self) -> str:
        return self.pick(
            ":p*", ":p+", ":q?", "(:p/:q)*", "(:p|:q)+", "^:p", ":p/:q", ":p|:q", "!:p",
            "!(:p|^:q)", "!^:r", "(^:p|:q)+", "(:p/:q?)+", "((:p|:q)/^:r)*", "(:p+/:q)?",
        )  # fmt: skip

    def end(self) -> str:
        return self.random.choice(["?x", "?y", "?y", ":a", ":unknown", "1"])

    def slice(self) -> str:
        return self.pick("LIMIT <few>", "LIMIT <few> OFFSET <few>", "OFFSET <few>")

    def few(self) -> str:
        return str(self.random.randint(0, 4))

    def order(self) -> str:
        return self.pick("", "ORDER BY <var>", "ORDER BY DESC(<var>) <var>", "ORDER BY (<var> + 1)")

    def window(self) -> str:
        width = self.random.randint(1, 12)
        return self.random.choice(
            [
                f"WINDOW RANGE {width} MS SLIDE {self.random.randint(1, width)} MS ",
                f"WINDOW RANGE {width} FIXED ",
                f"WINDOW RANGE {width} MS SLIDE ",
                f"WINDOW ELEMS {width} ",
            ]
        )

    def bracket(self, step: str = "STEP", *more: str) -> str:
        width = self.random.randint(1, 12)
        stepped = f"[RANGE {width}ms {step} {self.random.randint(1, width)}ms]"
        elements = f"[TRIPLES {width} STEP {self.random.randint(1, width)}]"
        windows = [stepped, stepped, f"[RANGE {width}ms TUMBLING]", f"[RANGE TRIPLES {width}]"]
        return self.random.choice([*windows, elements, *more])

    def block(self) -> str:
        window = self.bracket("SLIDE", "[NOW]", "[ALL]", "[ALL]", "[RANGE 7ms]")
        return f"STREAM :s {window}"

    def inside(self) -> str:
        """Return a window of a group, or no text."""
        return self.pick("", "", "<window>")

    def stream(self) -> str:
        return self.pick(
            "FROM STREAM :s <window>", "FROM STREAM :s <window>FROM STREAM :g1 <window>"
        )

    def named(self) -> str:
        return self.pick(
            "<stream>FROM NAMED :g1 FROM NAMED :g2 ",
            "FROM STREAM :s <window>FROM NAMED STREAM :g1 <window>",
            "FROM STREAM :s <window>FROM NAMED STREAM :g1 <window>FROM NAMED :g2 ",
        )


@st.composite
def of_family(draw: Callable[..., Any], family: str) -> str:
    """Draw a query of a family."""
    random = Random(draw(st.integers(0, 2**32)))
    return PREFIX + Writer(random).fill(random.choice(FAMILIES[family]))
