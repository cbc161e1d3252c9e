"""The state of an operator is saved in the middle of a run, and another operator goes on with it.

Each operator is driven by random cases. At a random step its state goes through Arrow's bytes into a
new operator over a new dictionary, which has the terms in use and no others, so that new terms get
other ids. From there on rows, watermarks, sizes and contents are those of the undisturbed run.

Whole plans are in test_saved_pipelines.py.
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
from support.restored import Seen, moved, seen, through_ipc, undeclared
from support.steps import Case, Row, RunInput, cases, rows_over, steps_of_case

from streamsparql.algebra import window as w
from streamsparql.algebra.align import Align
from streamsparql.algebra.expressions import Call as Function
from streamsparql.algebra.expressions import Constant
from streamsparql.algebra.functions import Run
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.shape import UNIT
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import XSD, integer
from streamsparql.errors import EngineError
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import CompiledExpression, compile_expression
from streamsparql.physical.expressions.sort_keys import Ranking
from streamsparql.physical.lowering.lower_exists import OuterRows
from streamsparql.physical.operator import Operator, Stateless, StepResult
from streamsparql.physical.operators import group as physical_group
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.columns import (
    Constants,
    Rename,
    SelectBound,
    SelectEqual,
    SelectNotIn,
    Tag,
)
from streamsparql.physical.operators.consolidate import Consolidate
from streamsparql.physical.operators.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.physical.operators.graph import Construct, SelectSort
from streamsparql.physical.operators.group import Aggregation, Annotate, ColumnAggregate
from streamsparql.physical.operators.join import Join, Minus, Union
from streamsparql.physical.operators.left_join import LeftJoin, LeftJoinOn
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.path import TransitiveClosure
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
from streamsparql.physical.state import heap, key_slots, sweep_area


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
"""What the ids of rows in cases mean, by place."""
node = st.integers(0, len(NODES) - 1)
value = st.integers(0, len(NODES) + len(VALUES) - 1)
stamp = st.sampled_from([0, *map(TEXTS.index, STAMPS)])
few = st.sampled_from([0, 1, 1, 2, 2, 3])
nodes = rows_over([few, few, few])
S = UNIT
X, A, B = (Variable(name) for name in "xab")
XYA, BYX = ("x", "y", "a"), ("b", "y", "x")


def differ(terms: TermDictionary) -> CompiledExpression:
    return compile_expression(Function("!=", (A, B)), terms, Run())


class Kind(NamedTuple):
    """How an operator is made over a dictionary, the columns of its inputs, and its cases."""

    make: Callable[..., Operator]
    names: Sequence[Sequence[str]]
    cases: st.SearchStrategy[Case]
    before: Callable[[Operator, int], None] = lambda operator, mark: None
    """Done before each step, with the least watermark."""


def binary(make: Callable[..., Operator]) -> Kind:
    return Kind(make, [XYA, BYX], cases(nodes, nodes))


def unary(make: Callable[..., Operator], *columns: st.SearchStrategy[int]) -> Kind:
    given_columns = columns or (few, few)
    names = ("x", "y", "z")[: len(given_columns)]
    return Kind(make, [names], cases(rows_over(given_columns), most=14))


def grouped(keys: list[str], *calls: ColumnAggregate, annotate: bool = False) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        if annotate:
            return Annotate(source, keys, calls[0], terms)
        return Aggregation(source, keys, calls, terms)

    return Kind(make, [("k", "x", "y")], cases(rows_over([few, value, value]), most=12))


@st.composite
def matches_of_left_rows(draw: st.DrawFn) -> Case:
    """Left rows with numbers, and pieces of them as matches that come no sooner than they do."""
    case = draw(cases(rows_over([few, few]), rows_over([st.integers(0, 20), few])))
    lefts, pieces = case.inputs
    numbers = map(TEXTS.index, NUMBERS)
    numbered = [left._replace(ids=(*left.ids, n)) for left, n in zip(lefts, numbers, strict=False)]
    found, comes = [], []
    for piece, when in zip(pieces, case.comes[1], strict=True):
        if numbered:
            of = piece.ids[0] % len(numbered)
            left = numbered[of]
            start, end = max(piece.start, left.start), min(piece.end, left.end)
            if start < end:
                found.append(Row((left.ids[2], piece.ids[1]), start, end, piece.count))
                comes.append(max(when, case.comes[0][of]))
    when_left = case.comes[0][: len(numbered)]
    return Case((tuple(numbered), tuple(found)), (when_left, tuple(comes)), case.rounds)


def horizon(operator: Operator, mark: int) -> None:
    """The horizon of a Clip begins at 4, which is known when time is there."""
    assert isinstance(operator, Clip)
    if mark >= 4:
        operator.begin = 4


def clock(operator: Operator, mark: int) -> None:
    """The time that a Reports knows."""
    assert isinstance(operator, Reports)
    operator.clock = max(mark, -1)
    if operator.begin is None and mark > 0:
        operator.begin = max(mark - 30, 0)


def reports(kind: str, every: int | None) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        return Reports(source, kind, every)  # type: ignore[arg-type]

    return Kind(make, [("x", "y")], cases(rows_over([few, few])), clock)


def elements() -> st.SearchStrategy[Case]:
    """A stream: one row after the other, in order over all steps."""

    def ordered(case: Case) -> Case:
        rows = tuple(row._replace(end=row.start + 1) for row in case.inputs[0])
        return case._replace(inputs=(rows,), comes=(tuple(sorted(case.comes[0])),))

    return cases(rows_over([few]), most=14).map(ordered)


def sliced(offset: int, limit: int | None, **options: Sequence[str]) -> Kind:
    def make(terms: TermDictionary, source: Operator) -> Operator:
        ranking = Ranking((("x", True), ("y", False)), ("z",))
        return Slice(source, ranking, terms, offset, limit, **options)

    return unary(make, value, few, few)


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
        cases(rows_over([few, stamp, stamp])),
    ),
    "coalesce": unary(lambda terms, source: TemporalCoalesce(source)),
    "coalesce, eager": unary(lambda terms, source: TemporalCoalesce(source, eager=True)),
    "number": unary(lambda terms, source: Number(source, "n", terms)),
    "number by stamps": Kind(
        lambda terms, source: Number(source, "n", terms),
        [("x", ".t of 1", ".t of 2")],
        cases(rows_over([few, stamp, stamp])),
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
        lambda terms, source: Clip(source, None, 12), ["xy"], cases(rows_over([few, few])), horizon
    ),
    **{
        f"{kind} {'each' if every is None else every}": reports(kind, every)
        for kind in ("rstream", "istream", "dstream")
        for every in (3, None)
    },
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
    "collapse": unary(lambda terms, source: Consolidate(source)),
    "triple pattern": Kind(
        lambda terms, source: TriplePatternMatching(source, TriplePattern(X, A, X), terms),
        [TRIPLE],
        cases(rows_over([few, few, few])),
    ),
    "construct": unary(
        lambda terms, source: Construct(source, TriplePattern(X, X, Variable("y")), terms)
    ),
}


def batch_of(terms: TermDictionary, names: Sequence[str], rows: Sequence[Row]) -> Batch:
    """Rows of a case in the ids of a dictionary."""
    size = len(rows)
    columns = {
        name: terms.encode([TEXTS[row.ids[k]] for row in rows]) for k, name in enumerate(names)
    }
    start, end, count = (np.array([row[i] for row in rows], np.int64) for i in (1, 2, 3))
    return Batch(columns, start, end, count if size and (count != 1).any() else None)


class Played:
    """An operator over a dictionary, and the steps of a case that it makes."""

    def __init__(self, kind: Kind, terms: TermDictionary) -> None:
        self.kind, self.terms = kind, terms
        self.operator = kind.make(terms, *map(RunInput, kind.names))

    def step(self, rows: list[list[Row]], marks: list[int], cut: bool) -> Seen:
        pairs = zip(self.kind.names, rows, strict=True)
        batches = [batch_of(self.terms, *pair) for pair in pairs]
        self.kind.before(self.operator, min(marks))
        output, watermark = self.operator.step(batches, marks, cut)
        if isinstance(self.operator, Reports) and cut:
            watermark += sum(self.operator.done())
        return seen(output, watermark, [self.operator], self.terms)

    def restored(self) -> Played:
        """The same over a new dictionary, with what was saved of this one."""
        tables = through_ipc(self.operator.save())
        made = Played(self.kind, moved(self.terms, list(self.operator.retained_ids())))
        made.operator.load(tables)
        return made


@contextmanager
def capacities(events: int, small: bool) -> Iterator[None]:
    """Up to so many events make a small step; slots and runs are few, so that all of them are reused."""
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(physical_group, "MOST_EVENTS", events))
        if small:
            patches.enter_context(mock.patch.object(physical_group, "_LEAST", 0))
            patches.enter_context(mock.patch.object(key_slots, "_LEAST", 2))
            patches.enter_context(mock.patch.object(heap, "_RUNS", 1))
        yield


def check(kind: Kind, case: Case, at: int) -> None:
    """Saving after the step `at` changes nothing, and undeclared attributes stay what they are."""
    whole, parted = (Played(kind, TermDictionary()) for _ in range(2))
    undisturbed = dict(undeclared(whole.operator))
    for number, step in enumerate(steps_of_case(case)):
        assert parted.step(*step) == whole.step(*step), f"step {number}"
        for path, value_ in undeclared(whole.operator):
            assert undisturbed.setdefault(path, value_) == value_, f"{path} is undeclared state"
        if number == at:
            parted = parted.restored()
            assert parted.operator.size() == whole.operator.size()


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_operator_goes_on_like_an_undisturbed_one(name: str) -> None:
    @settings(max_examples=30)
    @given(KINDS[name].cases, st.integers(0, 5), st.sampled_from([0, 3, 128]), st.booleans())
    def test(case: Case, at: int, events: int, small: bool) -> None:
        with capacities(events, small):
            check(KINDS[name], case, at)

    test()


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_restored_operator_goes_on_in_many_cases(name: str) -> None:
    @settings(max_examples=1000)
    @given(KINDS[name].cases, st.integers(0, 5), st.sampled_from([0, 3, 128]), st.booleans())
    def test(case: Case, at: int, events: int, small: bool) -> None:
        with capacities(events, small):
            check(KINDS[name], case, at)

    test()


@pytest.mark.parametrize("name", ["join", "left join", "closure", "mark on columns"])
def test_areas_with_indexes_go_on(name: str) -> None:
    @settings(max_examples=30)
    @given(KINDS[name].cases, st.integers(0, 5))
    def test(case: Case, at: int) -> None:
        with mock.patch.multiple(sweep_area, _BRUTE=-1, _SMALL=0, _FACTOR=1):
            check(KINDS[name], case, at)

    test()


def concrete(base: type) -> set[type]:
    below = {kind for one in base.__subclasses__() for kind in concrete(one)}
    return below if inspect.isabstract(base) else below | {base}


def test_each_operator_is_among_them() -> None:
    tested = {type(Played(kind, TermDictionary()).operator) for kind in KINDS.values()}
    every = {kind for kind in concrete(Operator) if kind.__module__.startswith("streamsparql.")}
    assert every - tested == {Always, StreamAccess}, "these two have no input"


def test_rows_that_are_always_there_are_emitted_once() -> None:
    rows, again = (Always.of({"x": np.array([7])}, 1) for _ in range(2))
    again.load(rows.save())
    assert [len(again.step([], [], False)[0]) for _ in range(2)] == [1, 0]
    rows.load(again.save())
    assert len(rows.step([], [], False)[0]) == 0


# -- What does not fit ---------------------------------------------------------------------------


def saved(name: str = "left join") -> dict[str, pa.Table]:
    played = Played(KINDS[name], TermDictionary())
    rows = [[Row((1, 2, 3), 0, 9)], [Row((3, 2, 1), 1, 5)]][: len(played.kind.names)]
    played.step(rows, [2] * len(rows), False)
    return played.operator.save()


def operator(name: str) -> Operator:
    return Played(KINDS[name], TermDictionary()).operator


def test_a_state_is_refused_by_another_operator() -> None:
    with pytest.raises(EngineError, match=r"LeftJoin.* unexpected part"):
        operator("left join").load({**saved(), "other": saved()["min-heap"]})
    with pytest.raises(EngineError, match=r"cannot restore the state of .*missing"):
        operator("left join").load(saved("join"))
    with pytest.raises(EngineError, match="cannot restore the state of "):
        operator("join").load(saved())
    with pytest.raises(EngineError, match=r"Heap: the columns are x, y, a, m; expected x, y, a, b"):
        operator("left join").load({**saved(), "min-heap": saved("mark")["min-heap"]})


def test_a_state_of_another_version_is_refused() -> None:
    tables = saved()
    wrong = {"kind": "Heap", "version": "2"}
    for metadata, words in ((wrong, "written by Heap, version 2"), (None, "an unknown structure")):
        tables["min-heap"] = tables["min-heap"].replace_schema_metadata(metadata)
        with pytest.raises(EngineError, match=words):
            operator("left join").load(tables)


def test_a_state_with_a_part_of_another_kind_is_refused() -> None:
    tables = saved()
    with pytest.raises(EngineError, match="written by SweepArea"):
        operator("left join").load({**tables, "min-heap": tables["areas/left area"]})


def test_groups_of_other_calls_are_refused() -> None:
    with pytest.raises(EngineError, match=r"the values are .*SUM.*; expected .*MIN"):
        operator("order").load({**saved_group("order"), "groups": saved_group("sums")["groups"]})


def saved_group(name: str) -> dict[str, pa.Table]:
    played = Played(KINDS[name], TermDictionary())
    played.step([[Row((1, 8, 9), 0, 9)]], [2], False)
    return played.operator.save()


class Hidden(Stateless):
    """An operator with a state that it does not declare."""

    def __init__(self, source: Operator) -> None:
        super().__init__(source.names, source)
        self.seen = [0]

    def apply(self, batch: Batch) -> Batch:
        self.seen.append(len(batch))
        return batch


def test_state_that_is_not_declared_is_found() -> None:
    kind = unary(lambda terms, source: Hidden(source))
    case = Case(((Row((1, 1), 0, 5),),), ((0,),), ())
    with pytest.raises(AssertionError, match=r"Hidden\.seen is undeclared state"):
        check(kind, case, 9)


class Renamed(Operator):
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        raise NotImplementedError


def test_an_operator_without_state_has_no_tables() -> None:
    assert Renamed(["x"]).save() == {}
    assert Renamed(["x"]).size() == 0
    Renamed(["x"]).load({})


# -- The dictionary ------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(TEXTS[1:]), unique=True), st.data())
def test_a_restored_dictionary_knows_what_was_in_use(texts: list[str], data: st.DataObject) -> None:
    terms = TermDictionary()
    ids = terms.encode([*texts])
    used = data.draw(st.lists(st.sampled_from(ids.tolist()))) if texts else []
    other = moved(terms, [np.array(used, np.int64)])
    for term_id in used:
        assert other.term_of(term_id) == terms.term_of(term_id)
        assert other.id_of(other.term_of(term_id)) == term_id  # type: ignore[arg-type]
    both = np.array(used, np.int64)
    for one, two in zip(terms.numbers(both), other.numbers(both), strict=True):
        assert one.tolist() == two.tolist() or np.isnan(one).any()
    assert terms.sorts(both).tolist() == other.sorts(both).tolist()
    again = other.encode([*texts])
    assert [other.texts(again).to_pylist()] == [terms.texts(ids).to_pylist()]
    assert len(set(again.tolist())) == len(set(ids.tolist()))


def test_a_dictionary_with_entries_is_not_restored() -> None:
    terms = TermDictionary()
    terms.encode(["<a>"])
    with pytest.raises(EngineError, match="has entries already"):
        terms.load(terms.save([]))
    with pytest.raises(EngineError, match="not a table of version 1"):
        TermDictionary().load(pa.table({"id": [1]}))


def test_kept_terms_are_saved_and_stay_kept() -> None:
    terms = TermDictionary()
    term_id = terms.id_of(integer(10**30), keep=True)
    other = moved(terms, [])
    other.recycle([])
    assert other.term_of(term_id) == integer(10**30)
    assert INFINITY > 0
