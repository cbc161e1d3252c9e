"""What depends on how often equal rows hold: DISTINCT, the canonical form, and numbering.

`Distinct` is the union of the validities of equal rows (SEMANTICS.md section 5). A new element
`[ts, te)` of a row that is covered until `c` adds `[max(ts, c), te)`, if that is not empty, and
this is known at once. So a row that comes again and again, as in a sliding window, is given in
adjoining pieces. `Coalesce` puts such pieces together; `Number` tells equal rows apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsparql.algebra import shape
from streamsparql.physical.batch import Batch, IntArray
from streamsparql.physical.canonical import LEVEL, ByStamps, Canonical
from streamsparql.physical.elements import COMING, READY, Queue, Unions, in_time
from streamsparql.physical.group import Aggregation, Call
from streamsparql.physical.operator import Operator, Part, Step
from streamsparql.physical.terms import TermDictionary

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

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """What is newly covered, as far as no earlier start can come."""
        (watermark,) = watermarks
        batch = in_time(self._coming, batches[0].project(self.names), watermark)
        return self._unions.take(batch, watermark), watermark

    def size(self) -> int:
        """Rows that hold, and those that are still to start."""
        return len(self._coming) + len(self._unions)

    def content(self) -> Iterator[Part]:
        """Rows still to start, rows that are covered."""
        yield COMING, self._coming.rows()
        yield from self._unions.content()

    def held(self) -> Iterator[IntArray]:
        """The ids of those rows."""
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

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """What ended before the watermark; with a cut, all that holds before it."""
        rows = self._rows.take(batches[0], watermarks[0], cut and self.eager)
        return rows.project(self.names), min(watermarks[0], self._rows.first_start())

    def size(self) -> int:
        """Rows that are held."""
        return len(self._rows)

    def content(self) -> Iterator[Part]:
        """The rows, as they are known by now."""
        yield OPEN, self._rows.rows()

    def held(self) -> Iterator[IntArray]:
        """Their ids."""
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
        stamps = [name for name in input.names if name.startswith(".t")]
        self._rows: Canonical | ByStamps
        if stamps:
            self._rows = ByStamps(input.names, stamps, terms)
        else:
            self._rows = Canonical(input.names, input.names)
        self._ready = Queue(self.names)

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> Step:
        """The levels that are known, as far as none that starts earlier is still open."""
        rows = self._rows.take(batches[0], watermarks[0], cut)
        if len(rows):
            number = self._terms.of_integers(rows.columns[LEVEL])
            self._ready.push(rows.with_columns({self.variable: number}).project(self.names))
        bound = min(watermarks[0], self._rows.first_start())
        return self._ready.release(bound), bound

    def size(self) -> int:
        """Rows that are held."""
        return len(self._rows) + len(self._ready)

    def content(self) -> Iterator[Part]:
        """The rows, as they are known by now, and those numbered."""
        yield OPEN, self._rows.rows()
        yield READY, self._ready.rows()

    def held(self) -> Iterator[IntArray]:
        """Their ids."""
        yield from self._rows.held()
        yield from self._ready.held()
