"""A driver of single operators: input arrives in any steps that the watermarks allow.

A `Case` is the input of a test: the rows of each input, the step in which each row arrives, the lag
of the inputs' watermarks in each step, and the steps that request a cut. `drive` feeds it to an
operator, checks the operator's contract (physical/operator.py), and returns all output.
`check_snapshots` then compares the output with a definition at each instant.

Not covered: whether rows are emitted as early as possible without a cut, and how much state an
operator retains while its rows are valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from streamsparql.algebra.streams import INFINITY
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import Operator, StepResult

EPOCH = 1_700_000_000_000
"""A present-day instant, in milliseconds."""

Ids = tuple[int, ...]
Bag = Counter[Ids]


class Row(NamedTuple):
    """The ids of a row, in the order of its input's columns; its validity; its multiplicity.

    >>> Row((7, 8), 0, 5)
    Row(ids=(7, 8), start=0, end=5, count=1)
    """

    ids: Ids
    start: int
    end: int
    count: int = 1


class Step(NamedTuple):
    """One step: the lag of each input's watermark behind the next start, and whether to cut.

    With a lag of None the watermark does not advance.
    """

    lags: tuple[int | None, ...]
    cut: bool = False


class Case(NamedTuple):
    """The rows of each input, the step in which each arrives, and the steps."""

    inputs: tuple[tuple[Row, ...], ...]
    arrivals: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]


class DrivenInput(Operator):
    """An input whose rows the driver passes to the operator above."""

    state = "none"

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        raise AssertionError("the driver passes the rows of inputs itself")


def at_once(*inputs: Iterable[Row], cut: bool = False) -> Case:
    """Return a case in which all rows arrive in one step."""
    rows = tuple(map(tuple, inputs))
    return Case(rows, tuple((0,) * len(r) for r in rows), (Step((0,) * len(rows), cut),))


def one_by_one(*inputs: Iterable[Row], cut: bool = False) -> Case:
    """Return a case with one step per row, by start over all inputs, and watermarks without lag."""
    rows = tuple(tuple(sorted(r, key=lambda row: row.start)) for r in inputs)
    places = sorted((row.start, i, k) for i, r in enumerate(rows) for k, row in enumerate(r))
    order = {(i, k): n for n, (_, i, k) in enumerate(places)}
    arrivals = tuple(tuple(order[i, k] for k in range(len(r))) for i, r in enumerate(rows))
    return Case(rows, arrivals, (Step((0,) * len(rows), cut),) * len(places))


def drive(
    make: Callable[..., Operator],
    names: Sequence[Sequence[str]],
    case: Case,
    *,
    ordered: bool = True,
    closing: bool = False,
) -> list[Row]:
    """Feed a case to the operator that `make` builds over its inputs; return the output.

    `names` are the columns of each input. A last step ends all inputs, with a cut if `closing`.
    Only the sink is not `ordered`: its rows may start before the last watermark.
    """
    operator = make(*map(DrivenInput, names))
    promised, output = -INFINITY, []
    assert operator.size() == 0
    for rows, marks, cut in steps_of_case(case, closing):
        batches = [batch_of(*pair) for pair in zip(names, rows, strict=True)]
        batch, watermark = operator.step(batches, marks, cut)
        assert tuple(batch.columns) == operator.names
        assert watermark >= promised, "the watermark decreased"
        if len(batch):
            assert (batch.start < batch.end).all(), "a row with an empty validity"
            assert (batch.counts() > 0).all()
            assert (np.diff(batch.start) >= 0).all(), "the output is not sorted by start"
            assert not ordered or batch.start[0] >= promised, "a row starts before the watermark"
        if cut:
            assert watermark >= min(marks), "after a cut the watermark must be that of the inputs"
        promised = watermark
        output += rows_of(batch)
    assert promised == INFINITY, "the output must end with the input"
    assert operator.size() == 0, "state remains after the end"
    return output


def steps_of_case(
    case: Case, closing: bool = False
) -> Iterator[tuple[list[list[Row]], list[int], bool]]:
    """Yield for each step the new rows of each input, the watermarks, and whether to cut."""
    count = len(case.inputs)
    marks = [-INFINITY] * count
    for number in range(len(case.steps) + 1):
        last = number == len(case.steps)
        cut = closing if last else case.steps[number].cut
        for i in range(count):
            marks[i] = INFINITY if last else max(marks[i], _watermark(case, i, number))
        yield [_arriving(case, i, number) for i in range(count)], list(marks), cut


def _arriving(case: Case, i: int, number: int) -> list[Row]:
    pairs = zip(case.inputs[i], case.arrivals[i], strict=True)
    rows = [row for row, step in pairs if step == number]
    return sorted(rows, key=lambda row: row.start)


def _watermark(case: Case, i: int, number: int) -> int:
    """Return the least start that is yet to arrive, minus the lag."""
    lag = case.steps[number].lags[i]
    if lag is None:
        return -INFINITY
    pairs = zip(case.inputs[i], case.arrivals[i], strict=True)
    left = [row.start for row, step in pairs if step > number]
    if left:
        return min(left) - lag
    latest = max((row.start for row in case.inputs[i]), default=0)
    return latest + 20 - lag if lag else INFINITY


def batch_of(names: Sequence[str], rows: Sequence[Row]) -> Batch:
    """Return a batch of rows; without counts if all are 1."""

    def array(values: Iterable[int]) -> np.ndarray:
        return np.fromiter(values, np.int64, len(rows))

    columns = {name: array(row.ids[k] for row in rows) for k, name in enumerate(names)}
    counts = array(row.count for row in rows)
    start, end = array(row.start for row in rows), array(row.end for row in rows)
    return Batch(columns, start, end, counts if (counts != 1).any() else None)


def rows_of(batch: Batch) -> list[Row]:
    """Return the rows of a batch, ids in the order of its columns."""
    columns = [column.tolist() for column in batch.columns.values()]
    ids = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
    return list(map(Row, ids, batch.start.tolist(), batch.end.tolist(), batch.counts().tolist()))


# -- Against a definition -----------------------------------------------------------------------


def snapshot(rows: Iterable[Row], t: int) -> Bag:
    """Return the rows that hold at an instant, as a multiset."""
    bag: Bag = Counter()
    for row in rows:
        if row.start <= t < row.end:
            bag[row.ids] += row.count
    return bag


def instants(*streams: Iterable[Row]) -> list[int]:
    """Return the instants at which a stream can change, the first instant and the last one."""
    edges = {t for rows in streams for row in rows for t in (row.start, row.end)}
    return sorted({t for t in edges if t < INFINITY} | {0, INFINITY - 1})


def check_snapshots(output: Sequence[Row], case: Case, definition: Callable[..., Bag]) -> None:
    """Check at each instant that the output is the definition of the inputs' snapshots.

    `definition` maps the multisets of the inputs to that of the output.
    """
    for t in instants(output, *case.inputs):
        expected = definition(*(snapshot(rows, t) for rows in case.inputs))
        assert snapshot(output, t) == +expected, f"at {t}"


# -- Random cases -------------------------------------------------------------------------------


def rows_over(
    ids: Sequence[st.SearchStrategy[int]], counted: bool = True, longest: int = 8
) -> st.SearchStrategy[Row]:
    """Draw rows with an id of each strategy, over short, often adjacent intervals, some unbounded."""

    def row(values: Ids, start: int, length: int, count: int) -> Row:
        return Row(values, start, INFINITY if length > longest else start + length, count)

    return st.builds(
        row, st.tuples(*ids), st.integers(0, 10), st.integers(1, longest + 1),
        st.sampled_from([1, 1, 1, 2, 3]) if counted else st.just(1),
    )  # fmt: skip


@st.composite
def cases(
    draw: st.DrawFn, *inputs: st.SearchStrategy[Row], max_rows: int = 10, max_steps: int = 6
) -> Case:
    """Draw cases with rows of these strategies; about half of the inputs arrive in order."""
    origin = draw(st.sampled_from([0, 0, EPOCH]))
    number = draw(st.integers(0, max_steps))
    shifted, arrivals = [], []
    for kind in inputs:
        rows = sorted(draw(st.lists(kind, max_size=max_rows)), key=lambda row: row.start)
        size = len(rows)
        order = draw(st.lists(st.integers(0, number), min_size=size, max_size=size))
        shifted.append(tuple(_shifted(row, origin) for row in rows))
        arrivals.append(tuple(sorted(order) if draw(st.booleans()) else order))
    lag = st.sampled_from([0, 0, 0, 1, 3, 9, None])
    step = st.builds(Step, st.tuples(*[lag] * len(inputs)), st.booleans())
    steps = draw(st.lists(step, min_size=number, max_size=number))
    return Case(tuple(shifted), tuple(arrivals), tuple(steps))


def _shifted(row: Row, by: int) -> Row:
    return row._replace(start=row.start + by, end=min(row.end + by, INFINITY))
