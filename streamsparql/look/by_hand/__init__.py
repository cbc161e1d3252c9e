"""Plans by hand: logical plans built in Python, operator by operator.

    from streamsparql.look.by_hand import access, graph

    stops = access("s", {"": "http://e/"}).window("RANGE 10 MINUTE SLIDE").match("?t :stopped ?why")
    starts = access("s", {"": "http://e/"}).window("RANGE 1 HOUR SLIDE").match("?t :started ?n")
    plan = starts.left_join(stops, "?why != :Test").project("?t ?n ?why")

A `Draft` is an immutable builder: each method returns a draft with one more operator on top. The
nodes are those that `create_plan` creates, so a draft equals the logical plan of the equivalent
query. Windows, patterns and expressions are written as in a query, and parsed by the translator.
(So these are methods of a wrapper and not of `Plan`: the algebra does not parse.)

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
from streamsparql.algebra.entailment import Entailed, reads_entailed
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
from streamsparql.look.by_hand.fragments import Prefixes
from streamsparql.translator.create_plan import set_left_join_in_hierarchy

if TYPE_CHECKING:
    from streamsparql import Query
    from streamsparql.compiled import CompiledQuery
    from streamsparql.look.equivalence import Equivalence
    from streamsparql.look.rewrites import Rewrites

__all__ = ["Draft", "access", "draft", "graph", "unit", "values"]


# -- leaves ----------------------------------------------------------------------------------------


def access(stream: str | IRI | None = None, prefixes: Prefixes | None = None) -> Draft:
    """Read the items of a stream, each valid at its own instant.

    Without a name, read the default stream of EP-SPARQL.

    >>> print(access("http://example.org/s"))
    AccessStream  <http://example.org/s>
    """
    known = dict(prefixes or {})
    name = DEFAULT_STREAM if stream is None else fragments.parse_iri(stream, known)
    return Draft(AccessStream(name), known)


def graph(
    *names: str | IRI, prefixes: Prefixes | None = None, background: bool | None = None
) -> Draft:
    """Read the triples of static graphs; without names, those of the default graph.

    With `background`, read the default graph that the caller passes as well, as FROM does.

    >>> print(graph("urn:one", "urn:two"))
    AccessGraph  <urn:one> + <urn:two>
    """
    known = dict(prefixes or {})
    graphs = tuple(fragments.parse_graph_name(name, known) for name in names)
    return Draft(AccessGraph(graphs, not names if background is None else background), known)


def values(text: str, prefixes: Prefixes | None = None) -> Draft:
    """Create a table of rows, as VALUES does.

    >>> print(values("?x { 1 2 }"))
    Table  ?x: (1) (2)
    """
    known = dict(prefixes or {})
    return Draft(fragments.parse_values(text, known), known)


def unit() -> Draft:
    """Create the table of one empty row, the plan of an empty group.

    >>> print(unit().extend("?x", "1 + 1"))
    Extend  ?x := (1 + 1)
    Table  no variables: ()
    """
    return Draft(shape.UNIT)


def draft(plan: Plan | CompiledQuery, prefixes: Prefixes | None = None) -> Draft:
    """Start from a plan, or from the logical plan of a query.

    >>> import streamsparql
    >>> query = streamsparql.compile("SELECT ?x { ?x <p> ?y }")
    >>> print(draft(query).distinct())
    Distinct
    Projection  ?x
    TriplePatternMatching  ?x <p> ?y
    AccessGraph  default graph
    """
    start = _plan_of(plan)
    known = {} if plan is start else plan.prefixes  # type: ignore[union-attr]
    return Draft(start, {**known, **(prefixes or {})})


# -- operators -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Draft:
    """A builder of a plan. Its methods return new drafts; `plan` is the plan so far.

    Drafts are equal if their plans are. `prefixes` apply to the arguments of its methods.
    """

    plan: Plan
    prefixes: Prefixes = field(default_factory=dict)
    source: Plan | None = field(default=None, repr=False)
    """The source that the patterns so far read; patterns of an EXISTS read it too."""

    # -- triples

    def window(
        self,
        window: str | Window | Callable[..., Window],
        *parameters: Any,
        dialect: str | None = None,
        origin: int = 0,
        name: str | None = None,
    ) -> Draft:
        """Apply a window to a stream, or to the matches of one pattern.

        A window is a string, `RANGE 10 S SLIDE 1 S` or, with its dialect, `[RANGE 10s STEP 1s]`; a
        class with its parameters; or a node, whose own input is ignored. For a string or a class,
        `origin` is the origin of the grid in milliseconds, and `name` the name of the window.

        >>> from streamsparql.algebra.window import SlidingDeltaWindow
        >>> access("s").window("RANGE 10 SLIDE 5") == access("s").window(SlidingDeltaWindow, 10, 5)
        True
        """
        self._check_window_input()
        is_string, is_node = isinstance(window, str), isinstance(window, Window)
        floats = [number for number in parameters if isinstance(number, float)]
        if floats or type(origin) is not int:
            invalid = ", ".join(map(repr, floats or [origin]))
            raise QueryError(f"the numbers of a window must be integers, not {invalid}")
        if (
            (parameters and (is_string or is_node))
            or (dialect is not None and not is_string)
            or (is_node and (origin or name))
        ):
            raise QueryError(
                "a window must be a string with a dialect, a class with its parameters, or a node",
                hint="origin= and name= are for a string or a class",
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
            raise QueryError(f"invalid window: {error}") from None

    def merge(self, *others: Draft) -> Draft:
        """Merge sources of triples for a pattern: a window of a stream, and the default graph."""
        for each in (self, *others):
            each._check_kind(triples=True, hint="merge is for triples; use union for rows")
        plans = [part for each in (self, *others) for part in _merged_sources(each.plan)]
        return self._with_others(Merge(tuple(plans)), *others)

    def entailed(self, schema: Draft | None = None) -> Draft:
        """Add what the triples entail with the RDFS schema in static graphs, by default `graph()`.

        >>> print(access("s").window("RANGE 10 FIXED").entailed().match("?x a <T>"))
        TriplePatternMatching  ?x a <T>
        Entailed  RDFS
        ├─ FixedWindow  range 10 ms
        │  AccessStream  <s>
        └─ schema: AccessGraph  default graph
        """
        self._check_kind(triples=True, hint="triples entail others; match patterns above")
        graphs = AccessGraph(background=True) if schema is None else schema.plan
        if not isinstance(graphs, AccessGraph):
            kind = type(graphs).__name__
            raise QueryError(f"a schema must be static graphs, not {kind}", hint="graph('urn:g')")
        return self._with(Entailed(self.plan, graphs))

    def match(self, pattern: str, prefixes: Prefixes | None = None) -> Draft:
        """Match a triple pattern, or the whole content of a group.

        >>> print(graph().match("?x a <T> ; <p> ?y"))
        BasicGraphPattern
        ├─ TriplePatternMatching  ?x a <T>
        │  AccessGraph  default graph
        └─ TriplePatternMatching  ?x <p> ?y
           AccessGraph  default graph
        """
        self._check_kind(triples=True, hint="match reads triples; use join for rows")
        known = {**self.prefixes, **(prefixes or {})}
        plan = fragments.group_plan(pattern, fragments.Host(shape.UNIT, self.plan, known))
        return Draft(plan, known, self.plan)

    def graph(self, name: str | IRI) -> Draft:
        """Wrap a plan that reads `by_hand.graph(name)` in `GRAPH name`.

        If the name is a variable, it is bound to the name of the graph.
        """
        return self._with(Graph(fragments.parse_graph_name(name, self.prefixes), self._rows))

    # -- rows of one plan

    def filter(self, condition: str) -> Draft:
        """Keep the rows that satisfy a condition. EXISTS reads the source of the patterns so far.

        >>> print(values("?x { 1 2 }").filter("?x > 1"))
        Filter  (?x > 1)
        Table  ?x: (1) (2)
        """
        return self._with(fragments.apply_clause(condition, "FILTER(", ")", self._host))

    def extend(self, variable: str, expression: str) -> Draft:
        """Bind a new variable to the value of an expression."""
        new = fragments.parse_variable(variable)
        return self._with(fragments.apply_clause(expression, "BIND(", f"AS {new})", self._host))

    def project(self, variables: str = "*") -> Draft:
        """Keep these variables, or with `*` all visible ones."""
        plan = self._rows
        every = variables.strip() == "*"
        kept = visible_variables(plan) if every else fragments.parse_variables(variables)
        return self._with(shape.Projection(kept, plan))

    def distinct(self) -> Draft:
        """Keep each row, or each triple of a source, once."""
        return self._with(shape.Distinct(self.plan))

    def reduced(self) -> Draft:
        """Permit the removal of duplicates, as REDUCED does."""
        return self._with(shape.Reduced(self._rows))

    def aggregate(self, keys: str = "", *calls: str, having: str | None = None) -> Draft:
        """Group and aggregate: `aggregate("?x", "COUNT(*) AS ?n", "AVG(?y) AS ?mean")`.

        >>> print(values("?x { <a> <b> <b> }").aggregate("?x", "COUNT(*) AS ?n"))
        Aggregation  by ?x: ?n := COUNT(*)
        Table  ?x: (<a>) (<b>) (<b>)
        """
        if not calls and not keys.strip():
            raise QueryError("an aggregation needs keys, or calls such as COUNT(*) AS ?n")
        for call in calls:
            if not re.search(r"\bAS\b", call, re.IGNORECASE):
                raise QueryError(f"missing name for {call!r}", hint=f"{call} AS ?name")
        select = " ".join(f"({call}\n)" for call in calls) or keys
        group_by = f" GROUP BY {keys}\n" * bool(keys.strip())
        having_clause = "" if having is None else f" HAVING ({having}\n)"
        count = len(calls) or len(fragments.parse_variables(keys))
        plan = fragments.apply_modifiers(
            select,
            "SELECT",
            f"{{}}{group_by}{having_clause}",
            self._host,
            items=count,
            group=None,
            having=int(having is not None),
        )
        return self._with(plan)

    def annotate(self, call: str) -> Draft:
        """Add aggregates to each row, as C-SPARQL does: `annotate("(?n, COUNT, {?x})")`."""
        plan = fragments.apply_modifiers(
            call, "SELECT * {} AGGREGATE {", "}", self._host, aggregates=1
        )
        return self._with(plan)

    def order_by(self, keys: str) -> Draft:
        """Sort the rows: `order_by("DESC(?x) ?y")`."""
        plan = fragments.apply_modifiers(keys, "SELECT * {} ORDER BY", "", self._host, order=None)
        return self._with(plan)

    def slice(self, limit: int | None = None, offset: int = 0) -> Draft:
        """Skip `offset` rows, and keep up to `limit` of the others, as OFFSET and LIMIT do."""
        numbers = (offset, 0 if limit is None else limit)
        if any(type(n) is not int or n < 0 for n in numbers):
            raise QueryError(
                f"limit and offset must be non-negative integers, not {limit!r} and {offset!r}"
            )
        plan = self._rows
        return self._with(shape.Slice(offset, limit, tie_breakers(*visible_variables(plan)), plan))

    # -- rows of several plans

    def join(self, *others: Draft) -> Draft:
        """Join plans, from left to right.

        >>> print(values("?x { 1 2 }").join(values("?x { 2 3 }")))
        Join
        ├─ Table  ?x: (1) (2)
        └─ Table  ?x: (2) (3)
        """
        plan = self._rows
        for other in others:
            plan = join.Join(plan, _right_plan(other, plan))
        return self._with_others(plan, *others)

    def left_join(self, other: Draft, condition: str | None = None) -> Draft:
        """Extend rows by their matches in another plan, as OPTIONAL does.

        `condition` is that of a FILTER in the optional group.

        >>> print(values("?x { 1 2 }").left_join(values("?y { 2 3 }"), "?x = ?y"))
        LeftJoin  (?x = ?y)
        ├─ Table  ?x: (1) (2)
        └─ Table  ?y: (2) (3)
        """
        right = _right_plan(other, self._rows)
        joined = join.Join(self.plan, right)
        host = fragments.Host(joined, other.source, self._joint_prefixes(other))
        conditions, context = fragments.left_join_conditions(condition, host)
        plan = set_left_join_in_hierarchy(right, conditions, context)(self.plan)
        return self._with_others(plan, other)

    def minus(self, other: Draft) -> Draft:
        """Remove the rows that are compatible with a row of another plan, as MINUS does."""
        return self._with_others(join.Minus(self._rows, _right_plan(other, self.plan)), other)

    def union(self, *others: Draft) -> Draft:
        """Combine the rows of plans, as UNION does."""
        if not others:
            raise QueryError("a union needs at least two plans")
        plans = [self._rows]
        for other in others:
            plans.append(_right_plan(other, *plans))
        return self._with_others(join.Union(tuple(plans)), *others)

    def semi_join(self, pattern: Draft) -> Draft:
        """Keep the rows for which another plan has a solution, as FILTER EXISTS does."""
        return self._with_others(SemiJoin(self._rows, _right_plan(pattern, self.plan)), pattern)

    def anti_join(self, pattern: Draft) -> Draft:
        """Keep the rows for which another plan has no solution, as FILTER NOT EXISTS does."""
        return self._with_others(AntiJoin(self._rows, _right_plan(pattern, self.plan)), pattern)

    # -- events

    def seq(self, other: Draft) -> Draft:
        """Pair events of which one ends before the other starts, as EP-SPARQL's SEQ does."""
        return self._with_others(event.SeqJoin(self._rows, _right_plan(other, self.plan)), other)

    def equals(self, other: Draft) -> Draft:
        """Pair events with the same occurrence, as EP-SPARQL's EQUALS does."""
        return self._with_others(event.EqJoin(self._rows, _right_plan(other, self.plan)), other)

    def detect(self) -> Draft:
        """Turn events into rows that are valid at the end of the event."""
        return self._with(event.Detect(self._rows))

    # -- forms

    def ask(self) -> Draft:
        """Test whether there is a row, as ASK does."""
        return self._with(Ask(self._rows))

    def construct(self, template: str) -> Draft:
        """Instantiate a template for each row, as CONSTRUCT does."""
        return self._with(Construct(fragments.parse_template(template, self._host), self.plan))

    # -- results

    def at(
        self,
        t: int,
        streams: Any = None,
        graph: Iterable[Any] = (),
        graphs: Mapping[str, Iterable[Any]] | None = None,
    ) -> Snapshot[Any]:
        """Evaluate the plan's definition at an instant; sources are those of `streamsparql.inputs`.

        If the plan reads one stream, `streams` may be the items of that stream.
        """
        from streamsparql.look.definition_inputs import inputs
        from streamsparql.look.equivalence.difference import free_graph_variables

        if type(t) is not int or t < 0:
            raise QueryError(f"an instant must be a number of milliseconds, not {t!r}")
        for variable in free_graph_variables(self.plan):
            raise QueryError(
                f"unbound graph variable {variable}", hint=f"bind it with .graph('{variable}')"
            )
        return self.plan.at(t, inputs(self._streams_by_name(streams), graph, graphs))

    def _streams_by_name(self, streams: Any) -> Mapping[str, Iterable[Any]]:
        read = {node.stream.value for node in self.plan.walk() if isinstance(node, AccessStream)}
        names = ", ".join(f"<{name}>" for name in sorted(read)) or "no stream"
        if streams is None or isinstance(streams, Mapping):
            by_name = {_stream_name(name): items for name, items in (streams or {}).items()}
            for name in by_name.keys() - read:
                raise QueryError(f"unknown stream <{name}>; the plan reads {names}")
            return {**dict.fromkeys(read, ()), **by_name}
        if len(read) != 1:
            raise QueryError(f"streams must be a mapping by name; the plan reads {names}")
        return {read.pop(): streams}

    def equivalent(
        self, other: Draft | Plan | CompiledQuery, trials: int = 200, seed: int = 0
    ) -> Equivalence:
        """Compare with another plan or query over random data: `streamsparql.look.equivalence`."""
        from streamsparql.look.equivalence import equivalent

        return equivalent(self.plan, _plan_of(other), trials, seed)

    def rewrites(self, check: bool = False, trials: int = 50, seed: int = 0) -> Rewrites:
        """Return the applications of rewriting rules to the plan: `streamsparql.look.rewrites`."""
        from streamsparql.look.rewrites import rewrites

        return rewrites(self.plan, self.prefixes, check=check, trials=trials, seed=seed)

    @property
    def optimized(self) -> Draft:
        """A draft with the optimised plan."""
        from streamsparql.algebra.rewrite import rewrite

        return self._with(rewrite(self.plan).plan)

    def query(self, dialect: str = "streaming") -> Query:
        """Return a query of a dialect with this plan; raise `UnsupportedFeature` if there is none.

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

        nodes = list(self.plan.walk())
        origin = max((getattr(node, "origin", 0) for node in nodes), default=0)
        entailment = "rdfs" if reads_entailed(self.plan) else None
        return streamsparql.compile(
            unparse(self.plan, dialect), dialect, origin=origin, entailment=entailment
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Draft | Plan):
            return self.plan == (other.plan if isinstance(other, Draft) else other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.plan)

    def __str__(self) -> str:
        from streamsparql.look.explain.boxes.logical import plan_box
        from streamsparql.look.explain.formats.plain_text import tree_text

        return tree_text(plan_box(self.plan, self.prefixes))

    def _repr_html_(self) -> str:
        from streamsparql.look.explain.boxes.logical import plan_box
        from streamsparql.look.explain.formats.html import stage_html

        return stage_html(plan_box(self.plan, self.prefixes))

    # -- parts

    @property
    def _rows(self) -> Plan:
        """The plan, after a check that it emits rows."""
        if isinstance(self.plan, Ask | Construct | Describe):
            kind = type(self.plan).__name__
            raise QueryError(f"{kind} must be the last operator of a plan: it does not emit rows")
        self._check_kind(triples=False, hint="match a pattern first: .match('?x ?p ?y')")
        return self.plan

    @property
    def _host(self) -> fragments.Host:
        return fragments.Host(self._rows, self.source, self.prefixes)

    def _check_window_input(self) -> None:
        """Raise unless the plan is a stream, or processes its items one by one."""
        below = self.plan
        while isinstance(below, Elementwise):
            (below,) = below.inputs
        if not isinstance(below, AccessStream):
            kind = type(below).__name__
            raise QueryError(
                "a window must be over a stream, or over operators that process its items one by"
                f" one, not over {kind}",
                hint='start with access("s").window(..)',
            )

    def _check_kind(self, *, triples: bool, hint: str) -> None:
        """Raise unless the plan emits triples, or rows."""
        if _emits_triples(self.plan) is not triples:
            kind = type(self.plan).__name__
            actual, expected = ("rows", "triples") if triples else ("triples", "rows")
            raise QueryError(f"expected {expected} here, but {kind} emits {actual}", hint=hint)

    def _joint_prefixes(self, *others: Draft) -> Prefixes:
        """Return the prefixes of several drafts; those of the first take precedence."""
        known: dict[str, str] = {}
        for each in reversed((self, *others)):
            known |= each.prefixes
        return known

    def _with(self, plan: Plan) -> Draft:
        return Draft(plan, self.prefixes, self.source)

    def _with_others(self, plan: Plan, *others: Draft) -> Draft:
        return Draft(plan, self._joint_prefixes(*others), self.source)


def _stream_name(name: Any) -> str:
    return name.value if isinstance(name, IRI) else str(name)


def _merged_sources(plan: Plan) -> tuple[Plan, ...]:
    return plan.sources if isinstance(plan, Merge) else (plan,)


def _right_plan(other: Draft, *left: Plan) -> Plan:
    """Return a plan with hidden variables that differ from those of the plans on its left."""
    if not isinstance(other, Draft):
        raise QueryError(f"expected a draft, not a {type(other).__name__}", hint="draft(plan)")
    counts: dict[PlanKind, int] = {}
    for plan in left:
        counts |= {
            kind: max(n, counts.get(kind, 0)) for kind, n in fragments.count_hidden(plan).items()
        }
    return fragments.renumber_hidden(other._rows, counts)


def _emits_triples(plan: Plan) -> bool:
    while isinstance(plan, Window | shape.Distinct | Merge | Entailed):
        plan = plan.inputs[0]
    return isinstance(plan, AccessStream | AccessGraph)


def _plan_of(other: Draft | Plan | CompiledQuery) -> Plan:
    from streamsparql.compiled import CompiledQuery

    if isinstance(other, Plan):
        return other
    if not isinstance(other, Draft | CompiledQuery):
        raise QueryError(f"expected a plan or a query, not a {type(other).__name__}")
    return other.plan if isinstance(other, Draft) else other.logical
