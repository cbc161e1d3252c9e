"""Random queries about events, random occurrences, and an engine that is fed step by step.

Queries are trees of all event operators, with filters, subqueries, BIND and static triples. Two
streams deliver items with occurrences, many of them at equal instants, some without duration. The
terms are few, so that patterns match and rows join.

`Feed` passes the items to the pipeline of a pattern, each stream with a watermark of its own. Any
number of items of the instant at the watermark may arrive later. It collects the event solutions,
and checks what operators promise: that each comes once, in time, and not before a watermark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from support.plans import graph, plan, triple

from streamsparql.algebra.event import Detect
from streamsparql.algebra.functions import Run
from streamsparql.algebra.inputs import Inputs, StreamItem
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import rewrite
from streamsparql.algebra.solutions import Solution
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE, in_solution
from streamsparql.physical.kernels.occurrences import since_of, starts_of
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operator import INFINITY
from streamsparql.physical.operators.event import EventLeftJoin
from streamsparql.physical.operators.event_sets import Detect as PhysicalDetect
from streamsparql.physical.pipeline import Pipeline

PREFIX = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
SOURCES = "FROM STREAM :s FROM NAMED STREAM :g "
STREAMS = ("http://e/s", "http://e/g")
LATER = 10**6
"""An instant after all others."""

Detection = tuple[frozenset[tuple[str, object]], int, int]
"""An event solution: its variables that are not hidden, its start and its end."""


# -- queries ------------------------------------------------------------------------------------


class EventWriter:
    """A writer of random patterns."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._new = 0

    def pick(self, *options: str) -> str:
        """Choose one of some texts."""
        return self._random.choice(options)

    def chance(self, percent: int) -> bool:
        """Return whether an event of this probability occurs."""
        return self._random.random() * 100 < percent

    def new(self) -> str:
        """Return a new variable."""
        self._new += 1
        return f"?n{self._new}"

    def leaf(self) -> str:
        """Return one triple pattern, or a few, of one stream or the other."""
        subject, link = self.pick("?x", "?x", "?y", ":a"), self.pick(":p", ":q")
        text = f"{subject} {link} {self.pick('?y', '?z', '?x', '?w', ':a')} . "
        text = f"GRAPH :g {{ {text}}} " if self.chance(15) else text
        return text + self.leaf() if self.chance(8) else text

    def duration(self, *symbols: str) -> str:
        """Return a comparison of the duration with a few milliseconds."""
        return f'getDURATION() {self.pick(*symbols)} "PT0.00{self.pick(*"1234")}S"^^xsd:duration'

    def filter(self) -> str:
        """Return a filter, or no text."""
        moment = '"1970-01-01T00:00:00.003Z"^^xsd:dateTime'
        return self.pick(
            "", "",
            f"FILTER(!BOUND(?{self.pick(*'yzw')})) ",
            f"FILTER({self.duration('<', '<', '<=', '>', '>=', '=', '!=')}) ",
            "FILTER(?x != ?y) ",
            f"FILTER({self.duration('<')} && ?x != ?z) ",
            f"FILTER(getENDTIME() > {moment} || getSTARTTIME() = {moment}) ",
        )  # fmt: skip

    def pattern(self, depth: int) -> str:
        """Return a tree of operators."""
        if not depth or self.chance(25):
            return self.leaf()
        a, b = self.pattern(depth - 1), self.pattern(depth - 1)
        kinds = {
            f"{{ {a}}} SEQ {{ {b}}} ": 30,
            f"{{ {a}}} EQUALS {{ {b}}} ": 12,
            f"{{ {a}{self.filter()}}} OPTIONALSEQ {{ {b}}} ": 14,
            f"{{ {a}}} EQUALSOPTIONAL {{ {b}{self.filter()}}} ": 10,
            f"{{ {a}}} OPTIONAL {{ {b}{self.filter()}}} ": 10,
            f"{{ {a}}} UNION {{ {b}}} ": 8,
            f"{{ {a}}} {{ {b}}} {self.filter()}": 10,
            f"{{ SELECT ?x ?z {{ {a}}} }} ": 4,
            f"{{ {a}}} BIND(getDURATION() AS {self.new()}) ": 2,
        }
        (text,) = self._random.choices(list(kinds), list(kinds.values()))
        return text

    def where(self, depth: int = 3) -> str:
        """Return a group: a tree of operators, and a filter above it."""
        return f"{{ {self.pattern(self._random.randint(1, depth))}{self.filter()}}}"

    def pair(self, link: str) -> str:
        """Return one operator between two sides, each of one stream, that many items match."""
        sequence = f"{{ {self.side('?v')}}} SEQ {{ {self.side('?w')}}} "
        one = f"{{ {self.side('?y')}}} "
        other = f"{{ {self.pick(self.side('?z'), sequence)}}} "
        if self.chance(30):
            one, other = other, one
        above = self.pick("", "", f"FILTER({self.duration('<', '<=')}) ")
        return f"{{ {one}{link} {other}{above}}}"

    def side(self, value: str) -> str:
        """Return a pattern over all items of a stream with one predicate."""
        text = f"?x :{self.pick(*'pq')} {value} . "
        return f"GRAPH :g {{ {text}}} " if self.chance(40) else text

    def absence(self) -> str:
        """Return a sequence without an event in between, or before it, and a filter above it."""
        parts = [
            f"{self.pick('?x', '?x', '?y')} {self.pick(':p', ':q')} ?a{k} . "
            for k in range(self._random.choice([2, 2, 3]))
        ]
        subject = self.pick("?x", "?x", "?y", ":a")
        absent = [f"{subject} {self.pick(':p', ':q')} {self.pick('?b', '?b', '?a0')} . "]
        absent += ["?x :q ?c . "] * self.chance(20)
        at = self._random.randint(1, len(parts) - 1)
        others = self.pick(
            "", f"&& {self.duration('<')}", "&& ?a0 != ?x", "&& !BOUND(?a1)",
            f"&& {self.duration('<')} && ?a0 != ?a1",
        )  # fmt: skip
        if self.chance(20):
            sides = f"{{ {absent[0]}}} OPTIONALSEQ {{ {self._sequence(parts)} }}"
        else:
            interrupted = self._sequence([*parts[:at], *absent, *parts[at:]])
            sides = f"{{ {self._sequence(parts)} }} EQUALSOPTIONAL {{ {interrupted} }}"
        text = f"{sides} FILTER(!BOUND(?b) {others})"
        return f"{{ {{ {text} }} SEQ {{ ?x :q ?last }} }}" if self.chance(20) else f"{{ {text} }}"

    def _sequence(self, parts: Sequence[str]) -> str:
        first, *rest = (f"{{ {part}}}" for part in parts)
        if len(rest) > 1 and self.chance(40):
            return f"{first} SEQ {{ {' SEQ '.join(rest)} }}"
        return " SEQ ".join([first, *rest])

    def query(self) -> str:
        """Return a whole query, with all that may be above a pattern."""
        where = f"{SOURCES}{self.where(2)}"
        return self.pick(
            f"SELECT * {where}",
            f"SELECT ?x ?z (getDURATION() AS ?d) {where}",
            f"SELECT DISTINCT ?x {where}",
            f"SELECT DISTINCT ?x (getENDTIME() AS ?e) {where} ORDER BY ?x LIMIT 1",
            f"SELECT ?x (COUNT(*) AS ?n) (MAX(getDURATION()) AS ?m) {where} GROUP BY ?x",
            f"SELECT (COUNT(*) AS ?n) {where}",
            f"SELECT ?x (getSTARTTIME() AS ?s) {where} ORDER BY DESC(getSTARTTIME()) ?x LIMIT 2",
            f"SELECT ?x (RAND() < 0.5 AS ?r) {where} VALUES ?x {{ :a :b :b }}",
            f"ASK {where}",
            "CONSTRUCT { ?x :by ?z . ?x :at _:n } FROM NAMED STREAM :g "
            f"{{ GRAPH :g {{ {self.leaf()}}} }}",
        )


