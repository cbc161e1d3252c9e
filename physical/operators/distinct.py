"""What depends on how often equal rows hold: DISTINCT, the canonical form, and numbering.

`Distinct` is the union of the validities of equal rows (SEMANTICS.md section 5). A new element
`[ts, te)` of a row that is covered until `c` adds `[max(ts, c), te)`, if that is not empty, and
this is known at once. So a row that comes again and again, as in a sliding window, is given in
adjoining pieces. `Coalesce` puts such pieces together; `Number` tells equal rows apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra import shape
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import is_stamp
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.operators.group import Aggregation, Call
from streamsparql.physical.state.canonical import LEVEL, ByStamps, Canonical
from streamsparql.physical.state.queues import COMING, READY, Queue, Unions, in_time

OPEN = "could go on"
"""What the rows are called that a later row could still extend."""


class Distinct(Operator):
    """The union of validities of each distinct row of these columns."""

    implements = (shape.Distinct,)
    state = "per distinct row that holds, until when it is covered"

    def __init__(self, input: Operator, columns: Sequence[str]) -> None:  # noqa: A002 -- the role
        super().__init__(columns, input)
        self._coming = Queue(self.names)
        self._unions = Unions(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        (watermark,) = watermarks
        batch = in_time(self._coming, batches[0].project(self.names), watermark)
        return self._unions.take(batch, watermark), watermark

    @override
    def size(self) -> int:
        return len(self._coming) + len(self._unions)

    @override
    def content(self) -> Iterator[Part]:
        yield COMING, self._coming.rows()
        yield from self._unions.content()

    @override
    def held(self) -> Iterator[IntArray]:
        yield from self._coming.held()
        yield from self._unions.held()


class LatestStamps(Aggregation):
    """Each row once, with the greatest of the stamps that live rows like it carry.

    A row that comes again cuts the validity, and goes on with its new stamp. So unlike `Distinct`
    this gives a row when it is over.
    """

    implements = (shape.Distinct,)
    state = "the rows that hold; per distinct one its stamps and since when they stand"

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        columns: Sequence[str],
        stamps: Sequence[str],
        terms: TermDictionary,
    ) -> None:
        calls = [Call(stamp, "LATEST", stamp) for stamp in stamps]
        super().__init__(input, columns, calls, terms)

    @override
    def _always(self) -> bool:
        return False


class Coalesce(Operator):
    """The canonical form by level sets (algebra/streams.py), the same for all that have one `phi`.

    It is made to be the sink: a row is given when it can change no more, so that one may start
    before others that were given in earlier steps. Within a step rows are ordered by start. What is
    `eager` gives pieces at a cut; else rows are whole, however often operators below are cut.
    """

    state = "the rows that a later row could still extend"

    def __init__(self, input: Operator, eager: bool = False) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self.eager = eager
        self._rows = Canonical(self.names, self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        rows = self._rows.take(batches[0], watermarks[0], cut and self.eager)
        return rows.project(self.names), min(watermarks[0], self._rows.first_start())

    @override
    def size(self) -> int:
        return len(self._rows)

    @override
    def content(self) -> Iterator[Part]:
        yield OPEN, self._rows.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        return self._rows.held()


class Number(Operator):
    """Adds a column that numbers equal rows: k for the k-th level of a row.

    Stamps do not count in what is equal; where there are some, they are what orders the rows.
    """

    implements = (shape.Number,)
    state = "the rows that a later row could still extend"

    def __init__(self, input: Operator, variable: str, terms: TermDictionary) -> None:  # noqa: A002
        super().__init__((*input.names, variable), input)
        self.variable = variable
        self._terms = terms
        stamps = [name for name in input.names if is_stamp(name)]
        self._rows: Canonical | ByStamps
        if stamps:
            self._rows = ByStamps(input.names, stamps, terms)
        else:
            self._rows = Canonical(input.names, input.names)
        self._ready = Queue(self.names)

    @override
    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        rows = self._rows.take(batches[0], watermarks[0], cut)
        if len(rows):
            number = self._terms.of_integers(rows.columns[LEVEL])
            self._ready.push(rows.with_columns({self.variable: number}).project(self.names))
        bound = min(watermarks[0], self._rows.first_start())
        return self._ready.release(bound), bound

    @override
    def size(self) -> int:
        return len(self._rows) + len(self._ready)

    @override
    def content(self) -> Iterator[Part]:
        yield OPEN, self._rows.rows()
        yield READY, self._ready.rows()

    @override
    def held(self) -> Iterator[IntArray]:
        yield from self._rows.held()
        yield from self._ready.held()
