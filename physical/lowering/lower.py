"""From logical plans to physical ones: which operators compute a plan, over which data.

`lower` goes through a logical plan bottom up. Equal subplans become one operator, whose rows all
who read them share. What is static and needs nothing but its own rows is worked out here, once; a
pattern over a stream and the background graph becomes a union of the two, and where the graph has
nothing to match, there is no union.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamsparql.algebra import access, event, match, shape
from streamsparql.algebra import path as p
from streamsparql.algebra import window as w
from streamsparql.algebra.align import Align
from streamsparql.algebra.functions import Run
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, Term
from streamsparql.algebra.trampoline import Steps
from streamsparql.algebra.trampoline import run as run_steps
from streamsparql.errors import EngineError, UnsupportedFeature
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import BatchExpression, compile_expression
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import FROM, TO
from streamsparql.physical.lowering.lower_exists import Outer, Sighted, at_leaf
from streamsparql.physical.lowering.lower_operators import OPERATORS
from streamsparql.physical.lowering.lower_path import Ends, ways
from streamsparql.physical.operator import Operator, Stateless
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.columns import Rename, SelectBound, SelectEqual
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.report import Clip
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.operators.window import (
    AlignToReports,
    ElementWindow,
    SteppedTupleWindow,
    TimeWindow,
    TupleWindow,
)


@dataclass(frozen=True)
class Catalog:
    """The static graphs of a run, as batches of triples: the default one and the named ones.

    A plan that is lowered to be looked at has no run: its graphs are not `known`.
    """

    default: Batch = field(default_factory=lambda: Batch.empty(TRIPLE))
    named: Mapping[IRI, Batch] = field(default_factory=dict)
    known: bool = True
    results: Mapping[Plan, Batch] = field(default_factory=dict)
    """What static plans give, where that was worked out beforehand."""


@dataclass(frozen=True)
class Share:
    """The part of time that a plan is computed for, where it is not all of it.

    Windows give what holds within `[begin, end)`, those that count elements go on from `ranks`: how
    many elements came to each before the first that is given.
    """

    begin: int = 0
    end: int = INFINITY
    ranks: Mapping[w.ElementWindow, int] = field(default_factory=dict)


class Lowered(NamedTuple):
    """An operator, and how its rows are ordered where they are."""

    operator: Operator
    ranking: Ranking | None = None

    @property
    def plain(self) -> Operator:
        """The operator without the columns that only order its rows."""
        if self.ranking is None:
            return self.operator
        kept = [n for n in self.operator.names if n not in self.ranking.columns]
        return projected_to(self.operator, kept)


class At(NamedTuple):
    """Where in a query a plan stands: under which outer rows, in which `GRAPH ?g`."""

    outer: Outer | None = None
    graphs: tuple[tuple[Variable, IRI], ...] = ()

    def below_names_of(self, *variables: Variable) -> At:
        """The place below an operator that makes these variables: they are others there."""
        return self if self.outer is None else self._replace(outer=self.outer.without(variables))


HERE = At()


def lower(
    plan: Plan, terms: TermDictionary, run: Run, catalog: Catalog, share: Share | None = None
) -> Lowered:
    """The physical plan of a logical one; `share` is the part of time that it is for.

    >>> from streamsparql.algebra.shape import UNIT
    >>> type(lower(UNIT, TermDictionary(), Run(), Catalog()).operator).__name__
    'Always'
    """
    refuse_events(plan)
    return run_steps(Lowering(terms, run, catalog, share).plan(plan, HERE))


EVENTS: dict[type[Plan], str] = {
    event.SeqJoin: "SEQ",
    event.EqJoin: "EQUALS",
    event.SeqRightJoin: "OPTIONALSEQ",
    event.EqLeftJoin: "EQUALSOPTIONAL",
    event.Closure: "CONSTRUCT rules",
}
"""The nodes that no operator computes, as a query writes them."""


def refuse_events(plan: Plan) -> None:
    """A plan of events has a meaning and no operators: it is refused in the query's own words.

    >>> from streamsparql.algebra.shape import UNIT
    >>> refuse_events(event.SeqJoin(UNIT, UNIT))
    Traceback (most recent call last):
    streamsparql.errors.UnsupportedFeature: the engine does not run SEQ of EP-SPARQL
    hint: evaluate the query's definition instead: query.logical.at(t, streamsparql.inputs(..))
    """
    kinds = {type(node) for node in plan.walk()}
    if kinds.isdisjoint((*EVENTS, event.Detect)):
        return
    found = [words for kind, words in EVENTS.items() if kind in kinds] or ["the event patterns"]
    raise UnsupportedFeature(
        f"the engine does not run {', '.join(found)} of EP-SPARQL",
        hint="evaluate the query's definition instead:"
        " query.logical.at(t, streamsparql.inputs(..))",
    )


class Lowering:
    """What stays the same while a plan is lowered."""

    def __init__(
        self, terms: TermDictionary, run: Run, catalog: Catalog, share: Share | None
    ) -> None:
        self.terms, self.run, self.catalog, self.share = terms, run, catalog, share
        self._done: dict[tuple[Plan, tuple[tuple[Variable, IRI], ...]], Lowered] = {}
        self._made = 0

    def plan(self, node: Plan, at: At) -> Steps[Lowered]:
        """The operators of a plan; those of an equal plan at an equal place are the same."""
        if at.outer is not None:
            return _computing(node, (yield self._node(node, at)))
        key = (node, at.graphs)
        if key not in self._done:
            self._done[key] = _computing(node, (yield self._node(node, at)))
        return self._done[key]

    def rows(self, node: Plan, at: At) -> Steps[Operator]:
        """The operators of a plan whose order is of no interest."""
        lowered = yield self.plan(node, at)
        return lowered.plain

    def _node(self, node: Plan, at: At) -> Steps[Lowered]:
        if node in self.catalog.results:
            yield from ()
            rows = Always(self.catalog.results[node], "worked out beforehand")
            return Lowered(rows if at.outer is None else at_leaf(rows, at.outer, self.terms))
        if isinstance(node, p.Path):
            return Lowered((yield self._path(node, at)))
        leaf = self._leaf(node)
        if leaf is None:
            made: Lowered = yield OPERATORS[type(node)](self, node, at)
            return made
        rows = yield leaf(node, at)
        return Lowered(rows if at.outer is None else at_leaf(rows, at.outer, self.terms))

    def _leaf(self, node: Plan) -> Callable[..., Steps[Operator]] | None:
        match node:
            case match.TriplePatternMatching():
                return self._matching
            case w.Window() | Align():
                return self._window
            case shape.Table():
                return self._table
        return None

    # -- leaves: where variables get their values

    def _matching(self, node: match.TriplePatternMatching, at: At) -> Steps[Operator]:
        sources = node.input.sources if isinstance(node.input, access.Merge) else (node.input,)
        found: list[Operator] = []
        for source in sources:
            alone = match.TriplePatternMatching(node.pattern, source, node.stamps)
            if alone in self.catalog.results:
                found.append(Always(self.catalog.results[alone], "worked out beforehand"))
                continue
            data = yield self._data(source, at)
            matching = TriplePatternMatching(data, node.pattern, self.terms, node.stamps)
            matching.node = alone
            found.append(self.fold(matching))
        return self.union(found)

    def _data(self, node: Plan, at: At) -> Steps[Operator]:
        """What triple patterns read: they look at no outer row."""
        lowered = yield self.plan(node, At(graphs=at.graphs))
        return lowered.plain

    def _window(self, node: w.Window | Align, at: At) -> Steps[Operator]:
        data = yield self._data(node.input, at)
        if isinstance(node, Align):
            return AlignToReports(data, node)
        made = self._windowed(data, node)
        if self.share is None:
            return made
        made.node = node
        if isinstance(made, ElementWindow):
            made.rank = self.share.ranks.get(made.window, 0)
        return Clip(made, self.share.begin, self.share.end)

    def _windowed(self, data: Operator, node: w.Window) -> Operator:
        match node:
            case w.TimeWindow():
                return TimeWindow(data, node)
            case w.SlidingTupleWindow():
                return TupleWindow(data, node)
            case w.SteppedTupleWindow():
                return SteppedTupleWindow(data, node)
            case w.ElementWindow():
                return ElementWindow(data, node)
        raise EngineError(f"no operator for {type(node).__name__}")

    def _table(self, node: shape.Table, at: At) -> Steps[Operator]:
        yield from ()
        ids = [[self.id(term) for term in row] for row in node.rows]
        table = np.array(ids, np.int64).reshape(len(ids), len(node.variables))
        columns = {v.name: table[:, k].copy() for k, v in enumerate(node.variables)}
        return Always.of(columns, len(ids), "VALUES" if columns else "unit")

    def _path(self, node: p.Path, at: At) -> Steps[Operator]:
        data = yield self._data(node.input, at)
        if data.names != TRIPLE:
            data = projected_to(data, TRIPLE)
        places = ((node.subject, FROM), (node.object, TO))
        fixed = [self._term_row(end, name) for end, name in places if not isinstance(end, Variable)]
        if at.outer is None:
            return self._connected(node, (yield ways(node.path, data, _ends(fixed), self.terms)))
        found = []
        for known in _subsets([n for n in ("subject", "object") if self._seen(node, n, at.outer)]):
            outer, rows = self._knowing(node, known, at.outer)
            pairs = yield ways(node.path, data, _ends([*fixed, *rows]), self.terms)
            found.append(at_leaf(self._connected(node, pairs), outer, self.terms))
        return self.union(found)

    def _seen(self, node: p.Path, place: str, outer: Outer) -> bool:
        end = getattr(node, place)
        return isinstance(end, Variable) and bool(outer.seen([end.name]))

    def _knowing(
        self, node: p.Path, known: frozenset[str], outer: Outer
    ) -> tuple[Outer, list[Operator]]:
        """The outer rows that bind just these ends, and the ends, where ways of length zero are."""
        bound = {}
        for place in ("subject", "object"):
            if self._seen(node, place, outer):
                bound[outer.bindings[getattr(node, place).name]] = place in known
        rows = SelectBound(outer.rows, bound)
        names = {"subject": FROM, "object": TO}
        ends = {names[place]: outer.bindings[getattr(node, place).name] for place in sorted(known)}
        return outer._replace(rows=rows), [Rename(rows, {n: c}) for n, c in ends.items()]

    def _term_row(self, term: Term, name: str) -> Operator:
        return Always.of({name: np.array([self.id(term)], np.int64)}, 1)

    def _connected(self, node: p.Path, pairs: Operator) -> Operator:
        """The pairs of a path as solutions of its ends."""
        columns: dict[str, str] = {}
        equal: list[tuple[str, str | int]] = []
        for end, name in ((node.subject, FROM), (node.object, TO)):
            if not isinstance(end, Variable):
                equal.append((name, self.id(end)))
            elif end.name in columns:
                equal.append((columns[end.name], name))
            else:
                columns[end.name] = name
        found = SelectEqual(pairs, equal) if equal else pairs
        return Rename(found, columns)

    # -- what all of them need

    def made(self, operator: Operator, ranking: Ranking | None = None) -> Lowered:
        """An operator, or its rows where they are known."""
        return Lowered(self.fold(operator), ranking)

    def over(self, rows: Lowered, operator: Operator) -> Lowered:
        """An operator that keeps the order of the rows that it works on."""
        return rows._replace(operator=self.fold(operator))

    def fold(self, operator: Operator) -> Operator:
        """The operator, or its rows where they are known: static data is worked out once."""
        static = isinstance(operator, Stateless) and isinstance(operator.inputs[0], Always)
        if static and self.catalog.known:
            assert isinstance(operator, Stateless)
            assert isinstance(operator.inputs[0], Always)
            rows = operator.inputs[0].rows
            made = operator.apply(rows) if len(rows) else operator.nothing()
            known = Always(made.project(operator.names), operator.facts())
            known.node = operator.node
            return known
        return operator

    def union(self, branches: Sequence[Operator]) -> Operator:
        """The union of the branches that can have rows."""
        if len(branches) == 1:
            return branches[0]
        names = {name for each in branches for name in each.names}
        alive = [each for each in branches if not self._never(each)]
        if len(alive) == 1 and set(alive[0].names) == names:
            return alive[0]
        return Union(*branches)

    def _never(self, operator: Operator) -> bool:
        """Whether an operator is known to have no rows."""
        return self.catalog.known and isinstance(operator, Always) and not len(operator.rows)

    def compiled(self, expression: Expression, at: At) -> BatchExpression:
        """An expression, which sees the outer row of its place too."""
        made = compile_expression(expression, self.terms, self.run)
        if at.outer is None:
            return made
        names = {v.name for v in expression.walk() if isinstance(v, Variable)}
        seen = at.outer.seen(sorted(names))
        return Sighted(made, seen) if seen else made

    def id(self, term: Term | None) -> int:
        """The id of a term that stands in the query, 0 of none."""
        return 0 if term is None else self.terms.id_of(term, keep=True)

    def new_row(self) -> int:
        """What tells those who carry an outer row's number from all others that do."""
        self._made += 1
        return self._made


def _computing(node: Plan, made: Lowered) -> Lowered:
    """Notes what an operator is there for."""
    if made.operator.node is None and isinstance(node, made.operator.implements):
        made.operator.node = node
    return made


def _ends(rows: Sequence[Operator]) -> Ends:
    return Ends(
        tuple(each for each in rows if each.names == (FROM,)),
        tuple(each for each in rows if each.names == (TO,)),
    )


def _subsets(names: Sequence[str]) -> list[frozenset[str]]:
    found = [frozenset[str]()]
    for name in names:
        found += [each | {name} for each in found]
    return found
