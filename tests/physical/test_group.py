"""Aggregation and Annotate, compared with their definitions, in any steps.

The operators read arguments from columns, so the algebra's expressions are variables here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import (
    EPOCH,
    Bag,
    Case,
    DrivenInput,
    Row,
    at_once,
    cases,
    check_snapshots,
    drive,
    one_by_one,
    rows_of,
    rows_over,
)

import streamsparql
from streamsparql.algebra import group, shape
from streamsparql.algebra.aggregate_functions import aggregate
from streamsparql.algebra.expressions import Aggregate
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.plan import SnapshotOperator
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.streams import INFINITY, Snapshot
from streamsparql.algebra.terms import integer
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import variable_of
from streamsparql.physical.kernels import keys
from streamsparql.physical.operator import StepResult
from streamsparql.physical.operators import group as physical_group
from streamsparql.physical.operators.group import Aggregation, Annotate, ColumnAggregate

XSD = "^^<http://www.w3.org/2001/XMLSchema#"
TERMS = TermDictionary()


def ids(*texts: str) -> list[int]:
    """Return the ids of terms in N-Triples; `1:integer` abbreviates `"1"^^xsd:integer`."""
    written = (
        text
        if text[0] in '<"_'
        else '"{}"{}{}>'.format(*text.split(":")[:1], XSD, text.split(":")[1])
        for text in texts
    )
    return TERMS.encode(list(written)).tolist()


KEYS = [0, *ids("<a>", "<b>")]
DOUBLES = ids(
    "0.1:double", "0.2:double", "1e300:double", "-1e300:double", "3:double", "-0.0:double"
)
INTEGERS = ids("1:integer", "2:integer", "-7:integer", "9007199254740993:integer", "2:byte")
DECIMALS = ids("0.1:decimal", "2.50:decimal", "-3:decimal", "0.00000001:decimal")
OTHER_VALUES = [
    0,
    *ids("0.1:float", "INF:double", "NaN:double", '"x"', "<x>", "123456789012345678901:integer"),
]
VALUES = {
    "sensors": ids("0.1:double", "0.2:double", "22.50:double", "0.0:double", "-7.5:double"),
    "doubles": DOUBLES,
    "integers": INTEGERS,
    "exact": INTEGERS + DECIMALS,
    "all": DOUBLES + INTEGERS + DECIMALS + OTHER_VALUES,
}
FUNCTIONS = ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"]
NAMES = ["k", "x", ".y"]


def rows(kind: str) -> st.SearchStrategy:
    """Return a strategy for rows with values of a kind."""
    value = st.sampled_from(VALUES[kind])
    return rows_over([st.sampled_from(KEYS), value, value])


def defined(node: SnapshotOperator, names: list[str]) -> Callable[[Bag], Bag]:
    """Return the definition of a node: a function from the input multiset to the output."""

    def of(bag: Bag) -> Bag:
        solutions = (
            (
                {variable_of(n): TERMS.term_of(i) for n, i in zip(NAMES, row, strict=True) if i},
                times,
            )
            for row, times in bag.items()
        )
        snapshot = Snapshot((Solution(bindings), times) for bindings, times in solutions)
        output: Bag = Counter()
        for solution, times in node.static(0, Inputs(), snapshot).entries:
            row = (solution.get(variable_of(n)) for n in names)
            output[tuple(TERMS.id_of(term) if term else 0 for term in row)] += times
        return output

    return of


def logical(calls: list[ColumnAggregate]) -> tuple:
    return tuple((variable_of(call.variable), expression(call)) for call in calls)


def expression(call: ColumnAggregate) -> Aggregate:
    argument = variable_of(call.argument) if call.argument else None
    return Aggregate(call.function, argument, call.distinct, call.separator)


def small_steps(max_events: int) -> Any:
    """Patch the number of events up to which a step is small; larger steps are swept."""
    return mock.patch.object(physical_group, "MOST_EVENTS", max_events)


thresholds = st.sampled_from([0, 3, 256])


def check(
    keys_: list[str],
    calls: list[ColumnAggregate],
    case: Case,
    closing: bool = False,
    max_events: int = 256,
) -> None:
    node = group.Aggregation(tuple(map(variable_of, keys_)), logical(calls), shape.UNIT)
    with small_steps(max_events):
        output = drive(
            lambda source: Aggregation(source, keys_, calls, TERMS), [NAMES], case, closing=closing
        )
    check_snapshots(output, case, defined(node, [*keys_, *(call.variable for call in calls)]))


def check_each(function: str, kind: str, examples: int) -> None:
    @given(
        cases(rows(kind)), st.sampled_from([["k"], []]), st.booleans(), st.booleans(), thresholds
    )
    @settings(max_examples=examples)
    def test(case: Case, keys_: list[str], distinct: bool, closing: bool, max_events: int) -> None:
        for variant in (case, one_by_one(*case.inputs, cut=closing)):
            check(
                keys_, [ColumnAggregate("v", function, "x", distinct)], variant, closing, max_events
            )

    test()


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_aggregate_is_its_definition(function: str, kind: str) -> None:
    check_each(function, kind, examples=12)


@pytest.mark.long
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_aggregate_is_its_definition_in_many_cases(function: str, kind: str) -> None:
    check_each(function, kind, examples=1000)


calls = st.builds(
    lambda function, argument, distinct, separator: ColumnAggregate(
        "v", "COUNT" if argument is None else function, argument, distinct, separator
    ),
    st.sampled_from(FUNCTIONS),
    st.sampled_from([None, "x", ".y"]),
    st.booleans(),
    st.sampled_from([None, "+"]),
)
keyed = st.sampled_from([[], ["k"], ["x", "k"]])


@given(cases(rows("all")), keyed, st.lists(calls, max_size=4), st.booleans(), thresholds)
def test_several_aggregates_are_computed_together(
    case: Case, keys_: list[str], several: list[ColumnAggregate], closing: bool, max_events: int
) -> None:
    named = [call._replace(variable=f"v{i}") for i, call in enumerate(several)]
    for variant in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=closing)):
        check(keys_, named, variant, closing, max_events)


class ObservedAggregation(Aggregation):
    """An aggregation that records its output and its state after each step."""

    observed: list

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        batch, watermark = super().step(batches, watermarks, cut)
        live = np.flatnonzero(self._groups.since < INFINITY).tolist()
        exact_sums, values = [], self._groups.values[:, live].T.tolist()
        if live and self._small_steps._copy(live):
            exact_sums = [self._small_steps._groups[slot] for slot in live]
            scale = [1] * (1 + len(self._small_steps._counted))
            for name in self._small_steps._summed:
                scale.append(Fraction(2) ** self._elements[0].sums[name]._binary._base)
            exact_sums = [[*map(mul, scale, group)] for group in exact_sums]
        since = self._groups.since[live].tolist()
        self.observed.append((sorted(rows_of(batch)), watermark, live, since, values, exact_sums))
        return batch, watermark


simple = st.builds(
    lambda function, argument: ColumnAggregate(
        "v", "COUNT" if argument is None else function, argument
    ),
    st.sampled_from(["COUNT", "SUM", "AVG"]),
    st.sampled_from([None, "x", "x", ".y"]),
)


def check_steps(examples: int) -> None:
    kinds = st.sampled_from(["sensors", "doubles", "all"]).flatmap(lambda kind: cases(rows(kind)))

    @given(kinds, st.booleans(), keyed, st.lists(simple, max_size=3), thresholds)
    @settings(max_examples=examples)
    def test(
        case: Case,
        single_rows: bool,
        keys_: list[str],
        several: list[ColumnAggregate],
        max_events: int,
    ) -> None:
        case = one_by_one(*case.inputs) if single_rows else case
        named = [call._replace(variable=f"v{i}") for i, call in enumerate(several)]
        aggregations: list[ObservedAggregation] = []

        def make(source: DrivenInput) -> ObservedAggregation:
            aggregations.append(ObservedAggregation(source, keys_, named, TERMS))
            aggregations[-1].observed = []
            return aggregations[-1]

        for threshold in (max_events, 256, 0):
            with small_steps(threshold):
                drive(make, [NAMES], case)
        assert aggregations[0].observed == aggregations[1].observed == aggregations[2].observed

    test()


def test_small_and_swept_steps_are_equivalent() -> None:
    check_steps(examples=100)


@pytest.mark.long
def test_many_small_and_swept_steps_are_equivalent() -> None:
    check_steps(examples=2000)


@given(cases(rows("all")), keyed, calls, st.booleans())
def test_annotate_keeps_the_rows(
    case: Case, keys_: list[str], call: ColumnAggregate, closing: bool
) -> None:
    node = group.Annotate(
        Variable("v"), expression(call), tuple(map(variable_of, keys_)), shape.UNIT
    )
    output = drive(
        lambda source: Annotate(source, keys_, call, TERMS), [NAMES], case, closing=closing
    )
    check_snapshots(output, case, defined(node, [*NAMES, "v"]))


@pytest.mark.parametrize("max_events", [0, 256])
def test_equal_counts_share_their_state(max_events: int) -> None:
    """Two counts of the same column use one counter."""
    rows_ = [Row((0, x, 0), t, t + 5) for t, x in enumerate([0, DOUBLES[0], 0, 0])]
    both = [ColumnAggregate("v", "COUNT", "x"), ColumnAggregate("w", "COUNT", "x")]
    check(["k"], both, one_by_one(rows_), max_events=max_events)


def test_colliding_keys_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    row_keys = keys.row_keys
    monkeypatch.setattr(
        keys, "row_keys", lambda c, n, salt=0: row_keys(c, n, salt) & (2 ** min(salt, 62) - 1)
    )

    @given(cases(rows("integers")))
    @settings(max_examples=30)
    def test(case: Case) -> None:
        check(
            ["x", "k"],
            [ColumnAggregate("v", "SUM", "x"), ColumnAggregate("w", "COUNT", None, True)],
            case,
        )

    test()


MILLION = 10**6

GIANTS = [
    *(pytest.param("COUNT", ends) for ends in ("sliding", "never", "tied")),
    pytest.param("MIN", "sliding"),
    *(
        pytest.param(function, ends, marks=pytest.mark.long)
        for function in ("SUM", "AVG", "MIN")
        for ends in ("sliding", "never", "tied")
    ),
]


@pytest.mark.parametrize(("function", "ends"), GIANTS)
def test_a_group_of_a_million_rows_takes_seconds(function: str, ends: str) -> None:
    """A million rows of one group, in chunks, take seconds at most; the last value is right."""
    operator = Aggregation(DrivenInput(["x"]), [], [ColumnAggregate("v", function, "x")], TERMS)
    start = EPOCH + (np.zeros(MILLION, np.int64) if ends == "tied" else np.arange(MILLION))
    end = {"sliding": start + 1000, "never": np.full(MILLION, INFINITY), "tied": start + 5}[ends]
    x = TERMS.of_integers(np.arange(MILLION) % 7)
    started, batches = time.process_time(), []
    for at in range(0, MILLION, 1 << 16):
        rows = Batch({"x": x}, start, end).part(at, at + (1 << 16))
        later = start[at + (1 << 16) :]
        watermark = int(later[0]) if len(later) else INFINITY
        batches.append(operator.step([rows], [watermark], False)[0])
    assert time.process_time() - started < 30
    output = Batch.concat(batches)
    (row,) = np.flatnonzero((output.start <= start[-1]) & (start[-1] < output.end))
    last = (np.arange(MILLION) % 7)[-1000 if ends == "sliding" else 0 :]
    bag = [
        (integer(int(v)), int(n)) for v, n in zip(*np.unique(last, return_counts=True), strict=True)
    ]
    assert TERMS.term_of(int(output.columns["v"][row])) == aggregate(function, bag)


def test_state_is_bounded_by_the_window() -> None:
    """With new groups in each step, neither elements nor slots accumulate."""
    calls = [
        ColumnAggregate("n", "COUNT"),
        ColumnAggregate("s", "SUM", "x"),
        ColumnAggregate("d", "COUNT", "x", True),
    ]
    operator = Aggregation(DrivenInput(["k", "x"]), ["k"], calls, TERMS)
    annotate = Annotate(DrivenInput(["k", "x"]), ["k"], calls[0], TERMS)
    sizes, retained = [], []
    for t in range(500):
        ids_ = TERMS.of_integers(np.arange(10 * t, 10 * t + 10))
        rows = Batch({"k": ids_, "x": ids_}, np.full(10, t), np.full(10, t + 20))
        for each in (operator, annotate):
            each.step([rows], [t + 1], False)
        if t > 200:
            sizes.append(operator.size() + annotate.size())
            retained.append(
                sum(map(len, operator.retained_ids())) + sum(map(len, annotate.retained_ids()))
            )
    assert max(sizes) == min(sizes)
    assert max(retained) < 20_000


def test_grouping_by_a_variable_that_is_never_bound_has_one_group():
    """The rules may remove the expression that binds the key, if it always raises an error."""
    text = """SELECT ?n FROM STREAM <s> [TRIPLES 9 STEP 6] WHERE { {
        SELECT ?n WHERE { BIND(("x" * 1) AS ?n) ?y <p> ?k } AGGREGATE { (?c, COUNT, {?n}) } } }"""
    items = [("<a>", "<p>", f'"{t}"', t) for t in range(20)]
    rows = [
        [
            (dict(row), row.start, row.end)
            for row in streamsparql.compile(text, optimize=o).run(items)
        ]
        for o in (False, True)
    ]
    assert rows[0] == rows[1] != []
