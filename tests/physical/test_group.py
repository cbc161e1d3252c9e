"""Aggregation and Annotate against their definitions, in any cut of the input into steps.

The operators read arguments as columns, so that the algebra's expressions are plain variables here.
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
    Row,
    RunInput,
    agrees,
    at_once,
    cases,
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
    """The ids of terms in N-Triples, of which `1:integer` stands for `"1"^^xsd:integer`."""
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
WHOLE = ids("1:integer", "2:integer", "-7:integer", "9007199254740993:integer", "2:byte")
DECIMALS = ids("0.1:decimal", "2.50:decimal", "-3:decimal", "0.00000001:decimal")
ODD = [
    0,
    *ids("0.1:float", "INF:double", "NaN:double", '"x"', "<x>", "123456789012345678901:integer"),
]
VALUES = {
    "sensors": ids("0.1:double", "0.2:double", "22.50:double", "0.0:double", "-7.5:double"),
    "doubles": DOUBLES,
    "whole": WHOLE,
    "exact": WHOLE + DECIMALS,
    "all": DOUBLES + WHOLE + DECIMALS + ODD,
}
FUNCTIONS = ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"]
NAMES = ["k", "x", ".y"]


def rows(kind: str) -> st.SearchStrategy:
    value = st.sampled_from(VALUES[kind])
    return rows_over([st.sampled_from(KEYS), value, value])


def defined(node: SnapshotOperator, names: list[str]) -> Callable[[Bag], Bag]:
    """What a node of the algebra makes of a bag of rows."""

    def of(bag: Bag) -> Bag:
        solutions = (
            (
                {variable_of(n): TERMS.term_of(i) for n, i in zip(NAMES, row, strict=True) if i},
                times,
            )
            for row, times in bag.items()
        )
        given = Snapshot((Solution(found), times) for found, times in solutions)
        out: Bag = Counter()
        for solution, times in node.static(0, Inputs(), given).entries:
            row = (solution.get(variable_of(n)) for n in names)
            out[tuple(TERMS.id_of(term) if term else 0 for term in row)] += times
        return out

    return of


def logical(calls: list[ColumnAggregate]) -> tuple:
    return tuple((variable_of(call.variable), expression(call)) for call in calls)


def expression(call: ColumnAggregate) -> Aggregate:
    argument = variable_of(call.argument) if call.argument else None
    return Aggregate(call.function, argument, call.distinct, call.separator)


def by_hand(most: int) -> Any:
    """Steps of so many events at most are done by hand, others are swept."""
    return mock.patch.object(physical_group, "MOST_EVENTS", most)


fews = st.sampled_from([0, 3, 256])


def check(
    keys_: list[str],
    calls: list[ColumnAggregate],
    case: Case,
    closing: bool = False,
    few: int = 256,
) -> None:
    node = group.Aggregation(tuple(map(variable_of, keys_)), logical(calls), shape.UNIT)
    with by_hand(few):
        out = drive(
            lambda source: Aggregation(source, keys_, calls, TERMS), [NAMES], case, closing=closing
        )
    agrees(out, case, defined(node, [*keys_, *(call.variable for call in calls)]))


def check_each(function: str, kind: str, examples: int) -> None:
    @given(cases(rows(kind)), st.sampled_from([["k"], []]), st.booleans(), st.booleans(), fews)
    @settings(max_examples=examples)
    def test(case: Case, keys_: list[str], distinct: bool, closing: bool, few: int) -> None:
        for played in (case, one_by_one(*case.inputs, cut=closing)):
            check(keys_, [ColumnAggregate("v", function, "x", distinct)], played, closing, few)

    test()


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_aggregate(function: str, kind: str) -> None:
    check_each(function, kind, examples=12)


@pytest.mark.long
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_aggregate_often(function: str, kind: str) -> None:
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


@given(cases(rows("all")), keyed, st.lists(calls, max_size=4), st.booleans(), fews)
def test_several_aggregates_at_once(
    case: Case, keys_: list[str], several: list[ColumnAggregate], closing: bool, few: int
) -> None:
    named = [call._replace(variable=f"v{i}") for i, call in enumerate(several)]
    for played in (case, at_once(*case.inputs), one_by_one(*case.inputs, cut=closing)):
        check(keys_, named, played, closing, few)


class Watched(Aggregation):
    """An aggregation that says what it gave and what it knew after each step."""

    seen: list

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        batch, watermark = super().step(batches, watermarks, cut)
        live = np.flatnonzero(self._groups.since < INFINITY).tolist()
        known, standing = [], self._groups.values[:, live].T.tolist()
        if live and self._small_steps._copy(live):
            known = [self._small_steps._groups[slot] for slot in live]
            scale = [1] * (1 + len(self._small_steps._counted))
            for name in self._small_steps._summed:
                scale.append(Fraction(2) ** self._elements[0].sums[name]._binary._base)
            known = [[*map(mul, scale, group)] for group in known]
        since = self._groups.since[live].tolist()
        self.seen.append((sorted(rows_of(batch)), watermark, live, since, standing, known))
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

    @given(kinds, st.booleans(), keyed, st.lists(simple, max_size=3), fews)
    @settings(max_examples=examples)
    def test(
        case: Case, slowly: bool, keys_: list[str], several: list[ColumnAggregate], few: int
    ) -> None:
        case = one_by_one(*case.inputs) if slowly else case
        named = [call._replace(variable=f"v{i}") for i, call in enumerate(several)]
        watched: list[Watched] = []

        def make(source: RunInput) -> Watched:
            watched.append(Watched(source, keys_, named, TERMS))
            watched[-1].seen = []
            return watched[-1]

        for most in (few, 256, 0):
            with by_hand(most):
                drive(make, [NAMES], case)
        assert watched[0].seen == watched[1].seen == watched[2].seen

    test()


def test_steps_by_hand_and_swept_come_to_the_same() -> None:
    check_steps(examples=100)


@pytest.mark.long
def test_many_steps_by_hand_and_swept_come_to_the_same() -> None:
    check_steps(examples=2000)


@given(cases(rows("all")), keyed, calls, st.booleans())
def test_annotate_keeps_the_rows(
    case: Case, keys_: list[str], call: ColumnAggregate, closing: bool
) -> None:
    node = group.Annotate(
        Variable("v"), expression(call), tuple(map(variable_of, keys_)), shape.UNIT
    )
    out = drive(lambda source: Annotate(source, keys_, call, TERMS), [NAMES], case, closing=closing)
    agrees(out, case, defined(node, [*NAMES, "v"]))


@pytest.mark.parametrize("few", [0, 256])
def test_what_is_counted_twice_is_counted_once(few: int) -> None:
    """Calls of the same column share what is known of it."""
    rows_ = [Row((0, x, 0), t, t + 5) for t, x in enumerate([0, DOUBLES[0], 0, 0])]
    both = [ColumnAggregate("v", "COUNT", "x"), ColumnAggregate("w", "COUNT", "x")]
    check(["k"], both, one_by_one(rows_), few=few)


def test_keys_may_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    strong = keys.row_keys
    monkeypatch.setattr(
        keys, "row_keys", lambda c, n, salt=0: strong(c, n, salt) & (2 ** min(salt, 62) - 1)
    )

    @given(cases(rows("whole")))
    @settings(max_examples=30)
    def test(case: Case) -> None:
        check(
            ["x", "k"],
            [ColumnAggregate("v", "SUM", "x"), ColumnAggregate("w", "COUNT", None, True)],
            case,
        )

    test()


MANY = 10**6


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
def test_one_giant_group(function: str, ends: str) -> None:
    """A million rows of one group: in chunks, which takes seconds at most, and comes out right."""
    operator = Aggregation(RunInput(["x"]), [], [ColumnAggregate("v", function, "x")], TERMS)
    start = EPOCH + (np.zeros(MANY, np.int64) if ends == "tied" else np.arange(MANY))
    end = {"sliding": start + 1000, "never": np.full(MANY, INFINITY), "tied": start + 5}[ends]
    x = TERMS.of_integers(np.arange(MANY) % 7)
    began, out = time.process_time(), []
    for at in range(0, MANY, 1 << 16):
        rows = Batch({"x": x}, start, end).part(at, at + (1 << 16))
        later = start[at + (1 << 16) :]
        watermark = int(later[0]) if len(later) else INFINITY
        out.append(operator.step([rows], [watermark], False)[0])
    assert time.process_time() - began < 30
    found = Batch.concat(out)
    (row,) = np.flatnonzero((found.start <= start[-1]) & (start[-1] < found.end))
    last = (np.arange(MANY) % 7)[-1000 if ends == "sliding" else 0 :]
    bag = [
        (integer(int(v)), int(n)) for v, n in zip(*np.unique(last, return_counts=True), strict=True)
    ]
    assert TERMS.term_of(int(found.columns["v"][row])) == aggregate(function, bag)


def test_state_is_what_the_window_holds() -> None:
    """Ever-new groups, for a long time: neither elements nor slots pile up."""
    calls = [
        ColumnAggregate("n", "COUNT"),
        ColumnAggregate("s", "SUM", "x"),
        ColumnAggregate("d", "COUNT", "x", True),
    ]
    operator = Aggregation(RunInput(["k", "x"]), ["k"], calls, TERMS)
    annotate = Annotate(RunInput(["k", "x"]), ["k"], calls[0], TERMS)
    sizes, held = [], []
    for t in range(500):
        ids_ = TERMS.of_integers(np.arange(10 * t, 10 * t + 10))
        rows = Batch({"k": ids_, "x": ids_}, np.full(10, t), np.full(10, t + 20))
        for each in (operator, annotate):
            each.step([rows], [t + 1], False)
        if t > 200:
            sizes.append(operator.size() + annotate.size())
            held.append(
                sum(map(len, operator.retained_ids())) + sum(map(len, annotate.retained_ids()))
            )
    assert max(sizes) == min(sizes)
    assert max(held) < 20_000


def test_a_group_by_what_is_never_bound_is_one_group():
    """The rules may drop what binds the key, where that is always an error."""
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
