"""Operators driven by hand: rows come in any cut into steps that the promises about time allow.

A `Case` is a test's input: the rows of each input, in which round each comes, how far the inputs'
watermarks trail behind what they could be, and which rounds ask for a cut. `drive` plays it to an
operator, checks what the operator promises (physical/operator.py), and gives all that came out.
`agrees` then compares that with a definition, instant by instant.

What it cannot see: whether rows come out as early as they could without a cut, and how much state
an operator holds while the rows that it holds are still alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from streamsparql.algebra.streams import INFINITY
from streamsparql.physical.batch import Batch
from streamsparql.physical.operator import Operator, StepResult

EPOCH = 1_700_000_000_000
"""An instant of our days, in milliseconds."""

Ids = tuple[int, ...]
Bag = Counter[Ids]


class Row(NamedTuple):
    """The ids of a row, in the order of its input's columns; its validity; how often it is there.

    >>> Row((7, 8), 0, 5)
    Row(ids=(7, 8), start=0, end=5, count=1)
    """

    ids: Ids
    start: int
    end: int
    count: int = 1


class Round(NamedTuple):
    """One step: how far each input's watermark trails behind what comes next, and whether to cut.

    A lag of None means that the watermark stays where it is.
    """

    lags: tuple[int | None, ...]
    cut: bool = False


class Case(NamedTuple):
    """The rows of each input, the round that each comes in, and the rounds."""

    inputs: tuple[tuple[Row, ...], ...]
    comes: tuple[tuple[int, ...], ...]
    rounds: tuple[Round, ...]


class RunInput(Operator):
    """An input: the driver says what it gives."""

    state = "none"

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        """Never called: its rows come from a case."""
        raise AssertionError("the driver gives the rows of its inputs itself")


def at_once(*inputs: Iterable[Row], cut: bool = False) -> Case:
    """All rows in one step, after which nothing comes."""
    rows = tuple(map(tuple, inputs))
    return Case(rows, tuple((0,) * len(r) for r in rows), (Round((0,) * len(rows), cut),))


def one_by_one(*inputs: Iterable[Row], cut: bool = False) -> Case:
    """A step for each row, in the order of their starts over all inputs, with tight watermarks."""
    rows = tuple(tuple(sorted(r, key=lambda row: row.start)) for r in inputs)
    places = sorted((row.start, i, k) for i, r in enumerate(rows) for k, row in enumerate(r))
    order = {(i, k): n for n, (_, i, k) in enumerate(places)}
    comes = tuple(tuple(order[i, k] for k in range(len(r))) for i, r in enumerate(rows))
    return Case(rows, comes, (Round((0,) * len(rows), cut),) * len(places))


def drive(
    make: Callable[..., Operator],
    names: Sequence[Sequence[str]],
    case: Case,
    *,
    ordered: bool = True,
    closing: bool = False,
) -> list[Row]:
    """Plays a case to the operator that `make` makes of its inputs; gives the rows that came out.

    `names` are the columns of each input. A last round ends all inputs, with a cut if `closing`.
    Not `ordered` is for the sink alone: its rows may start before the last watermark.
    """
    operator = make(*map(RunInput, names))
    promised, given = -INFINITY, []
    assert operator.size() == 0
    for rows, marks, cut in steps_of_case(case, closing):
        batches = [batch_of(*pair) for pair in zip(names, rows, strict=True)]
        batch, watermark = operator.step(batches, marks, cut)
        assert tuple(batch.columns) == operator.names
        assert watermark >= promised, "the watermark fell"
        if len(batch):
            assert (batch.start < batch.end).all(), "an empty validity came out"
            assert (batch.counts() > 0).all()
            assert (np.diff(batch.start) >= 0).all(), "the output is out of order"
            assert not ordered or batch.start[0] >= promised, "a row before the watermark"
        if cut:
            assert watermark >= min(marks), "a cut must bring the watermark to the inputs'"
        promised = watermark
        given += rows_of(batch)
    assert promised == INFINITY, "the end of the input must be the end of the output"
    assert operator.size() == 0, "state is left after the end"
    return given


def steps_of_case(
    case: Case, closing: bool = False
) -> Iterator[tuple[list[list[Row]], list[int], bool]]:
    """Yield what each step of a case has: the new rows and the watermark of each input; whether to cut."""
    count = len(case.inputs)
    marks = [-INFINITY] * count
    for number in range(len(case.rounds) + 1):
        last = number == len(case.rounds)
        cut = closing if last else case.rounds[number].cut
        for i in range(count):
            marks[i] = INFINITY if last else max(marks[i], _watermark(case, i, number))
        yield [_coming(case, i, number) for i in range(count)], list(marks), cut


def _coming(case: Case, i: int, number: int) -> list[Row]:
    pairs = zip(case.inputs[i], case.comes[i], strict=True)
    rows = [row for row, comes in pairs if comes == number]
    return sorted(rows, key=lambda row: row.start)


def _watermark(case: Case, i: int, number: int) -> int:
    """The least start still to come, less the lag."""
    lag = case.rounds[number].lags[i]
    if lag is None:
        return -INFINITY
    pairs = zip(case.inputs[i], case.comes[i], strict=True)
    left = [row.start for row, comes in pairs if comes > number]
    if left:
        return min(left) - lag
    latest = max((row.start for row in case.inputs[i]), default=0)
    return latest + 20 - lag if lag else INFINITY


def batch_of(names: Sequence[str], rows: Sequence[Row]) -> Batch:
    """A batch of rows; it has counts where one is not 1."""

    def array(values: Iterable[int]) -> np.ndarray:
        return np.fromiter(values, np.int64, len(rows))

    columns = {name: array(row.ids[k] for row in rows) for k, name in enumerate(names)}
    counts = array(row.count for row in rows)
    start, end = array(row.start for row in rows), array(row.end for row in rows)
    return Batch(columns, start, end, counts if (counts != 1).any() else None)


def rows_of(batch: Batch) -> list[Row]:
    """The rows of a batch, ids in the order of its columns."""
    columns = [column.tolist() for column in batch.columns.values()]
    ids = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
    return list(map(Row, ids, batch.start.tolist(), batch.end.tolist(), batch.counts().tolist()))


# -- Against a definition -----------------------------------------------------------------------


def snapshot(rows: Iterable[Row], t: int) -> Bag:
    """What holds at an instant, how often."""
    bag: Bag = Counter()
    for row in rows:
        if row.start <= t < row.end:
            bag[row.ids] += row.count
    return bag


def instants(*streams: Iterable[Row]) -> list[int]:
    """The instants at which one of the streams can change; the first instant of all, and a late one."""
    found = {t for rows in streams for row in rows for t in (row.start, row.end)}
    return sorted({t for t in found if t < INFINITY} | {0, INFINITY - 1})


def agrees(given: Sequence[Row], case: Case, definition: Callable[..., Bag]) -> None:
    """Asserts that at each instant the output is what the definition makes of the inputs then.

    `definition` takes the bag of each input and gives the bag of the output.
    """
    for t in instants(given, *case.inputs):
        expected = definition(*(snapshot(rows, t) for rows in case.inputs))
        assert snapshot(given, t) == +expected, f"at {t}"


# -- Random cases -------------------------------------------------------------------------------


def rows_over(
    ids: Sequence[st.SearchStrategy[int]], counted: bool = True, longest: int = 8
) -> st.SearchStrategy[Row]:
    """Rows with an id of each strategy, over short intervals that often adjoin, some without end."""

    def row(values: Ids, start: int, length: int, count: int) -> Row:
        return Row(values, start, INFINITY if length > longest else start + length, count)

    return st.builds(
        row, st.tuples(*ids), st.integers(0, 10), st.integers(1, longest + 1),
        st.sampled_from([1, 1, 1, 2, 3]) if counted else st.just(1),
    )  # fmt: skip


@st.composite
def cases(
    draw: st.DrawFn, *inputs: st.SearchStrategy[Row], most: int = 10, rounds: int = 6
) -> Case:
    """Cases with rows of these kinds; half of them in order over all rounds, half nearly so."""
    origin = draw(st.sampled_from([0, 0, EPOCH]))
    number = draw(st.integers(0, rounds))
    given, comes = [], []
    for kind in inputs:
        rows = sorted(draw(st.lists(kind, max_size=most)), key=lambda row: row.start)
        size = len(rows)
        order = draw(st.lists(st.integers(0, number), min_size=size, max_size=size))
        given.append(tuple(_moved(row, origin) for row in rows))
        comes.append(tuple(sorted(order) if draw(st.booleans()) else order))
    lag = st.sampled_from([0, 0, 0, 1, 3, 9, None])
    step = st.builds(Round, st.tuples(*[lag] * len(inputs)), st.booleans())
    steps = draw(st.lists(step, min_size=number, max_size=number))
    return Case(tuple(given), tuple(comes), tuple(steps))


def _moved(row: Row, by: int) -> Row:
    return row._replace(start=row.start + by, end=min(row.end + by, INFINITY))
