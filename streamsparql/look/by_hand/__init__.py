"""The algebra by hand: plans that are built in Python, operator by operator.

    from streamsparql.look.by_hand import access, graph

    stops = access("s", {"": "http://e/"}).window("RANGE 10 MINUTE SLIDE").match("?t :stopped ?why")
    starts = access("s", {"": "http://e/"}).window("RANGE 1 HOUR SLIDE").match("?t :started ?n")
    plan = starts.left_join(stops, "?why != :Test").project("?t ?n ?why")

A `Draft` is a plan in the making: each method gives a new one with one more operator on top. The
nodes are those that `create_plan` makes, so a draft equals the logical plan of the query that says
the same; windows, patterns and expressions are written as in a query, and read by the translator.
(That is why these are methods of a thin wrapper and not of `Plan`: the algebra knows no texts.)

>>> import streamsparql
>>> draft = access("s").window("RANGE 10 MS SLIDE 5 MS").merge(graph()).match("?x <p> ?y")
>>> draft.filter("?y > 5").project("?x").plan == streamsparql.compile(
...     "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS { ?x <p> ?y FILTER(?y > 5) }"
... ).logical
True
>>> draft.at(3, [("<a>", "<p>", "<b>", 2)])
Snapshot([({?x: <a>, ?y: <b>}, 1)])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamsparql.algebra import event, join, shape
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.filter import AntiJoin, SemiJoin
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.hidden_variables import PlanKind
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.plan import Elementwise, Plan, tie_breakers
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI
from streamsparql.algebra.window import Window
from streamsparql.errors import QueryError
from streamsparql.look.by_hand import fragments
from streamsparql.translator.create_plan import set_left_join_in_hierarchy

if TYPE_CHECKING:
    from streamsparql import Query
    from streamsparql.compiled import CompiledQuery
    from streamsparql.look.equivalence import Equivalence
    from streamsparql.look.rewrites import Rewrites

__all__ = ["Draft", "access", "draft", "graph", "unit", "values"]

Prefixes = Mapping[str, str]


# -- where a plan begins ---------------------------------------------------------------------------


def access(stream: str | IRI | None = None, prefixes: Prefixes | None = None) -> Draft:
    """The items of a stream, each at its own instant; without a name EP-SPARQL's one stream.

    >>> print(access("http://example.org/s"))
    AccessStream  <http://example.org/s>
    """
    known = dict(prefixes or {})
    name = DEFAULT_STREAM if stream is None else fragments.iri(stream, known)
    return Draft(AccessStream(name), known)


def graph(
    *names: str | IRI, prefixes: Prefixes | None = None, background: bool | None = None
) -> Draft:
    """The triples of static graphs; without a name those of the default graph.

    `background` puts the default graph, as a caller gives it, beside the named ones: so does FROM.

    >>> print(graph("urn:one", "urn:two"))
    AccessGraph  <urn:one> + <urn:two>
    """
    known = dict(prefixes or {})
    found = tuple(fragments.name_of(name, known) for name in names)
    return Draft(AccessGraph(found, not names if background is None else background), known)


def values(text: str, prefixes: Prefixes | None = None) -> Draft:
    """A table, as behind VALUES.

    >>> print(values("?x { 1 2 }"))
    Table  ?x: (1) (2)
    """
    known = dict(prefixes or {})
    return Draft(fragments.table(text, known), known)


def unit() -> Draft:
    """The table of one empty row, which an empty group means.

    >>> print(unit().extend("?x", "1 + 1"))
    Extend  ?x := (1 + 1)
    Table  no variables: ()
    """
    return Draft(shape.UNIT)


def draft(plan: Plan | CompiledQuery, prefixes: Prefixes | None = None) -> Draft:
    """A plan that is there, or a query's logical one, to go on from.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?x { ?x <p> ?y }")
    >>> print(draft(query).distinct())
    Distinct
    Projection  ?x
    TriplePatternMatching  ?x <p> ?y
    AccessGraph  default graph
    """
    found = _plan_of(plan)
    known = {} if plan is found else plan.prefixes  # type: ignore[union-attr]
    return Draft(found, {**known, **(prefixes or {})})


# -- what is done to it ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Draft:
    """A plan in the making. Its methods give new drafts; `plan` is the plan so far.

    Drafts are equal when their plans are. `prefixes` are those of the texts that come.
    """

    plan: Plan
    prefixes: Prefixes = field(default_factory=dict)
    source: Plan | None = field(default=None, repr=False)
    """What the patterns so far read, for those of an EXISTS."""

    # -- triples

    def window(
        self,
        window: str | Window | Callable[..., Window],
        *parameters: Any,
        dialect: str | None = None,
        origin: int = 0,
        name: str | None = None,
    ) -> Draft:
        """The elements in a window: of a stream, or of the matches of one pattern.

        A window is a text, `RANGE 10 S SLIDE 1 S` or, with its dialect, `[RANGE 10s STEP 1s]`; a
        class with its parameters; or a node, whose own input is left aside. Of the first two
        `origin` is where the grid starts, and `name` its own name.

        >>> from streamsparql.algebra.window import SlidingDeltaWindow
        >>> access("s").window("RANGE 10 SLIDE 5") == access("s").window(SlidingDeltaWindow, 10, 5)
        True
        """
        self._over_a_stream()
        is_text, is_node = isinstance(window, str), isinstance(window, Window)
        wrong = [number for number in parameters if isinstance(number, float)]
        if wrong or type(origin) is not int:
            said = ", ".join(map(repr, wrong or [origin]))
            raise QueryError(f"a window's numbers are whole milliseconds, not {said}")
        if (
            (parameters and (is_text or is_node))
            or (dialect is not None and not is_text)
            or (is_node and (origin or name))
        ):
            raise QueryError(
                "a window is a text, with its dialect, or a class with its parameters, or a node",
                hint="origin= and name= go with a text or a class",
            )
        if isinstance(window, str):
            return self._with(fragments.windowing(window, dialect, origin, name)(self.plan))
        if isinstance(window, Window):
            return self._with(window.with_inputs(self.plan))
        named = {"origin": origin or None, "name": name}
        options = {option: value for option, value in named.items() if value is not None}
        try:
            return self._with(window(self.plan, *parameters, **options))
        except (TypeError, AssertionError) as error:
            raise QueryError(f"this is no window: {error}") from None

    def merge(self, *others: Draft) -> Draft:
        """The union of sources, below a pattern: a stream's window, and the default graph."""
        for one in (self, *others):
            one._are(triples=True, why="merge puts sources of triples together; rows: union")
        plans = [part for one in (self, *others) for part in _merged(one.plan)]
        return self._beside(Merge(tuple(plans)), *others)

    def match(self, pattern: str, prefixes: Prefixes | None = None) -> Draft:
        """The solutions of a triple pattern, or of several: all that can stand in a group.

        >>> print(graph().match("?x a <T> ; <p> ?y"))
        BasicGraphPattern
        ├─ TriplePatternMatching  ?x a <T>
        │  AccessGraph  default graph
        └─ TriplePatternMatching  ?x <p> ?y
           AccessGraph  default graph
        """
        self._are(triples=True, why="match reads triples; what is matched already: join")
        known = {**self.prefixes, **(prefixes or {})}
        plan = fragments.pattern(pattern, fragments.Place(shape.UNIT, self.plan, known))
        return Draft(plan, known, self.plan)

    def graph(self, name: str | IRI) -> Draft:
        """`GRAPH name` around a plan that reads `by_hand.graph(name)`."""
        return self._with(Graph(fragments.name_of(name, self.prefixes), self._rows))

    # -- rows of one plan

    def filter(self, condition: str) -> Draft:
        """The rows for which a condition holds. EXISTS reads the source of the patterns so far.

        >>> print(values("?x { 1 2 }").filter("?x > 1"))
        Filter  (?x > 1)
        Table  ?x: (1) (2)
        """
        return self._with(fragments.act(condition, "FILTER(", ")", self._place))

    def extend(self, variable: str, expression: str) -> Draft:
        """A new variable with an expression's value."""
        new = fragments.variable(variable)
        return self._with(fragments.act(expression, "BIND(", f"AS {new})", self._place))

    def project(self, variables: str = "*") -> Draft:
        """Some variables, or all that can be named."""
        plan = self._rows
        kept = (
            visible_variables(plan) if variables.strip() == "*" else fragments.variables(variables)
        )
        return self._with(shape.Projection(kept, plan))

    def distinct(self) -> Draft:
        """Each row, or each triple of a source, once."""
        return self._with(shape.Distinct(self.plan))

    def reduced(self) -> Draft:
        """REDUCED."""
        return self._with(shape.Reduced(self._rows))

    def aggregate(self, keys: str = "", *calls: str, having: str | None = None) -> Draft:
        """A row per group: `aggregate("?x", "COUNT(*) AS ?n", "AVG(?y) AS ?mean")`.

        >>> print(values("?x { <a> <b> <b> }").aggregate("?x", "COUNT(*) AS ?n"))
        Aggregation  by ?x: ?n := COUNT(*)
        Table  ?x: (<a>) (<b>) (<b>)
        """
        if not calls and not keys.strip():
            raise QueryError("an aggregation has keys, or calls such as COUNT(*) AS ?n")
        for call in calls:
            if not re.search(r"\bAS\b", call, re.IGNORECASE):
                raise QueryError(f"{call!r} has no name", hint=f"{call} AS ?name")
        shown = " ".join(f"({call}\n)" for call in calls) or keys
        by = f" GROUP BY {keys}\n" * bool(keys.strip())
        more = "" if having is None else f" HAVING ({having}\n)"
        count = len(calls) or len(fragments.variables(keys))
        made = fragments.rows(
            shown,
            "SELECT",
            f"{{}}{by}{more}",
            self._place,
            items=count,
            group=None,
            having=int(having is not None),
        )
        return self._with(made)

    def annotate(self, call: str) -> Draft:
        """C-SPARQL's AGGREGATE, which keeps the rows: `annotate("(?n, COUNT, {?x})")`."""
        made = fragments.rows(call, "SELECT * {} AGGREGATE {", "}", self._place, aggregates=1)
        return self._with(made)

    def order_by(self, keys: str) -> Draft:
        """The rows in an order: `order_by("DESC(?x) ?y")`."""
        return self._with(fragments.rows(keys, "SELECT * {} ORDER BY", "", self._place, order=None))

    def slice(self, limit: int | None = None, offset: int = 0) -> Draft:
        """Some rows, by their rank."""
        numbers = (offset, 0 if limit is None else limit)
        if any(type(n) is not int or n < 0 for n in numbers):
            raise QueryError(f"limit and offset are numbers from 0 on, not {limit!r}, {offset!r}")
        plan = self._rows
        return self._with(shape.Slice(offset, limit, tie_breakers(*visible_variables(plan)), plan))

    # -- rows of several plans

    def join(self, *others: Draft) -> Draft:
        """The join of plans, from left to right.

        >>> print(values("?x { 1 2 }").join(values("?x { 2 3 }")))
        Join
        ├─ Table  ?x: (1) (2)
        └─ Table  ?x: (2) (3)
        """
        plan = self._rows
        for other in others:
            plan = join.Join(plan, _apart(other, plan))
        return self._beside(plan, *others)

    def left_join(self, other: Draft, condition: str | None = None) -> Draft:
        """OPTIONAL, with the condition of its filters.

        >>> print(values("?x { 1 2 }").left_join(values("?y { 2 3 }"), "?x = ?y"))
        LeftJoin  (?x = ?y)
        ├─ Table  ?x: (1) (2)
        └─ Table  ?y: (2) (3)
        """
        right = _apart(other, self._rows)
        place = fragments.Place(join.Join(self.plan, right), other.source, self._prefixes(other))
        prepared, context = fragments.conditions(condition, place)
        made = set_left_join_in_hierarchy(right, prepared, context)(self.plan)
        return self._beside(made, other)

    def minus(self, other: Draft) -> Draft:
        """MINUS."""
        return self._beside(join.Minus(self._rows, _apart(other, self.plan)), other)

    def union(self, *others: Draft) -> Draft:
        """All rows of all plans."""
        if not others:
            raise QueryError("a union is of two plans or more")
        plans = [self._rows]
        for other in others:
            plans.append(_apart(other, *plans))
        return self._beside(join.Union(tuple(plans)), *others)

    def semi_join(self, pattern: Draft) -> Draft:
        """FILTER EXISTS: the rows for which another plan has a solution."""
        return self._beside(SemiJoin(self._rows, _apart(pattern, self.plan)), pattern)

    def anti_join(self, pattern: Draft) -> Draft:
        """FILTER NOT EXISTS."""
        return self._beside(AntiJoin(self._rows, _apart(pattern, self.plan)), pattern)

    # -- events

    def seq(self, other: Draft) -> Draft:
        """EP-SPARQL's SEQ: one event after the other."""
        return self._beside(event.SeqJoin(self._rows, _apart(other, self.plan)), other)

    def equals(self, other: Draft) -> Draft:
        """EP-SPARQL's EQUALS: events with the same occurrence."""
        return self._beside(event.EqJoin(self._rows, _apart(other, self.plan)), other)

    def detect(self) -> Draft:
        """From events to snapshots: each event at its end."""
        return self._with(event.Detect(self._rows))

    # -- forms

    def ask(self) -> Draft:
        """ASK: whether there is a row."""
        return self._with(Ask(self._rows))

    def construct(self, template: str) -> Draft:
        """CONSTRUCT: the triples that a template makes of each row."""
        return self._with(Construct(fragments.template(template, self._place), self.plan))

    # -- what it is

    def at(
        self,
        t: int,
        streams: Any = None,
        graph: Iterable[Any] = (),
        graphs: Mapping[str, Iterable[Any]] | None = None,
    ) -> Snapshot[Any]:
        """The plan's snapshot at an instant, by its definition; sources as for `inputs`.

        A plan that reads one stream takes that stream's items by themselves.
        """
        from streamsparql.look.definition_inputs import inputs
        from streamsparql.look.equivalence.difference import free_graph_variables

        if type(t) is not int or t < 0:
            raise QueryError(f"an instant is a number of milliseconds, not {t!r}")
        for variable in free_graph_variables(self.plan):
            raise QueryError(
                f"{variable} names a graph, and nothing says which", hint=f".graph('{variable}')"
            )
        return self.plan.at(t, inputs(self._named(streams), graph, graphs))

    def _named(self, streams: Any) -> Mapping[str, Iterable[Any]]:
        read = {node.stream.value for node in self.plan.walk() if isinstance(node, AccessStream)}
        if streams is None or isinstance(streams, Mapping):
            given = {_called(name): items for name, items in (streams or {}).items()}
            for name in given.keys() - read:
                raise QueryError(f"the plan does not read the stream <{name}>, which is given")
            return {**dict.fromkeys(read, ()), **given}
        if len(read) != 1:
            names = ", ".join(f"<{name}>" for name in sorted(read)) or "none"
            raise QueryError(f"the plan reads these streams: {names}; give them by name")
        return {read.pop(): streams}

    def equivalent(
        self, other: Draft | Plan | CompiledQuery, trials: int = 200, seed: int = 0
    ) -> Equivalence:
        """Whether another plan, or a query, means the same: see `streamsparql.look.equivalence`."""
        from streamsparql.look.equivalence import equivalent

        return equivalent(self.plan, _plan_of(other), trials, seed)

    def rewrites(self, check: bool = False, trials: int = 50, seed: int = 0) -> Rewrites:
        """What the rewriting rules do to it, step by step: see `streamsparql.look.rewrites`."""
        from streamsparql.look.rewrites import rewrites

        return rewrites(self.plan, self.prefixes, check=check, trials=trials, seed=seed)

    @property
    def optimized(self) -> Draft:
        """The plan that the rewriting rules lead to."""
        from streamsparql.algebra.rewrite import rewrite

        return self._with(rewrite(self.plan).plan)

    def query(self, dialect: str = "streaming") -> Query:
        """A query of a dialect with this plan; `UnsupportedFeature` where there is none.

        >>> draft = access("s").window("RANGE 10 MS FIXED").merge(graph()).match("?x <p> ?y")
        >>> print(draft.project("?x").query().text)
        SELECT ?x
        FROM STREAM <s> WINDOW RANGE 10 MS FIXED
        WHERE {
          ?x <p> ?y .
        }
        """
        import streamsparql
        from streamsparql.translator.unparse import unparse

        origins = {getattr(node, "origin", 0) for node in self.plan.walk()} - {0}
        return streamsparql.compile(
            unparse(self.plan, dialect), dialect, origin=max(origins, default=0)
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Draft | Plan):
            return self.plan == (other.plan if isinstance(other, Draft) else other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.plan)

    def __str__(self) -> str:
        from streamsparql.look.explain.boxes.logical import plan_box
        from streamsparql.look.explain.formats.plain_text import plain

        return plain(plan_box(self.plan, self.prefixes))

    def _repr_html_(self) -> str:
        """How a notebook shows it: as it shows a plan, with the prefixes."""
        from streamsparql.look.explain.boxes.logical import plan_box
        from streamsparql.look.explain.formats.html import fragment

        return fragment(plan_box(self.plan, self.prefixes))

    # -- parts

    @property
    def _rows(self) -> Plan:
        """The plan, which has to give rows."""
        if isinstance(self.plan, Ask | Construct | Describe):
            kind = type(self.plan).__name__
            raise QueryError(f"{kind} is the last operator of a plan: what it gives are no rows")
        self._are(triples=False, why="match it first: .match('?x ?p ?y')")
        return self.plan

    @property
    def _place(self) -> fragments.Place:
        return fragments.Place(self._rows, self.source, self.prefixes)

    def _over_a_stream(self) -> None:
        """A window is over a stream, or over what is done to its items one by one."""
        below = self.plan
        while isinstance(below, Elementwise):
            (below,) = below.inputs
        if not isinstance(below, AccessStream):
            kind = type(below).__name__
            raise QueryError(
                f"a window is over a stream, or over what is done to its items one by one: not over"
                f" {kind}",
                hint='access("s").window(..) first, then the rest',
            )

    def _are(self, *, triples: bool, why: str) -> None:
        if _gives_triples(self.plan) is not triples:
            kind = type(self.plan).__name__
            given, wanted = ("rows", "triples") if triples else ("triples", "rows")
            raise QueryError(f"{kind} gives {given} here, and {wanted} are needed", hint=why)

    def _prefixes(self, *others: Draft) -> Prefixes:
        known: dict[str, str] = {}
        for one in reversed((self, *others)):
            known |= one.prefixes
        return known

    def _with(self, plan: Plan) -> Draft:
        return Draft(plan, self.prefixes, self.source)

    def _beside(self, plan: Plan, *others: Draft) -> Draft:
        return Draft(plan, self._prefixes(*others), self.source)


