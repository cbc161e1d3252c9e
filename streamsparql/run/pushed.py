"""Items that are pushed one by one: what cannot be understood is an error at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsparql.errors import EngineError, SourceError
from streamsparql.sources.reading import Reading
from streamsparql.sources.term_texts import check_triple

if TYPE_CHECKING:
    from streamsparql.run.time_arguments import Instant


def pushed_item(
    stream: str, reading: Reading, triple: Any, t: Instant | None, times: tuple[Instant, ...]
) -> tuple[Any, ...]:
    """Return an item as sources yield it; raise an error if it cannot be understood.

    >>> pushed_item("s", Reading(), ("<a>", "<p>", 5), 3, ())
    (('<a>', '<p>', 5), 3)
    """
    stamps = reading.stamps
    if reading.predicate is not None:
        raise EngineError(
            "stamp_from reads the time of whole messages; use push_many, or push_record"
        )
    try:
        check_triple(triple)
        if t is None:
            t = stamps.now()
        stamps.check(t)
        for end in times:
            stamps.check(end)
    except ValueError as error:
        raise SourceError(f"<{stream}>: {error}") from None
    return (triple, t, *times)