class Events(NamedTuple):
    """Occurrences by stream, and static triples."""

    streams: Mapping[str, Sequence[tuple[str, int, int]]]
    static: Sequence[str] = ()

    @property
    def inputs(self) -> Inputs:
        """The input of the definitions."""
        streams = {
            IRI(name): [StreamItem(triple(text), start, end) for text, start, end in items]
            for name, items in self.streams.items()
        }
        return Inputs(streams, graph=graph(*self.static).graph, graphs={})


def random_events(random: Random, most: int = 9, last: int | None = None) -> Events:
    """Return few events at few or very few instants; a third of the cases has points only."""
    last = random.choice([2, 5, 9]) if last is None else last
    lengths = random.choice([[0], [0, 0, 0, 1, 2, 3], [0, 0, 1, 2, 3]])

    def text() -> str:
        subject, link, value = (random.choice(letters) for letters in ("ab", "pq", "ab"))
        return f"http://e/{subject} http://e/{link} http://e/{value}"

    def item() -> tuple[str, int, int]:
        start = random.randint(0, last)
        return text(), start, start + random.choice(lengths)

    streams = {name: [item() for _ in range(random.randint(0, most))] for name in STREAMS}
    return Events(streams, [text() for _ in range(random.choice([0, 0, 1, 2]))])


