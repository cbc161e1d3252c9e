"""Equivalence of two plans: a search for data over which they differ.

`plan.equivalent(other)` draws random streams and graphs from the vocabulary of both plans, and
compares the plans' definitions at each instant at which a snapshot can change. A difference proves
that the plans are not equivalent; it is shrunk to a small counterexample. Finding no difference in
all trials is evidence that they are equivalent, not a proof.

>>> import streamsparql
>>> one, other = (streamsparql.compile(
...     f"SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS SLIDE {d} MS {{ ?x <p> ?y }}").logical
...     for d in (5, 4))
>>> print(equivalent(one, other))
not equivalent; counterexample found in trial 3:
    stream <s>
        0 ms  <urn:a> <p> <urn:a>
the snapshots at 8 ms
    of this plan   {?x: <urn:a>}
    of the other   nothing
>>> bool(equivalent(one, one, trials=20))
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from streamsparql.algebra.inputs import DEFAULT_STREAM, Inputs, StreamItem
from streamsparql.algebra.plan import Occurrence, Plan
from streamsparql.algebra.solutions import EMPTY, Solution
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI
from streamsparql.display import Displayed
from streamsparql.errors import EngineError
from streamsparql.look.equivalence.difference import Difference, SnapshotComparison
from streamsparql.look.equivalence.random_inputs import InputGenerator
from streamsparql.look.equivalence.shrinking import shrink
from streamsparql.look.equivalence.vocabulary import Vocabulary
from streamsparql.overriding import override

__all__ = ["TRIALS", "Counterexample", "Equivalence", "equivalent"]

TRIALS = 200
"""The default number of random inputs over which two plans are compared."""

_MATCH_COUNTS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Counterexample:
    """Data over which two plans differ, an instant at which they differ, and both snapshots.

    `streams`, `graph` and `graphs` can be passed to `Query.run` and `streamsparql.inputs`. `row` is
    the outer row, where the plans were compared as patterns of an EXISTS.
    """

    inputs: Inputs
    t: int
    one: Snapshot[Any]
    other: Snapshot[Any]
    row: Solution = EMPTY

    @property
    def streams(self) -> dict[str, list[tuple[tuple[str, str, str], *tuple[int, ...]]]]:
        """The items of the streams, with terms in N-Triples syntax."""
        return {
            name.value: [_source_item(item) for item in s]
            for name, s in self.inputs.streams.items()
        }

    @property
    def graph(self) -> list[tuple[str, ...]]:
        """The triples of the default graph, with terms in N-Triples syntax."""
        return [tuple(map(str, triple)) for triple in sorted(self.inputs.graph, key=str)]

    @property
    def graphs(self) -> dict[str, list[tuple[str, ...]]]:
        """The triples of the named graphs, with terms in N-Triples syntax."""
        return {
            name.value: [tuple(map(str, triple)) for triple in sorted(graph, key=str)]
            for name, graph in self.inputs.graphs.items()
        }

    def sources(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the label of each source with its items as text; streams may be empty."""
        for name, items in self.inputs.streams.items():
            yield f"stream {_stream_label(name)}", list(_lines(items))
        if self.inputs.graph:
            yield "default graph", [" ".join(triple) for triple in self.graph]
        for graph, triples in self.graphs.items():
            yield f"graph <{graph}>", [" ".join(triple) for triple in triples]
        if self.row:
            yield "outer row of the EXISTS", [str(self.row)]

    def rows(self) -> list[tuple[str, int, int]]:
        """Return the rows of both snapshots as text, each with its multiplicity in both."""
        items = dict.fromkeys(item for side in (self.one, self.other) for item, _ in side.entries)
        counted = ((item, self.one.count(item), self.other.count(item)) for item in items)
        return [(_item_text(item), n, m) for item, n, m in counted]

    @property
    def in_order(self) -> list[tuple[str, str]]:
        """Pairs of rows at the same rank, where the snapshots differ in their order only."""
        if self.one != self.other:
            return []
        return [(_item_text(x), _item_text(y)) for x, y in zip(self.one, self.other, strict=True)]

    @property
    def head(self) -> str:
        """The line above the two snapshots."""
        order = ": the same rows, in another order" if self.in_order else ""
        return f"the snapshots at {self.t} ms{order}"

    def __str__(self) -> str:
        lines = []
        for name, items in self.sources():
            lines += [f"    {name}", *(f"        {line}" for line in items or ["nothing"])]
        lines.append(self.head)
        lines.append(f"    of this plan   {_snapshot_text(self.one)}")
        lines.append(f"    of the other   {_snapshot_text(self.other)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Equivalence(Displayed):
    """The result of the search: true if no difference was found in `trials` trials."""

    one: Plan = field(repr=False)
    other: Plan = field(repr=False)
    trials: int
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.counterexample is None

    @override
    def __str__(self) -> str:
        if self.counterexample is None:
            if self.one == self.other:
                return "equal: the two plans are the same"
            return f"no difference in {self.trials} trial{'s' * (self.trials != 1)}"
        return (
            f"not equivalent; counterexample found in trial {self.trials}:\n{self.counterexample}"
        )


def equivalent(
    one: Plan,
    other: Plan,
    trials: int = TRIALS,
    seed: int = 0,
    *,
    inside_exists: bool = False,
    below_detect: bool = False,
) -> Equivalence:
    """Search for data over which two plans differ. The same seed repeats the same search.

    Plans are equivalent when they have the same snapshot, a multiset of rows with named columns, at
    every instant over any data; where both are ordered, the same sequence.

    `inside_exists` also compares the plans under random outer rows, as patterns of an EXISTS;
    `below_detect` compares them as subplans of a `Detect`, whose rows are events.
    """
    arguments: tuple[object, ...] = (one, other)
    for plan in arguments:
        if not isinstance(plan, Plan):
            kind = type(plan).__name__
            hint = "; use its .logical" * (kind == "Query") + "; use its .plan" * (kind == "Draft")
            raise EngineError(f"a plan must be compared with a plan, not a {kind}{hint}")
    if type(trials) is not int or trials < 1:
        raise EngineError(f"trials must be a positive integer, not {trials!r}")
    if one == other:
        return Equivalence(one, other, 0)
    vocabulary = Vocabulary.of(one, other)
    generator, comparison = (
        InputGenerator(vocabulary, seed),
        SnapshotComparison(one, other, below_detect),
    )
    for trial in range(trials):
        data = generator.inputs(_match_count(trial, vocabulary))
        rows = (EMPTY, generator.row()) if inside_exists else (EMPTY,)
        difference = comparison.difference(data, rows)
        if difference is not None:
            example = _shrunk_example(comparison, data, difference, vocabulary)
            return Equivalence(one, other, trial + 1, example)
    return Equivalence(one, other, trials)


def _match_count(trial: int, vocabulary: Vocabulary) -> int:
    """Return the number of matches in a trial: small, at times enough to fill a counting window."""
    if trial % 7 == 6 and vocabulary.count > 1:
        return vocabulary.count + 3
    return _MATCH_COUNTS[trial % len(_MATCH_COUNTS)]


def _shrunk_example(
    comparison: SnapshotComparison, data: Inputs, difference: Difference, vocabulary: Vocabulary
) -> Counterexample:
    def differs(candidate: Inputs, row: Solution) -> bool:
        return comparison.difference(candidate, (row,)) is not None

    smallest, row = shrink((data, difference.row), differs, vocabulary.lengths)
    last = comparison.difference(smallest, (row,))
    assert last is not None, "each step of shrinking keeps a difference"
    return Counterexample(smallest, last.t, last.one, last.other, last.row)


# -- text ------------------------------------------------------------------------------------------


def _source_item(item: StreamItem) -> tuple[tuple[str, str, str], *tuple[int, ...]]:
    """Return an item in a form that sources of streams accept."""
    subject, predicate, value = map(str, item.triple)
    times = (item.end,) if item.start == item.end else (item.start, item.end)
    return ((subject, predicate, value), *times)


def _lines(items: Sequence[StreamItem]) -> Iterator[str]:
    """Yield the items as lines of text; equal items are one line with their number."""
    for item, same in groupby(items):
        times = len(list(same))
        yield f"{_times_text(item)}  {item.triple}" + (f"  × {times}" if times > 1 else "")


def _times_text(item: StreamItem) -> str:
    return f"{item.end} ms" if item.start == item.end else f"{item.start} to {item.end} ms"


def _stream_label(name: IRI) -> str:
    return "by default" if name == DEFAULT_STREAM else str(name)


def _item_text(item: Any) -> str:
    """Return a row, a triple, a boolean or an event as text."""
    if isinstance(item, Occurrence):
        return f"{item.item} over [{item.start}, {item.end}]"
    return str(item)


def _snapshot_text(snapshot: Snapshot[Any]) -> str:
    items = (_item_text(item) + (f" × {n}" if n > 1 else "") for item, n in snapshot.entries)
    return ", ".join(items) or "nothing"
