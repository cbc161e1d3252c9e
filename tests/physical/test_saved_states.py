"""Operators whose state is saved in the middle of a run and restored by new operators.

Each operator is driven by random cases. After a random step its state is written as Arrow IPC and
read by a new operator over a new dictionary, which has only the terms in use, so that new terms get
other ids. From then on rows, watermarks, sizes and contents must be those of a run without
interruption.

Whole plans are tested in test_saved_pipelines.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.restored import Observation, observe, restored_dictionary, through_ipc, undeclared
from support.schemas import triples_of
from support.steps import Case, DrivenInput, Row, cases, rows_over, steps_of_case

from streamsparql.algebra import window as w
from streamsparql.algebra.align import Align
from streamsparql.algebra.entailment import DOMAIN, SUBCLASS, SUBPROPERTY, TYPE
from streamsparql.algebra.expressions import OCCURRENCE, And, Constant
from streamsparql.algebra.expressions import Call as Function
from streamsparql.algebra.functions import Run
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, XSD, Literal, integer
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.inline_ids import INTEGER_BASE
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.entailment.schema import Schema
from streamsparql.physical.expressions.compiler import CompiledExpression, compile_expression
from streamsparql.physical.expressions.occurrence import EventCondition, EventExpression
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.hidden import QUERY, SINCE
from streamsparql.physical.kernels.occurrences import STATIC, since_of
from streamsparql.physical.lowering.lower_exists import OuterRows
from streamsparql.physical.operator import Operator, Stateless, StepResult
from streamsparql.physical.operators import event_absence
from streamsparql.physical.operators import group as physical_group
from streamsparql.physical.operators.access import Always, Clock, StreamAccess
from streamsparql.physical.operators.band_join import BandCondition, BandJoin
from streamsparql.physical.operators.columns import (
    Constants,
    Rename,
    SelectBound,
    SelectEqual,
    SelectNotIn,
    Tag,
)
from streamsparql.physical.operators.consolidate import Consolidate
from streamsparql.physical.operators.entailment import Entailed, EntailedMatching, Entailing
from streamsparql.physical.operators.event import (
    EqJoin,
    EqLeftJoin,
    EventJoin,
    EventLeftJoin,
    NeverBefore,
    SeqJoin,
    SeqRightJoin,
)
from streamsparql.physical.operators.event_absence import SeqWithout
from streamsparql.physical.operators.event_sets import (
    Detect,
    DistinctEvents,
    FirstToEnd,
    LastToStart,
    Occurring,
    PointEvents,
)
from streamsparql.physical.operators.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.physical.operators.graph import Construct, SelectSort
from streamsparql.physical.operators.group import Aggregation, Annotate, ColumnAggregate
from streamsparql.physical.operators.join import Join, Minus, Union
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.multi_join import MultiJoin
from streamsparql.physical.operators.outputs import OutputStream, Since
from streamsparql.physical.operators.path import TransitiveClosure
from streamsparql.physical.operators.queries import QueryTable, SelectQueries
from streamsparql.physical.operators.report import Clip, Reports, TemporalCoalesce
from streamsparql.physical.operators.shape import (
    Distinct,
    Extend,
    LatestStamps,
    Number,
    OrderBy,
    Projection,
)
from streamsparql.physical.operators.slice import Slice
from streamsparql.physical.operators.window import (
    AlignToReports,
    ElementWindow,
    SteppedTupleWindow,
    TimeWindow,
    TupleWindow,
)
from streamsparql.physical.rule_closure import Feed, RuleClosure
from streamsparql.physical.state import heap, key_slots, sweep_area
from streamsparql.physical.state.band_area import Border, Borders


def number(lexical: str, kind: str = "integer") -> str:
    return f'"{lexical}"^^<{XSD}{kind}>'


NODES = [None, "<http://e/a>", "<http://e/b>", "<http://e/c>", "_:n", '"x"', '"\\uD800"']
VALUES = [
    *(number(x, "double") for x in ("0.1", "0.2", "22.50", "1e300", "-1e300", "INF", "1E-300")),
    *(number(x) for x in ("1", "2", "-7", "9007199254740993", "123456789012345678901234567890")),
    *(number(x, "decimal") for x in ("0.1", "2.50", "0.00000001")),
    number("0.1", "float"),
    '"y"@en',
]
STAMPS = [number(str(k)) for k in (900, 1700, 5)]
NUMBERS = [number(str(k)) for k in range(101, 107)]
TEXTS = [*NODES, *VALUES, *STAMPS, *NUMBERS]
"""The texts of terms; the ids of rows in cases are positions in this list."""
node = st.integers(0, len(NODES) - 1)
value = st.integers(0, len(NODES) + len(VALUES) - 1)
stamp = st.sampled_from([0, *map(TEXTS.index, STAMPS)])
tying = st.sampled_from([0, 1, 1, 2, 2, 3])
nodes = rows_over([tying, tying, tying])
nodes_and_values, bands = rows_over([tying, value]), rows_over([tying, value, value])
S = UNIT
X, A, B, Y, V = (Variable(name) for name in "xabyv")
B_ = IRI("http://e/b")
XYA, BYX = ("x", "y", "a"), ("b", "y", "x")


def differ(terms: TermDictionary) -> CompiledExpression:
    return compile_expression(Function("!=", (A, B)), terms, Run())


SCHEMA = [
    ("<http://e/a>", str(SUBPROPERTY), "<http://e/b>"),
    ("<http://e/b>", str(DOMAIN), "<http://e/c>"),
    ("<http://e/c>", str(SUBPROPERTY), str(TYPE)),
    ("<http://e/c>", str(SUBCLASS), "<http://e/b>"),
]


class Kind(NamedTuple):
    """A kind of operator: its factory, the columns of its inputs, and its cases."""

    make: Callable[..., Operator]
    names: Sequence[Sequence[str]]
    cases: st.SearchStrategy[Case]
    before: Callable[[Operator, int], None] = lambda operator, mark: None
    """Called before each step, with the least watermark."""


def binary(make: Callable[..., Operator]) -> Kind:
    return Kind(make, [XYA, BYX], cases(nodes, nodes))


def unary(make: Callable[..., Operator], *columns: st.SearchStrategy[int]) -> Kind:
    strategies = columns or (tying, tying)
    names = ("x", "y", "z")[: len(strategies)]
    return Kind(make, [names], cases(rows_over(strategies), max_rows=14))


def entailed(make: Callable[[Operator, Schema], Operator]) -> Kind:
    """Return an operator with a schema, which is read from the static graphs again."""

    def over_schema(terms: TermDictionary, source: Operator) -> Operator:
        return make(source, Schema(triples_of(terms, SCHEMA), terms))

    columns = [st.integers(0, 4), st.integers(1, 3), st.integers(0, 4)]
    return Kind(over_schema, [TRIPLE], cases(rows_over(columns), max_rows=14))


def grouped(keys: list[str], *calls: ColumnAggregate, annotate: bool = False) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        if annotate:
            return Annotate(source, keys, calls[0], terms)
        return Aggregation(source, keys, calls, terms)

    return Kind(make, [("k", "x", "y")], cases(rows_over([tying, value, value]), max_rows=12))


@st.composite
def matches_of_left_rows(draw: st.DrawFn) -> Case:
    """Draw numbered left rows, and matches within their validity that do not arrive before them."""
    case = draw(cases(rows_over([tying, tying]), rows_over([st.integers(0, 20), tying])))
    lefts, pieces = case.inputs
    numbers = map(TEXTS.index, NUMBERS)
    numbered = [left._replace(ids=(*left.ids, n)) for left, n in zip(lefts, numbers, strict=False)]
    matches, arrivals = [], []
    for piece, when in zip(pieces, case.arrivals[1], strict=True):
        if numbered:
            k = piece.ids[0] % len(numbered)
            left = numbered[k]
            start, end = max(piece.start, left.start), min(piece.end, left.end)
            if start < end:
                matches.append(Row((left.ids[2], piece.ids[1]), start, end, piece.count))
                arrivals.append(max(when, case.arrivals[0][k]))
    left_arrivals = case.arrivals[0][: len(numbered)]
    return Case((tuple(numbered), tuple(matches)), (left_arrivals, tuple(arrivals)), case.steps)


def horizon(operator: Operator, mark: int) -> None:
    """Set the start of the horizon of a Clip to 4 once the watermark reaches it."""
    assert isinstance(operator, Clip)
    if mark >= 4:
        operator.begin = 4


def clock(operator: Operator, mark: int) -> None:
    """Set the clock of a Reports, and the start of its horizon."""
    assert isinstance(operator, Reports)
    operator.clock = max(mark, -1)
    if operator.begin is None and mark > 0:
        operator.begin = max(mark - 30, 0)


def reports(kind: str, every: int | None) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        return Reports(source, kind, every)  # type: ignore[arg-type]

    return Kind(make, [("x", "y")], cases(rows_over([tying, tying])), clock)


def elements() -> st.SearchStrategy[Case]:
    """Return a strategy for streams: rows of one instant, sorted by time over all steps."""

    def ordered(case: Case) -> Case:
        rows = tuple(row._replace(end=row.start + 1) for row in case.inputs[0])
        return case._replace(inputs=(rows,), arrivals=(tuple(sorted(case.arrivals[0])),))

    return cases(rows_over([tying]), max_rows=14).map(ordered)


def sliced(offset: int, limit: int | None, **options: Sequence[str]) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        ranking = Ranking((("x", True), ("y", False)), ("z",))
        return Slice(source, ranking, terms, offset, limit, **options)

    return unary(make, value, tying, tying)


EVENT, OTHER_EVENT = ("x", "y", SINCE), ("y", "z", SINCE)


def occurrences(*inputs: tuple[int, bool]) -> st.SearchStrategy[Case]:
    """Draw events: of each input the number of variables, and whether some rows are static.

    The last id of a row is the duration of the event, 4 for a static solution.
    """

    def of_events(case: Case) -> Case:
        rows = tuple(tuple(map(of_event, rows)) for rows in case.inputs)
        return case._replace(inputs=rows)

    def of_event(row: Row) -> Row:
        static = row.ids[-1] == 4
        return row._replace(end=INFINITY if static else row.start + 1, count=1)

    kinds = [
        rows_over([tying] * width + [st.integers(0, 4 if static else 3)], counted=False)
        for width, static in inputs
    ]
    return cases(*kinds, max_rows=14).map(of_events)


def start_at_four(operator: Operator, mark: int) -> None:
    """Set the first instant of the input to 4 once the watermark reaches it."""
    assert isinstance(operator, Detect | EventLeftJoin)
    if mark >= 4:
        operator.begin = 4


def read_condition(terms: TermDictionary, *read: str) -> EventCondition:
    """Return the condition that two columns differ, and on events of less than 5 ms."""
    short = Constant(Literal("PT0.005S", IRI(XSD + "duration")))
    one, other = map(Variable, read)
    condition = And(
        (Function("!=", (one, other)), Function("<", (OCCURRENCE["GETDURATION"], short)))
    )
    return EventCondition(
        condition,
        lambda part: EventExpression(part, compile_expression(part, terms, Run()), terms),
    )


def transitive(terms: TermDictionary, source: Operator) -> RuleClosure:
    """Return the closure of triples under `?x ?p ?y SEQ ?y ?p ?z`."""
    derived, entering = Feed.of_triples("derived"), Feed("1", source.names)
    both = Union(entering, derived)
    x, y, z, p = map(Variable, "xyzp")
    one = TriplePatternMatching(both, TriplePattern(x, p, y), terms)
    other = TriplePatternMatching(both, TriplePattern(y, p, z), terms)
    pairs = DistinctEvents(Occurring(SeqJoin(one, other, 8), (), terms))
    root = Rename(pairs, {**dict(zip(TRIPLE, "xpz", strict=True)), SINCE: SINCE})
    return RuleClosure(root, derived, [(entering, source)], (), terms)


def in_batches(rules: RuleClosure) -> RuleClosure:
    """Return rules that are not evaluated row by row."""
    rules._rows, rules._by_row = None, False
    return rules


def changing(rules: RuleClosure) -> RuleClosure:
    """Return rules that are evaluated by row and by column in turns."""
    rules._changes = lambda *_: True  # type: ignore[method-assign]
    return rules


def with_absence(terms: TermDictionary, source: Operator) -> RuleClosure:
    """Return the closure of triples under a rule with all operators on pairs that can be by row."""
    derived, entering = Feed.of_triples("derived"), Feed("1", source.names)
    both = Union(entering, derived)
    x, y, z, v, w, p = map(Variable, "xyzvwp")
    one = TriplePatternMatching(both, TriplePattern(x, p, y), terms)
    other = TriplePatternMatching(both, TriplePattern(y, p, z), terms)
    third = TriplePatternMatching(both, TriplePattern(x, p, z), terms)
    left = Union(EventJoin(one, other, 6), EqJoin(EventJoin(one, other), third))
    right = TriplePatternMatching(entering, TriplePattern(v, p, w), terms)
    absent = TriplePatternMatching(entering, TriplePattern(w, p, w), terms)
    pairs = Occurring(SeqWithout(left, right, absent, 6), (), terms)
    root = Rename(pairs, {**dict(zip(TRIPLE, "xpw", strict=True)), SINCE: SINCE})
    return RuleClosure(root, derived, [(entering, source)], (), terms)


def event_pairs(make: Callable[..., Operator], static: bool = False) -> Kind:
    return Kind(make, [EVENT, OTHER_EVENT], occurrences((2, static), (2, static)))


EVENT_KINDS: dict[str, Kind] = {
    "event join": event_pairs(lambda terms, a, b: EventJoin(a, b, 5), True),
    "seq": event_pairs(lambda terms, a, b: SeqJoin(a, b), True),
    "seq within a bound": event_pairs(lambda terms, a, b: SeqJoin(a, b, 6)),
    "equals": event_pairs(lambda terms, a, b: EqJoin(a, b)),
    "optionalseq": event_pairs(lambda terms, a, b: SeqRightJoin(a, b, 5), True),
    "optionalseq with a condition": event_pairs(
        lambda terms, a, b: SeqRightJoin(a, b, 9, read_condition(terms, "x", "z"), 5)
    ),
    "equalsoptional": event_pairs(lambda terms, a, b: EqLeftJoin(a, b), True),
    "optional event": event_pairs(lambda terms, a, b: EventLeftJoin(a, b, 6), True)._replace(
        before=start_at_four
    ),
    "never before": event_pairs(lambda terms, a, b: NeverBefore(a, b), True),
    "never before, with a condition": event_pairs(
        lambda terms, a, b: NeverBefore(a, b, read_condition(terms, "x", "z"), 5)
    ),
    **{
        f"without, {on}": Kind(
            lambda terms, a, b, c, within=within: SeqWithout(a, b, c, within),
            [EVENT, OTHER_EVENT, (on, "b", SINCE)],
            occurrences((2, False), (2, False), (2, True)),
        )
        for on, within in (("y", INFINITY), ("x", 7), ("z", 7), ("a", 5))
    },
    "first to end": Kind(
        lambda terms, source: FirstToEnd(source, 8), [("x", SINCE)], occurrences((1, True))
    ),
    "last to start": Kind(
        lambda terms, source: LastToStart(source), [("x", SINCE)], occurrences((1, False))
    ),
    "distinct events": Kind(
        lambda terms, source: DistinctEvents(source), [("x", SINCE)], occurrences((1, True))
    ),
    "detect": Kind(
        lambda terms, source: Detect(source, [".duration"], terms),
        [("x", SINCE)],
        occurrences((1, True)),
        start_at_four,
    ),
    "points": unary(lambda terms, source: PointEvents(source)),
    "occurring": Kind(
        lambda terms, source: Occurring(source, [".duration"], terms),
        [("x", SINCE)],
        occurrences((1, True)),
    ),
    **{
        name: Kind(make, [(*TRIPLE, SINCE)], occurrences((3, True)))
        for name, make in {
            "rules": transitive,
            "rules with absence": with_absence,
            "rules in batches": lambda terms, source: in_batches(transitive(terms, source)),
            "rules by instants": lambda terms, source: in_batches(with_absence(terms, source)),
            "changing rules": lambda terms, source: changing(transitive(terms, source)),
            "changing rules with absence": lambda terms, source: changing(
                with_absence(terms, source)
            ),
        }.items()
    },
}


def band_join(
    terms: TermDictionary, rows: Operator, queries: Operator, indexed: bool = True
) -> Operator:
    above, below = Function(">", (V, Variable("lo"))), Function("<=", (V, Variable("hi")))
    condition = And((above, below))
    borders = Borders("v", [Border("lo", True)], [Border("hi", False)], terms)
    compiled = compile_expression(condition, terms, Run())
    known = BandCondition(condition, compiled, borders if indexed else None, complete=True)
    return BandJoin(rows, queries, ["q"], known, terms)


def add(operator: Operator, mark: int) -> None:
    """Add a query to a table, and remove another one, at some watermarks."""
    assert isinstance(operator, QueryTable)
    if 0 <= mark < 100 and mark % 2:
        numbers = np.array([INTEGER_BASE + mark])
        operator.add(numbers, [numbers], mark)
    if 0 <= mark < 100 and mark % 3 == 0:
        operator.remove(np.array([INTEGER_BASE + mark - 2]))


def exclude(operator: Operator, mark: int) -> None:
    """Exclude the rows of a query, at some watermarks."""
    assert isinstance(operator, SelectQueries)
    if 0 <= mark < 100 and mark % 2:
        operator.exclude(np.array([INTEGER_BASE + mark]), mark + 3)


SUMS = [
    ColumnAggregate("s", "SUM", "x"),
    ColumnAggregate("n", "COUNT"),
    ColumnAggregate("a", "AVG", "y"),
    ColumnAggregate("c", "COUNT", "y"),
]
ORDERED = [
    ColumnAggregate("i", "MIN", "x"),
    ColumnAggregate("j", "MAX", "y"),
    ColumnAggregate("k2", "SAMPLE", "x"),
]
SETS = [
    ColumnAggregate("d", "COUNT", None, True),
    ColumnAggregate("e", "SUM", "x", True),
    ColumnAggregate("f", "AVG", "y", True),
]
KINDS: dict[str, Kind] = {
    "join": binary(lambda terms, a, b: Join(a, b, terms)),
    "multi join": Kind(
        lambda terms, *inputs: MultiJoin(inputs),
        [("x", "y"), ("y", "z"), ("z", "x")],
        cases(*[rows_over([tying, tying])] * 3, max_rows=7),
    ),
    "left join": binary(lambda terms, a, b: LeftJoin(a, b)),
    "left join with a condition": binary(lambda terms, a, b: LeftJoin(a, b, differ(terms), terms)),
    "left join on": Kind(
        lambda terms, a, b: LeftJoinOn(a, b, "n"),
        [("x", "y", "n"), ("n", "b")],
        matches_of_left_rows(),
    ),
    "minus": binary(lambda terms, a, b: Minus(a, b)),
    "semi join": binary(lambda terms, a, b: SemiJoin(a, b)),
    "anti join": binary(lambda terms, a, b: AntiJoin(a, b)),
    "anti join on columns": binary(lambda terms, a, b: AntiJoin(a, b, [("a", "b"), ("y", "x")])),
    "mark": binary(lambda terms, a, b: Mark(a, b, None, "m", terms)),
    "mark on columns": binary(lambda terms, a, b: Mark(a, b, [("a", "b")], "m", terms)),
    "union": binary(lambda terms, a, b: Union(a, b)),
    "distinct": unary(lambda terms, source: Distinct(source, ["x", "y"]), node, node),
    "latest stamps": Kind(
        lambda terms, source: LatestStamps(source, ["x"], [".t of 1", ".t of 2"], terms),
        [("x", ".t of 1", ".t of 2")],
        cases(rows_over([tying, stamp, stamp])),
    ),
    "coalesce": unary(lambda terms, source: TemporalCoalesce(source)),
    "coalesce, eager": unary(lambda terms, source: TemporalCoalesce(source, eager=True)),
    "number": unary(lambda terms, source: Number(source, "n", terms)),
    "number by stamps": Kind(
        lambda terms, source: Number(source, "n", terms),
        [("x", ".t of 1", ".t of 2")],
        cases(rows_over([tying, stamp, stamp])),
    ),
    "sums": grouped(["k"], *SUMS),
    "sums of all": grouped([], *SUMS),
    "order": grouped(["k"], *ORDERED),
    "sets": grouped(["k"], *SETS, *SUMS),
    "sets of all": grouped([], *SETS),
    "concatenation": grouped(
        ["k"], ColumnAggregate("g", "GROUP_CONCAT", "x", False, "+"), *ORDERED
    ),
    "annotate": grouped(["k"], SUMS[0], annotate=True),
    "annotate all": grouped([], ColumnAggregate("d", "COUNT", "x", True), annotate=True),
    "slice": sliced(1, 2),
    "offset": sliced(2, None),
    "limit 0": sliced(0, 0),
    "slice of distinct rows": sliced(0, 2, distinct=("y", "z")),
    "slices by part": sliced(1, 1, partition=("y",)),
    "tuple window": Kind(
        lambda terms, source: TupleWindow(source, w.SlidingTupleWindow(S, 3)), ["x"], elements()
    ),
    "element window": Kind(
        lambda terms, source: ElementWindow(source, w.SlidingTupleWindow(S, 2)), ["x"], elements()
    ),
    "stepped tuple window": Kind(
        lambda terms, source: SteppedTupleWindow(source, w.SteppedTupleWindow(S, 3, step=2)),
        ["x"],
        elements(),
    ),
    "time window": Kind(
        lambda terms, source: TimeWindow(source, w.SlidingDeltaWindow(S, 5, 2)), ["x"], elements()
    ),
    "align": unary(lambda terms, source: AlignToReports(source, Align(S, 5))),
    "clip": Kind(
        lambda terms, source: Clip(source, None, 12),
        ["xy"],
        cases(rows_over([tying, tying])),
        horizon,
    ),
    **{
        f"{kind} {'each' if every is None else every}": reports(kind, every)
        for kind in ("rstream", "istream", "dstream")
        for every in (3, None)
    },
    "band join": Kind(band_join, [("x", "v"), ("q", "lo", "hi")], cases(nodes_and_values, bands)),
    "band join on all pairs": Kind(
        lambda terms, a, b: band_join(terms, a, b, indexed=False),
        [("x", "v"), ("q", "lo", "hi")],
        cases(nodes_and_values, bands),
    ),
    "query table": Kind(
        lambda terms, source: QueryTable(source, ["p"], 3), [()], cases(rows_over([])), add
    ),
    "clock": Kind(lambda terms, source: Clock(source), ["x"], cases(rows_over([tying]))),
    "select queries": Kind(
        lambda terms, source: SelectQueries(source), [(QUERY,)], cases(rows_over([tying])), exclude
    ),
    "output stream": Kind(
        lambda terms, source: OutputStream(source, "out", terms, "..stamp"),
        [TRIPLE],
        cases(rows_over([tying, tying, tying])),
    ),
    "since": Kind(
        lambda terms, source: Since(OutputStream(source, "out", terms), 3),
        [TRIPLE],
        cases(rows_over([tying, tying, tying])),
    ),
    "closure": unary(
        lambda terms, source: TransitiveClosure(source, "x", "y"), *[st.integers(1, 4)] * 2
    ),
    "tag": unary(lambda terms, source: Tag(source, "..row", terms)),
    "filter": unary(
        lambda terms, source: Filter(
            source, A, compile_expression(Function("<", (X, Constant(integer(2)))), terms, Run())
        ),
        value,
    ),
    "extend": unary(
        lambda terms, source: Extend(
            source, A, X, compile_expression(Function("STR", (X,)), terms, Run())
        ),
        value,
    ),
    "order by": unary(
        lambda terms, source: OrderBy(
            source, [(compile_expression(X, terms, Run()), True)], ["x", "y"]
        )
    ),
    "projection": unary(lambda terms, source: Projection(source, ["y", "z"])),
    "columns": unary(lambda terms, source: Rename(source, {"a": "x", "b": "x"})),
    "constants": unary(lambda terms, source: Constants(source, {"a": terms.id_of(integer(1))})),
    "equal": unary(lambda terms, source: SelectEqual(source, [("x", "y")], or_unbound=True)),
    "bound": unary(lambda terms, source: SelectBound(source, {"x": True})),
    "not among": unary(lambda terms, source: SelectNotIn(source, "x", [terms.id_of(integer(1))])),
    "of sort": unary(lambda terms, source: SelectSort(source, "x", 1, terms)),
    "outer rows": unary(lambda terms, source: OuterRows(source, "x", {"a": ("y", None)})),
    "consolidate": unary(lambda terms, source: Consolidate(source)),
    "triple pattern": Kind(
        lambda terms, source: TriplePatternMatching(source, TriplePattern(X, A, X), terms),
        [TRIPLE],
        cases(rows_over([tying, tying, tying])),
    ),
    "what triples entail": entailed(lambda source, schema: Entailed(source, schema)),
    "triples that entail": entailed(
        lambda source, schema: Entailing(source, TriplePattern(X, B_, Y), schema)
    ),
    "entailed pattern": entailed(
        lambda source, schema: EntailedMatching(source, TriplePattern(X, TYPE, Y), schema)
    ),
    "entailed pattern of a class": entailed(
        lambda source, schema: EntailedMatching(source, TriplePattern(X, TYPE, B_), schema)
    ),
    "construct": unary(
        lambda terms, source: Construct(source, TriplePattern(X, X, Variable("y")), terms)
    ),
    **EVENT_KINDS,
}


def batch_of(terms: TermDictionary, names: Sequence[str], rows: Sequence[Row]) -> Batch:
    """Encode rows of a case in a dictionary."""
    size = len(rows)
    columns = {
        name: since_column(rows)
        if name == SINCE
        else terms.encode([TEXTS[row.ids[k]] for row in rows])
        for k, name in enumerate(names)
    }
    start, end, count = (np.array([row[i] for row in rows], np.int64) for i in (1, 2, 3))
    return Batch(columns, start, end, count if size and (count != 1).any() else None)


def since_column(rows: Sequence[Row]) -> np.ndarray:
    """Return the starts of events, whose durations are the last ids of the rows."""
    starts = np.array([max(row.start - row.ids[-1], 0) for row in rows], np.int64)
    static = np.array([row.ids[-1] == 4 for row in rows], np.bool_)
    return np.where(static, STATIC, since_of(starts))


class OperatorRun:
    """A run of an operator over a dictionary, step by step."""

    def __init__(self, kind: Kind, terms: TermDictionary) -> None:
        self.kind, self.terms = kind, terms
        self.operator = kind.make(terms, *map(DrivenInput, kind.names))

    def step(self, rows: list[list[Row]], marks: list[int], cut: bool) -> Observation:
        pairs = zip(self.kind.names, rows, strict=True)
        batches = [batch_of(self.terms, *pair) for pair in pairs]
        self.kind.before(self.operator, min(marks))
        output, watermark = self.operator.step(batches, marks, cut)
        if isinstance(self.operator, Reports) and cut:
            watermark += sum(self.operator.done())
        return observe(output, watermark, [self.operator], self.terms)

    def restored(self) -> OperatorRun:
        """Return a new run over a new dictionary, with the saved state of this one."""
        tables = through_ipc(self.operator.save())
        restored = OperatorRun(
            self.kind, restored_dictionary(self.terms, list(self.operator.retained_ids()))
        )
        restored.operator.load(tables)
        return restored


@contextmanager
def capacities(events: int, small: bool) -> Iterator[None]:
    """Patch the threshold of small steps; if `small`, also limit slots and runs."""
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(physical_group, "MOST_EVENTS", events))
        if small:
            patches.enter_context(mock.patch.object(physical_group, "_LEAST", 0))
            patches.enter_context(mock.patch.object(key_slots, "_LEAST", 2))
            patches.enter_context(mock.patch.object(heap, "_RUNS", 1))
            patches.enter_context(mock.patch.object(event_absence, "_LEAST", 0))
        yield


def check(kind: Kind, case: Case, at: int) -> None:
    """Check that saving after step `at` changes nothing; undeclared attributes must be constant."""
    undisturbed, interrupted = (OperatorRun(kind, TermDictionary()) for _ in range(2))
    values = dict(undeclared(undisturbed.operator))
    for number, step in enumerate(steps_of_case(case)):
        assert interrupted.step(*step) == undisturbed.step(*step), f"step {number}"
        for path, value_ in undeclared(undisturbed.operator):
            assert values.setdefault(path, value_) == value_, f"{path} is undeclared state"
        if number == at:
            interrupted = interrupted.restored()
            assert interrupted.operator.size() == undisturbed.operator.size()


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_operator_equals_an_undisturbed_one(name: str) -> None:
    @settings(max_examples=30)
    @given(KINDS[name].cases, st.integers(0, 5), st.sampled_from([0, 3, 128]), st.booleans())
    def test(case: Case, at: int, events: int, small: bool) -> None:
        with capacities(events, small):
            check(KINDS[name], case, at)

    test()


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_restored_operator_equals_an_undisturbed_one_in_many_cases(name: str) -> None:
    @settings(max_examples=1000)
    @given(KINDS[name].cases, st.integers(0, 5), st.sampled_from([0, 3, 128]), st.booleans())
    def test(case: Case, at: int, events: int, small: bool) -> None:
        with capacities(events, small):
            check(KINDS[name], case, at)

    test()


@pytest.mark.parametrize("name", ["join", "multi join", "left join", "closure", "mark on columns"])
def test_restored_areas_rebuild_their_indexes(name: str) -> None:
    @settings(max_examples=30)
    @given(KINDS[name].cases, st.integers(0, 5))
    def test(case: Case, at: int) -> None:
        with mock.patch.multiple(sweep_area, _BRUTE=-1, _SMALL=0, _FACTOR=1):
            check(KINDS[name], case, at)

    test()


def concrete_classes(base: type) -> set[type]:
    below = {kind for direct in base.__subclasses__() for kind in concrete_classes(direct)}
    return below if inspect.isabstract(base) else below | {base}


def test_each_operator_is_tested() -> None:
    tested = {type(OperatorRun(kind, TermDictionary()).operator) for kind in KINDS.values()}
    operators = {
        kind for kind in concrete_classes(Operator) if kind.__module__.startswith("streamsparql.")
    }
    assert operators - tested == {Always, Feed, StreamAccess}, "these operators have no input"


def test_static_rows_are_emitted_once_after_a_restore() -> None:
    rows, restored = (Always.of({"x": np.array([7])}, 1) for _ in range(2))
    restored.load(rows.save())
    assert [len(restored.step([], [], False)[0]) for _ in range(2)] == [1, 0]
    rows.load(restored.save())
    assert len(rows.step([], [], False)[0]) == 0


# -- Invalid states ------------------------------------------------------------------------------


def saved_state(name: str = "left join") -> dict[str, pa.Table]:
    run = OperatorRun(KINDS[name], TermDictionary())
    rows = [[Row((1, 2, 3), 0, 9)], [Row((3, 2, 1), 1, 5)]][: len(run.kind.names)]
    run.step(rows, [2] * len(rows), False)
    return run.operator.save()


def operator(name: str) -> Operator:
    return OperatorRun(KINDS[name], TermDictionary()).operator


def test_the_state_of_another_operator_is_refused() -> None:
    with pytest.raises(EngineError, match=r"LeftJoin.* unexpected part"):
        operator("left join").load({**saved_state(), "other": saved_state()["min-heap"]})
    with pytest.raises(EngineError, match=r"cannot restore the state of .*missing"):
        operator("left join").load(saved_state("join"))
    with pytest.raises(EngineError, match="cannot restore the state of "):
        operator("join").load(saved_state())
    with pytest.raises(EngineError, match=r"Heap: the columns are x, y, a, m; expected x, y, a, b"):
        operator("left join").load({**saved_state(), "min-heap": saved_state("mark")["min-heap"]})


def test_a_state_of_another_version_is_refused() -> None:
    tables = saved_state()
    wrong = {"kind": "Heap", "version": "2"}
    for metadata, words in ((wrong, "written by Heap, version 2"), (None, "an unknown structure")):
        tables["min-heap"] = tables["min-heap"].replace_schema_metadata(metadata)
        with pytest.raises(EngineError, match=words):
            operator("left join").load(tables)


def test_a_state_with_a_part_of_another_kind_is_refused() -> None:
    tables = saved_state()
    with pytest.raises(EngineError, match="written by SweepArea"):
        operator("left join").load({**tables, "min-heap": tables["areas/left area"]})


def test_groups_of_other_calls_are_refused() -> None:
    with pytest.raises(EngineError, match=r"the values are .*SUM.*; expected .*MIN"):
        operator("order").load({**saved_groups("order"), "groups": saved_groups("sums")["groups"]})


def saved_groups(name: str) -> dict[str, pa.Table]:
    run = OperatorRun(KINDS[name], TermDictionary())
    run.step([[Row((1, 8, 9), 0, 9)]], [2], False)
    return run.operator.save()


class Undeclared(Stateless):
    """An operator with state that it does not declare."""

    def __init__(self, source: Operator) -> None:
        super().__init__(source.names, source)
        self.seen = [0]

    def apply(self, batch: Batch) -> Batch:
        self.seen.append(len(batch))
        return batch


def test_undeclared_state_is_detected() -> None:
    kind = unary(lambda terms, source: Undeclared(source))
    case = Case(((Row((1, 1), 0, 5),),), ((0,),), ())
    with pytest.raises(AssertionError, match=r"Undeclared\.seen is undeclared state"):
        check(kind, case, 9)


class WithoutState(Operator):
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        raise NotImplementedError


def test_an_operator_without_state_has_no_tables() -> None:
    assert WithoutState(["x"]).save() == {}
    assert WithoutState(["x"]).size() == 0
    WithoutState(["x"]).load({})


# -- The dictionary ------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(TEXTS[1:]), unique=True), st.data())
def test_a_restored_dictionary_has_the_terms_in_use(texts: list[str], data: st.DataObject) -> None:
    terms = TermDictionary()
    ids = terms.encode([*texts])
    used = data.draw(st.lists(st.sampled_from(ids.tolist()))) if texts else []
    restored = restored_dictionary(terms, [np.array(used, np.int64)])
    for term_id in used:
        assert restored.term_of(term_id) == terms.term_of(term_id)
        assert restored.id_of(restored.term_of(term_id)) == term_id  # type: ignore[arg-type]
    used_ids = np.array(used, np.int64)
    for one, two in zip(terms.numbers(used_ids), restored.numbers(used_ids), strict=True):
        assert one.tolist() == two.tolist() or np.isnan(one).any()
    assert terms.sorts(used_ids).tolist() == restored.sorts(used_ids).tolist()
    new_ids = restored.encode([*texts])
    assert [restored.texts(new_ids).to_pylist()] == [terms.texts(ids).to_pylist()]
    assert len(set(new_ids.tolist())) == len(set(ids.tolist()))


def test_restoring_a_dictionary_with_entries_is_refused() -> None:
    terms = TermDictionary()
    terms.encode(["<a>"])
    with pytest.raises(EngineError, match="has entries already"):
        terms.load(terms.save([]))
    with pytest.raises(EngineError, match="not a table of version 1"):
        TermDictionary().load(pa.table({"id": [1]}))


def test_kept_terms_survive_a_restore_and_recycling() -> None:
    """Those of static graphs do; constants are kept again once the plans of a restore are lowered."""
    terms = TermDictionary()
    constant = terms.id_of(integer(10**31), keep=True)
    term_id = terms.id_of(integer(10**30))
    terms.keep(np.array([term_id]))
    other = restored_dictionary(terms, [])
    assert other.id_of(integer(10**31), keep=True) == constant
    other.recycle([])
    assert other.term_of(term_id) == integer(10**30)
    assert other.term_of(constant) == integer(10**31)