# -- the definition and the engine ----------------------------------------------------------------


def pattern_of(where: str) -> Plan:
    """Return the plan of a WHERE, below its Detect."""
    query = plan(f"{PREFIX}SELECT * {SOURCES}{where}", "epsparql")
    return next(node for node in query.walk() if isinstance(node, Detect)).input


def defined(pattern: Plan, data: Inputs) -> Counter[Detection]:
    """Return the event solutions by definition; static ones occur at the first instant."""
    return Counter(
        (_visible(item), data.start if start is None else start, data.start if end is None else end)
        for item, start, end in pattern.events(LATER, data)
    )


def _visible(item: Solution) -> frozenset[tuple[str, object]]:
    return frozenset((v.name, term) for v, term in item.items() if not v.hidden)


class Feed:
    """A pipeline of a pattern over events, which is fed in random steps."""

    def __init__(self, pattern: Plan, data: Inputs, optimize: bool) -> None:
        self.terms = TermDictionary()
        self.data = data
        detect = rewrite(Detect(pattern)).plan if optimize else Detect(pattern)
        static = self._triples(list(data.graph))
        count = len(data.graph)
        default = Batch(static, np.zeros(count, np.int64), np.full(count, INFINITY))
        catalog = Catalog(default, {IRI(STREAMS[1]): Batch.empty(TRIPLE)})
        self.pipeline = Pipeline(lower(detect, self.terms, Run(), catalog).operator, self.terms)
        self._from_start = [
            operator
            for operator in self.pipeline.operators
            if isinstance(operator, PhysicalDetect | EventLeftJoin)
        ]
        self._left = {name.value: self._batch(items) for name, items in data.streams.items()}
        self._marks = dict.fromkeys(self._left, -1)
        self._promised = -1

    def _triples(self, triples: Sequence[Triple]) -> dict[str, np.ndarray]:
        ids = [[self.terms.id_of(term, keep=True) for term in each] for each in triples]
        table = np.array(ids, np.int64).reshape(len(ids), len(TRIPLE))
        return {name: table[:, k].copy() for k, name in enumerate(TRIPLE)}

    def _batch(self, items: Sequence[StreamItem]) -> Batch:
        starts, ends = (np.array([item[k] for item in items], np.int64) for k in (1, 2))
        columns = self._triples([item.triple for item in items])
        return Batch({**columns, SINCE: since_of(starts)}, ends, ends + 1)

    def run(self, random: Random) -> list[Detection]:
        """Feed all items; return the event solutions in the order of emission."""
        ways = (self._ended, self._common, self._own, self._own)
        advance = random.choice(ways)
        detections: list[Detection] = []
        while any(mark < INFINITY for mark in self._marks.values()):
            self._marks = advance(random)
            offered = {name: self._next_items(name, random) for name in self._marks}
            detections += self._step(offered, random.random() < 0.2)
        if self._promised < INFINITY:  # an operator waited for the first instant
            detections += self._step({}, False)
        assert self._promised == INFINITY, "the output must end with the input"
        assert not sum(self.pipeline.state().values()), "state remains after the end"
        return detections

    def _ended(self, random: Random) -> dict[str, int]:
        return dict.fromkeys(self._marks, INFINITY)

    def _common(self, random: Random) -> dict[str, int]:
        """Advance all watermarks to one instant."""
        left = [int(items.start[0]) for items in self._left.values() if len(items)]
        if not left:
            return self._ended(random)
        return dict.fromkeys(
            self._marks, max(*self._marks.values(), min(left) + random.choice([0, 0, 1, 3]))
        )

    def _own(self, random: Random) -> dict[str, int]:
        """Advance each watermark by itself."""
        marks = {}
        for name, mark in self._marks.items():
            left = self._left[name].start
            if len(left):
                marks[name] = max(mark, int(left[0]) + random.choice([-1, 0, 0, 1, 4]))
            else:
                marks[name] = INFINITY if random.random() < 0.5 else mark
        return marks

    def _next_items(self, name: str, random: Random) -> Batch:
        """Return the items below the watermark, and some of those at it."""
        left, mark = self._left[name], self._marks[name]
        below, at = (int(left.start.searchsorted(mark, side)) for side in ("left", "right"))
        count = at if mark == INFINITY else random.randint(below, at)
        self._left[name] = left.part(count, len(left))
        return left.part(0, count)

    def _step(self, offered: Mapping[str, Batch], cut: bool) -> Iterator[Detection]:
        first, least = self.data.start, min(self._marks.values())
        if any(map(len, offered.values())) or least >= first:
            for operator in self._from_start:
                operator.begin = first
        rows, watermark = self.pipeline.step(offered, self._marks, cut)
        assert watermark >= self._promised, "the watermark decreased"
        assert (np.diff(rows.start) >= 0).all(), "the output is not sorted"
        assert not len(rows) or rows.start[0] >= self._promised, "a row before the watermark"
        latest = max(first, *self._marks.values())
        assert not len(rows) or rows.start[-1] <= latest, "a row before its end"
        self._promised = watermark
        return self._detections(rows)

    def _detections(self, rows: Batch) -> Iterator[Detection]:
        names = [name for name in rows.columns if in_solution(name) and not name.startswith(".")]
        starts = starts_of(rows.columns[SINCE]).tolist()
        columns = [rows.columns[name].tolist() for name in names]
        ids: Iterable[tuple[int, ...]] = zip(*columns, strict=True) if columns else [()] * len(rows)
        for row, start, end in zip(ids, starts, rows.start.tolist(), strict=True):
            terms = ((name, self.terms.term_of(k)) for name, k in zip(names, row, strict=True) if k)
            yield frozenset(terms), start, end


def difference(
    pattern: Plan, events: Events, random: Random, optimize: bool, times: int = 1
) -> str:
    """Describe where the engine and the definition differ; return "" if they agree.

    The events are fed that many times.
    """
    data = events.inputs
    expected = defined(pattern, data)
    for _ in range(times):
        detections = Counter(Feed(pattern, data, optimize).run(random))
        if detections != expected:
            return f"extra {detections - expected}, missing {expected - detections}\n{events}"
    return ""