def _called(name: Any) -> str:
    return name.value if isinstance(name, IRI) else str(name)


def _merged(plan: Plan) -> tuple[Plan, ...]:
    return plan.sources if isinstance(plan, Merge) else (plan,)


def _apart(other: Draft, *left: Plan) -> Plan:
    """A plan that comes to stand beside others, with hidden variables of its own."""
    if not isinstance(other, Draft):
        raise QueryError(
            f"a draft is needed here, not a {type(other).__name__}", hint="draft(plan)"
        )
    counts: dict[PlanKind, int] = {}
    for plan in left:
        counts |= {kind: max(n, counts.get(kind, 0)) for kind, n in fragments.used(plan).items()}
    return fragments.apart(other._rows, counts)


def _gives_triples(plan: Plan) -> bool:
    """Whether it is a source of triples."""
    while isinstance(plan, Window | shape.Distinct | Merge):
        plan = plan.inputs[0]
    return isinstance(plan, AccessStream | AccessGraph)


def _plan_of(other: Draft | Plan | CompiledQuery) -> Plan:
    from streamsparql.compiled import CompiledQuery

    if isinstance(other, Plan):
        return other
    if not isinstance(other, Draft | CompiledQuery):
        raise QueryError(f"a plan or a query is needed here, not a {type(other).__name__}")
    return other.plan if isinstance(other, Draft) else other.logical
