"""Whether two plans mean the same: a search for data over which they differ.

`plan.equivalent(other)` draws random streams and graphs that are made of what both plans mention,
and compares the plans' own definitions at each instant at which anything can change. A difference
is a proof that the plans are not equivalent, and it is shrunk until a reader sees why; none in so
many trials is evidence, and no proof, that they are.

>>> import streamsparql
>>> one, other = (streamsparql.compile(
...     f"SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS SLIDE {d} MS {{ ?x <p> ?y }}").logical
...     for d in (5, 4))
>>> print(equivalent(one, other))
not equivalent: found in trial 3, over these data
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
from streamsparql.errors import EngineError
from streamsparql.look.equivalence.difference import Comparison, Difference
from streamsparql.look.equivalence.random_inputs import Draws
from streamsparql.look.equivalence.shrinking import shrunk
from streamsparql.look.equivalence.vocabulary import Vocabulary

__all__ = ["TRIALS", "Counterexample", "Equivalence", "equivalent"]

TRIALS = 200
"""How many random data two plans are compared over."""

_SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Counterexample:
    """Data over which two plans differ, an instant at which they do, and both snapshots there.

    `streams`, `graph` and `graphs` are what `Query.run` and `streamsparql.inputs` take. `row` is
    the row of an EXISTS, where the plans were asked as its pattern.
    """

    inputs: Inputs
    t: int
    one: Snapshot[Any]
    other: Snapshot[Any]
    row: Solution = EMPTY

    @property
    def streams(self) -> dict[str, list[tuple[tuple[str, str, str], *tuple[int, ...]]]]:
        """The items of the streams, with terms in N-Triples syntax."""
        return {name.value: [_given(item) for item in s] for name, s in self.inputs.streams.items()}

    @property
    def graph(self) -> list[tuple[str, ...]]:
        """The default graph."""
        return [tuple(map(str, triple)) for triple in sorted(self.inputs.graph, key=str)]

    @property
    def graphs(self) -> dict[str, list[tuple[str, ...]]]:
        """The named graphs."""
        return {
            name.value: [tuple(map(str, triple)) for triple in sorted(graph, key=str)]
            for name, graph in self.inputs.graphs.items()
        }

    def sources(self) -> Iterator[tuple[str, list[str]]]:
        """Each source with its lines, for readers; a stream too that has no items."""
        for name, items in self.inputs.streams.items():
            yield f"stream {_called(name)}", list(_lines(items))
        if self.inputs.graph:
            yield "default graph", [" ".join(triple) for triple in self.graph]
        for graph, triples in self.graphs.items():
            yield f"graph <{graph}>", [" ".join(triple) for triple in triples]
        if self.row:
            yield "row of the EXISTS around it", [str(self.row)]

    def rows(self) -> list[tuple[str, int, int]]:
        """The rows of both snapshots, and how often each of them has it."""
        items = dict.fromkeys(item for side in (self.one, self.other) for item, _ in side.entries)
        counted = ((item, self.one.count(item), self.other.count(item)) for item in items)
        return [(_shown(item), n, m) for item, n, m in counted]

    @property
    def in_order(self) -> list[tuple[str, str]]:
        """The rows side by side, where the snapshots differ in nothing but the order of them."""
        if self.one != self.other:
            return []
        return [(_shown(x), _shown(y)) for x, y in zip(self.one, self.other, strict=True)]

    @property
    def head(self) -> str:
        """What the snapshots are."""
        order = ": the same rows, in another order" if self.in_order else ""
        return f"the snapshots at {self.t} ms{order}"

    def __str__(self) -> str:
        lines = []
        for name, found in self.sources():
            lines += [f"    {name}", *(f"        {line}" for line in found or ["nothing"])]
        lines.append(self.head)
        lines.append(f"    of this plan   {_listed(self.one)}")
        lines.append(f"    of the other   {_listed(self.other)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Equivalence:
    """What the search found: true where it found no difference in `trials` trials."""

    one: Plan = field(repr=False)
    other: Plan = field(repr=False)
    trials: int
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.counterexample is None

    def __str__(self) -> str:
        if self.counterexample is None:
            if self.one == self.other:
                return "equal: the two plans are the same"
            return f"no difference in {self.trials} trial{'s' * (self.trials != 1)}"
        return (
            f"not equivalent: found in trial {self.trials}, over these data\n{self.counterexample}"
        )

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from streamsparql.look.jupyter.equivalence_view import equivalence_html

        return equivalence_html(self)


def equivalent(
    one: Plan,
    other: Plan,
    trials: int = TRIALS,
    seed: int = 0,
    *,
    asked: bool = False,
    below_detect: bool = False,
) -> Equivalence:
    """Searches for data over which two plans differ; the same seed searches alike.

    Plans are equivalent when they have the same snapshot, a multiset, at every instant over any
    data; where both are ordered, in the same order. Columns count with their names.

    `asked` compares the plans under random rows too, as the pattern of an EXISTS is; `below_detect`
    compares parts of plans that are about events.
    """
    given: tuple[object, ...] = (one, other)
    for plan in given:
        if not isinstance(plan, Plan):
            kind = type(plan).__name__
            way = "; give its .logical" * (kind == "Query") + "; give its .plan" * (kind == "Draft")
            raise EngineError(f"plans are compared with plans, and this is a {kind}{way}")
    if type(trials) is not int or trials < 1:
        raise EngineError(f"trials is a number from 1 on, not {trials!r}")
    if one == other:
        return Equivalence(one, other, 0)
    vocabulary = Vocabulary.of(one, other)
    draws, comparison = Draws(vocabulary, seed), Comparison(one, other, below_detect)
    for trial in range(trials):
        data = draws.inputs(_size(trial, vocabulary))
        rows = (EMPTY, draws.row()) if asked else (EMPTY,)
        found = comparison.difference(data, rows)
        if found is not None:
            example = _smallest(comparison, data, found, vocabulary)
            return Equivalence(one, other, trial + 1, example)
    return Equivalence(one, other, trials)


def _size(trial: int, vocabulary: Vocabulary) -> int:
    """How many matches a trial has: a few, as a rule; at times enough to fill a window of them."""
    if trial % 7 == 6 and vocabulary.count > 1:
        return vocabulary.count + 3
    return _SIZES[trial % len(_SIZES)]


def _smallest(
    comparison: Comparison, data: Inputs, found: Difference, vocabulary: Vocabulary
) -> Counterexample:
    def differs(candidate: Inputs, row: Solution) -> bool:
        return comparison.difference(candidate, (row,)) is not None

    smallest, row = shrunk((data, found.row), differs, vocabulary.lengths)
    last = comparison.difference(smallest, (row,))
    assert last is not None, "each step of shrinking keeps a difference"
    return Counterexample(smallest, last.t, last.one, last.other, last.row)


# -- in words --------------------------------------------------------------------------------------


def _given(item: StreamItem) -> tuple[tuple[str, str, str], *tuple[int, ...]]:
    subject, predicate, value = map(str, item.triple)
    times = (item.end,) if item.start == item.end else (item.start, item.end)
    return ((subject, predicate, value), *times)


def _lines(items: Sequence[StreamItem]) -> Iterator[str]:
    """The items in order; what is the same is told once, with how often it comes."""
    for item, same in groupby(items):
        times = len(list(same))
        yield f"{_when(item)}  {item.triple}" + (f"  × {times}" if times > 1 else "")


def _when(item: StreamItem) -> str:
    return f"{item.end} ms" if item.start == item.end else f"{item.start} to {item.end} ms"


def _called(name: IRI) -> str:
    return "by default" if name == DEFAULT_STREAM else str(name)


def _shown(item: Any) -> str:
    """A row, a triple, a boolean, an event solution."""
    if isinstance(item, Occurrence):
        return f"{item.item} over [{item.start}, {item.end}]"
    return str(item)


def _listed(snapshot: Snapshot[Any]) -> str:
    shown = (_shown(item) + (f" × {n}" if n > 1 else "") for item, n in snapshot.entries)
    return ", ".join(shown) or "nothing"
