"""Random queries and random data, for properties that hold for all of them.

The vocabulary is tiny, so that patterns match data, rows join, and corner cases are frequent. A
generated text is always a valid query: BIND and AS bind new variables, grouped queries project keys
and aggregates only, and the label of a blank node occurs in one pattern only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

PREFIX = "PREFIX : <http://e/>\n"
IRIS = [":a", ":b", ":c"]
PREDICATES = [":p", ":q", ":r"]
VARIABLES = ["?x", "?y", "?z", "?w"]
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SUBCLASS = f"<{RDFS}subClassOf>"

Draw = Callable[[st.SearchStrategy[object]], object]


@dataclass(frozen=True)
class Features:
    """The features that a generated query may have."""

    dialect: str = "streaming"
    streams: bool = False
    named_graphs: bool = False
    paths: bool = True
    exists: bool = True
    minus: bool = True
    subqueries: bool = True
    groups: bool = True
    limits: bool = False
    volatile: bool = False
    reduced: bool = True
    alternatives: bool = True
    nested_minus: bool = True
    bare_graphs: bool = True  # GRAPH ?g over a group that may have no triple pattern
    group_windows: bool = True
    aggregate_clauses: bool = True
    blank_nodes: bool = True
    booleans_compare: bool = True
    entailment: bool = False  # patterns with rdf:type and the predicates of a schema
    forms: tuple[str, ...] = ("select",)
    literals: tuple[str, ...] = ("1", "2", "3", '"x"', '"y"', "1.5", "true", '"x"@en')


EVERYTHING = Features(
    streams=True,
    named_graphs=True,
    limits=True,
    volatile=True,
    forms=("select", "select", "select", "construct", "describe", "ask"),
)
"""All features of a query over streams; set `dialect`."""

DIALECTS = ["streaming", "csparql", "cqels", "rspql"]
"""The dialects with windows over streams."""


@dataclass
class Generator:
    """A generator of one random query; `draw` is that of hypothesis."""

    draw: Callable[..., object]
    features: Features
    new: int = 0
    blanks: int = 0
    correlated: int = 0  # the number of enclosing EXISTS and GRAPH ?g
    slots: list[str] = field(default_factory=list)

    # -- choices

    def pick(self, options: list[str]) -> str:
        return str(self.draw(st.sampled_from(options)))

    def number(self, low: int, high: int) -> int:
        value = self.draw(st.integers(low, high))
        assert isinstance(value, int)
        return value

    def chance(self, percent: int) -> bool:
        return self.number(1, 100) <= percent

    def fresh(self) -> str:
        self.new += 1
        return f"?n{self.new}"

    # -- queries

    def query(self) -> str:
        form = self.pick(list(self.features.forms))
        where, scope = self.group(3)
        sources = self.sources()
        if form == "ask":
            return f"{PREFIX}ASK {sources}WHERE {where}"
        if form == "construct":
            template = " . ".join(self.triple(scope, template=True) for _ in range(2))
            return f"{PREFIX}CONSTRUCT {{ {template} }} {sources}WHERE {where}{self.tail(scope)}"
        if form == "describe":
            targets = " ".join(sorted(scope)[:1]) or ":a"
            return f"{PREFIX}DESCRIBE {targets} {sources}WHERE {where}{self.tail(scope)}"
        return PREFIX + self.select(where, scope, sources)[0]

    def select(self, where: str, scope: set[str], sources: str = "") -> tuple[str, set[str]]:
        """Return a SELECT query, and the variables that it projects."""
        if self.features.groups and self.chance(25):
            return self.grouped(where, scope, sources)
        projected = sorted(v for v in scope if self.chance(70))
        items = list(projected)
        if self.chance(30):
            new = self.fresh()
            items.append(f"({self.expression(scope, 2)} AS {new})")
            projected.append(new)
        modifier = self.pick(["", "", "DISTINCT "] + ["REDUCED "] * self.features.reduced)
        text = " ".join(items)
        if not items:
            text, projected = "*", sorted(scope)
        annotated = self.features.dialect == "csparql" and self.features.aggregate_clauses
        if annotated and items and self.chance(30):
            where += self.aggregates(scope)
        return f"SELECT {modifier}{text} {sources}WHERE {where}{self.tail(scope)}", set(projected)

    def grouped(self, where: str, scope: set[str], sources: str) -> tuple[str, set[str]]:
        keys = sorted(v for v in scope if self.chance(40))
        projected, items, group = set(keys), list(keys), list(keys)
        if scope and self.chance(20):
            new = self.fresh()
            group.append(f"({self.expression(scope, 1)} AS {new})")
            items.append(new)
            projected.add(new)
        for _ in range(self.number(1, 2)):
            new = self.fresh()
            items.append(f"({self.aggregate(scope)} AS {new})")
            projected.add(new)
        having = f" HAVING ({self.aggregate(scope)} > 1)" if self.chance(25) else ""
        by = f" GROUP BY {' '.join(group)}" if group else ""
        return f"SELECT {' '.join(items)} {sources}WHERE {where}{by}{having}", projected

    def aggregate(self, scope: set[str]) -> str:
        argument = self.pick(sorted(scope)) if scope else "1"
        distinct = self.pick(["", "DISTINCT "])
        name = self.pick(["COUNT", "SUM", "MIN", "MAX", "AVG"])
        return "COUNT(*)" if self.chance(20) else f"{name}({distinct}{argument})"

    def aggregates(self, scope: set[str]) -> str:
        """Return an AGGREGATE clause of C-SPARQL."""
        if not scope:
            return ""
        new, key = self.fresh(), self.pick(sorted(scope))
        function = self.pick(["COUNT", f"SUM({self.pick(sorted(scope))})"])
        condition = f" FILTER({new} > 1)" if self.chance(50) else ""
        return f" AGGREGATE {{ ({new}, {function}, {{{key}}}){condition} }}"

    def tail(self, scope: set[str]) -> str:
        """Return ORDER BY and LIMIT, or no text."""
        text = ""
        if scope and self.chance(20):
            text += " ORDER BY " + self.pick(["", "DESC"]) + f"({self.pick(sorted(scope))})"
        if self.features.limits and self.chance(30):
            text += f" LIMIT {self.number(0, 4)}" + self.pick(["", " OFFSET 1"])
        return text

    # -- groups

    def group(self, depth: int) -> tuple[str, set[str]]:
        """Return `{ .. }` and the variables in scope at its end."""
        scope: set[str] = set()
        clauses: list[str] = []
        for _ in range(self.number(1, 3)):
            text, variables = self.clause(depth, scope)
            clauses.append(text)
            scope |= variables
        if self.chance(30):
            clauses.append(f"FILTER({self.expression(scope, 2, exists=depth)})")
        if self.streaming and self.features.group_windows and depth < 3 and self.chance(20):
            clauses.append(self.window_clause())
        return "{ " + " ".join(clauses) + " }", scope

    @property
    def streaming(self) -> bool:
        return self.features.streams and self.features.dialect == "streaming"

    def clause(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        kinds = ["triples"] * 4
        if depth > 0:
            kinds += ["optional", "optional", "union", "group", "bind", "values"]
            kinds += ["minus"] * self.may_minus + ["exists"] * self.features.exists
            kinds += ["subquery"] * self.features.subqueries
            kinds += ["graph"] * self.features.named_graphs
            kinds += ["event", "event"] * (self.features.dialect == "epsparql")
            kinds += ["block", "block"] * (self.features.dialect in ("cqels", "rspql"))
        return getattr(self, f"_{self.pick(kinds)}")(depth, scope)  # type: ignore[no-any-return]

    @property
    def may_minus(self) -> bool:
        return self.features.minus and (self.features.nested_minus or not self.correlated)

    def _triples(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        self.blanks += 1
        triples = [self.triple(scope) for _ in range(self.number(1, 2))]
        variables = {word for text in triples for word in text.split() if word.startswith("?")}
        return " . ".join(triples) + " .", variables

    def _optional(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        group, variables = self.group(depth - 1)
        return f"OPTIONAL {group}", variables

    def _minus(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        return f"MINUS {self.group(depth - 1)[0]}", set()

    def _union(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        left, one = self.group(depth - 1)
        right, two = self.group(depth - 1)
        return f"{left} UNION {right}", one | two

    def _group(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        return self.group(depth - 1)

    def _graph(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        name = self.pick([":g1", ":g2", "?g"])
        self.correlated += name == "?g"
        group, variables = self.group(depth - 1)
        self.correlated -= name == "?g"
        if name == "?g" and not self.features.bare_graphs:
            first, more = self._triples(0, set())
            group, variables = f"{{ {first} {group[1:]}", variables | more
        return f"GRAPH {name} {group}", variables | ({"?g"} if name == "?g" else set())

    def _event(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        words = ["SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL"]
        left, one = self._events(depth)
        right, two = self._events(depth)
        return f"{left} {self.pick(words)} {right}", one | two

    def _events(self, depth: int) -> tuple[str, set[str]]:
        text, variables = self._triples(depth, set())
        return f"{{ {text} }}", variables

    def _block(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        inside = replace(self.features, dialect="streaming", streams=False, named_graphs=False)
        plain = Generator(self.draw, inside, self.new, self.blanks, self.correlated)
        group, variables = plain.group(depth - 1)
        self.new, self.blanks = plain.new, plain.blanks + 1
        if self.features.dialect == "cqels":
            return f"STREAM :s {self.bracket()} {group}", variables
        return f"WINDOW {self.pick([':w1', ':w2'])} {group}", variables

    def _bind(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        new = self.fresh()
        return f"BIND({self.expression(scope, 2, exists=depth)} AS {new})", {new}

    def _values(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        first, second = self.pick(VARIABLES[:2]), self.pick(VARIABLES[2:])
        rows = [
            f"({self.term()} {self.pick(['UNDEF', self.term()])})" for _ in range(self.number(0, 2))
        ]
        return f"VALUES ({first} {second}) {{ {' '.join(rows)} }}", {first, second}

    def _exists(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        word = self.pick(["EXISTS", "NOT EXISTS"])
        return f"FILTER {word} {self.exists_group(depth - 1)}", set()

    def exists_group(self, depth: int) -> str:
        """Return the group of an EXISTS."""
        self.correlated += 1
        group, _ = self.group(depth)
        self.correlated -= 1
        return group

    def _subquery(self, depth: int, scope: set[str]) -> tuple[str, set[str]]:
        where, inner = self.group(depth - 1)
        text, projected = self.select(where, inner)
        return f"{{ {text} }}", projected

    # -- triples and paths

    def triple(self, scope: set[str], template: bool = False) -> str:
        subjects = VARIABLES + IRIS[:2]
        objects = VARIABLES + [":a", "1", "2"]
        if self.features.blank_nodes and not template and self.chance(10):
            subjects = [f"_:l{self.blanks}"]
        predicates = [*PREDICATES, *PREDICATES, "?y"]
        if self.features.entailment:
            predicates += ["a", "a", "a", "a", SUBCLASS]
        predicate = self.pick(predicates)
        if self.features.paths and not template and self.chance(20):
            predicate = self.path(2)
        return f"{self.pick(subjects)} {predicate} {self.pick(objects)}"

    def path(self, depth: int) -> str:
        if depth == 0:
            return self.pick(PREDICATES)
        one, two = self.path(depth - 1), self.path(depth - 1)
        return self.pick(
            [f"^{one}" if one[0] not in "^" else one, f"({one}/{two})", f"({one}|{two})+"]
            + [f"({one})*", f"({one})+", f"({one})?", "!(:p|:q)", "!^:r"]
            + ["!(:p|^:q)", f"({one}|{two})"] * self.features.alternatives
        )

    def term(self) -> str:
        return self.pick([*IRIS, *self.features.literals])

    # -- expressions

    def expression(self, scope: set[str], depth: int, exists: int = 0) -> str:
        leaves = [*sorted(scope), *sorted(scope), *self.features.literals, *IRIS[:1]]
        if depth == 0:
            return self.pick(leaves)
        if exists and self.features.exists and self.chance(10):
            return f"EXISTS {self.exists_group(exists - 1)}"
        kind = self.number(0, 9)
        one = self.expression(scope, depth - 1)
        two = self.expression(scope, depth - 1)
        variable = self.pick(sorted(scope)) if scope else "?x"
        if self.features.volatile and self.chance(10):
            return self.pick(["RAND()", 'BNODE("k")', "STRUUID()"])
        return [
            f"({one} = {two})",
            f"({one} < {two})" if self.features.booleans_compare else f"(({one} + 0) < {two})",
            f"({one} {self.pick(['+', '-', '*', '/'])} {two})",
            f"({one} && {two})",
            f"({one} || {two})",
            f"(!{one})" if not one.startswith("!") else one,
            f"BOUND({variable})",
            f"COALESCE({one}, {two})",
            f"IF({one}, {two}, {self.pick(leaves)})",
            f"({one} {self.pick(['IN', 'NOT IN'])} ({two}, 1))",
        ][kind]

    # -- streams

    def sources(self) -> str:
        if not self.features.streams:
            return ""
        match self.features.dialect:
            case "streaming":
                second = f"FROM NAMED STREAM :g1 {self.window_clause()} " * self.chance(30)
                return f"FROM STREAM :s {self.window_clause()} {second}"
            case "csparql":
                second = f"FROM STREAM :g1 {self.bracket()} " * self.chance(30)
                return f"FROM STREAM :s {self.bracket()} {second}"
            case "rspql":
                return "".join(f"FROM NAMED WINDOW :w{k} ON :s {self.bracket()} " for k in (1, 2))
        return ""

    def window_clause(self) -> str:
        width = self.number(2, 9)
        return self.pick(
            [
                f"WINDOW RANGE {width} MS SLIDE {self.number(1, width)} MS",
                f"WINDOW RANGE {width} MS SLIDE",
                f"WINDOW RANGE {width} FIXED",
                f"WINDOW ELEMS {width}",
            ]
        )

    def bracket(self) -> str:
        width = self.number(2, 9)
        step = "SLIDE" if self.features.dialect == "cqels" else "STEP"
        kinds = [
            f"[RANGE {width}ms {step} {self.number(1, width)}ms]",
            f"[RANGE {width}ms TUMBLING]",
            f"[RANGE TRIPLES {width}]",
            f"[TRIPLES {width} STEP {self.number(1, width)}]",
        ]
        if self.features.dialect == "cqels":
            kinds += ["[NOW]", "[ALL]", f"[RANGE {width}ms]"]
        return self.pick(kinds)


def queries(features: Features) -> st.SearchStrategy[str]:
    """Return a strategy for texts of valid queries."""

    @st.composite
    def build(draw: Callable[..., object]) -> str:
        return Generator(draw, features).query()

    return build()


def triples(max_size: int = 8) -> st.SearchStrategy[list[tuple[str, str, str]]]:
    """Return a strategy for small lists of triples that generated patterns match, as N-Triples."""
    subject = st.sampled_from(["<http://e/a>", "<http://e/b>", "<http://e/c>", "_:n"])
    predicate = st.sampled_from([f"<http://e/{name}>" for name in "pqr"])
    xsd = "http://www.w3.org/2001/XMLSchema#"
    values = [f'"1"^^<{xsd}integer>', f'"2"^^<{xsd}integer>', f'"1.5"^^<{xsd}decimal>']
    value = st.one_of(subject, st.sampled_from([*values, '"x"', '"x"@en', '"y"']))
    return st.lists(st.tuples(subject, predicate, value), max_size=max_size)
