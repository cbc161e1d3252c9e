"""The options of a run, typed once for `run`, `analyze`, `trace`, `on_spark` and `open`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar

from streamsparql.algebra.inputs import MAX_JUMP
from streamsparql.limits import Limits

if TYPE_CHECKING:
    from streamsparql.physical.operators.report import RelationToStream
    from streamsparql.run.time_arguments import Duration, Instant

if TYPE_CHECKING:
    from datetime import tzinfo

_Parameters = ParamSpec("_Parameters")
_Output = TypeVar("_Output")


class InputOptions(TypedDict, total=False):
    """The options for reading the input, and the horizon: the part of time that has results.

    An instant is a number of milliseconds since 1970, a text in ISO 8601 or a datetime; a duration
    is a number of milliseconds, a text such as "5s" or "PT5S", or a timedelta. Items may arrive out
    of order by up to `max_delay`; later ones are late; "auto" sorts the whole input. An item that
    jumps ahead of its stream by more than `max_jump` is quarantined until a second one confirms it;
    None disables that. With `strict`, a late or rejected item is an error, and so is a cell for
    which its mapping has no value.

    Timestamps that are numbers count `time_unit`: s, ms, us or ns since 1970, by default what the
    size of a stream's first timestamp shows. Times without an offset are those of `time_zone`, by
    default UTC. `stamp_from` is the column, path or predicate that has the timestamps. Each of the
    three can be a dict by stream.

    Graphs that the query names, and that are not passed, are read only if `files` allows it: a
    folder that has them, or a function from an IRI to a source, or to None (docs/security.md).

    A run that exceeds one of its `limits` raises `LimitExceeded`; by default they are those that
    were passed to `compile`.
    """

    start: Instant | None
    end: Instant | None
    strict: bool
    max_delay: Duration
    max_jump: Duration | None
    time_unit: str | Mapping[str, str] | None
    time_zone: str | tzinfo | Mapping[str, str | tzinfo] | None
    stamp_from: str | Mapping[str, str] | None
    files: str | os.PathLike[str] | Callable[[str], Any] | None
    limits: Limits | None


class ReportOptions(TypedDict, total=False):
    """Reports in place of rows: `report` is rstream, istream or dstream, `every` the period."""

    report: RelationToStream | None
    every: Duration | None


class EmissionOptions(TypedDict, total=False):
    """When an open query emits.

    `emit` is final, for rows that have ended, or eager, for all rows, cut at each call of `rows`. A
    stream that is silent for the duration `idle` of the others' time is left out of the watermark.
    """

    idle: Duration | None
    emit: Literal["final", "eager"]


class OutputOptions(ReportOptions, EmissionOptions, total=False):
    """The options for the output of an open query.

    `on_row` is called with each row, or report, once it is final; a coroutine function is awaited.
    """

    on_row: Callable[[Any], object] | None


class PushOptions(TypedDict, total=False):
    """The mapping of the records that are pushed, or a dict of mappings by stream."""

    mapping: Any


class RowOptions(InputOptions, EmissionOptions, PushOptions, total=False):
    """The options of an open query, without reports and `on_row`."""


class LiveOptions(InputOptions, OutputOptions, PushOptions, total=False):
    """The options of an open query: how its input is read and its rows are emitted."""


class SessionOptions(InputOptions, total=False):
    """The options of a session.

    `history` is the duration for which items are kept, so that queries that are registered later
    start with them; a stream that is silent for the duration `idle` of the others' time is left out
    of the watermark. `limits` bound each step, and the text of each query.
    """

    history: Duration
    idle: Duration | None


DEFAULTS: dict[str, Any] = {
    "start": None,
    "end": None,
    "strict": False,
    "max_delay": 0,
    "max_jump": MAX_JUMP,
    "time_unit": None,
    "time_zone": None,
    "stamp_from": None,
    "files": None,
    "limits": None,
    "report": None,
    "every": None,
    "idle": None,
    "emit": "final",
    "on_row": None,
    "mapping": None,
    "engine": "embedded",
    "spark": None,
    "slabs": None,
    "step": None,
    "limit": 1_000,
    "history": 0,
}
"""The default of each option."""


def with_options(
    options: type,
) -> Callable[[Callable[_Parameters, _Output]], Callable[_Parameters, _Output]]:
    """Check the keyword arguments of the decorated method against a TypedDict, and fill them in.

    `help` and notebooks show each option with its default, as if the method declared it.

    >>> class Size(TypedDict, total=False):
    ...     limit: int
    >>> @with_options(Size)
    ... def head(rows: list[int], **options: Any) -> list[int]:
    ...     return rows[: options["limit"]]
    >>> inspect.signature(head)
    <Signature (rows: 'list[int]', *, limit: 'int' = 1000) -> 'list[int]'>
    >>> head([1, 2, 3], limti=2)
    Traceback (most recent call last):
    TypeError: head() has no option 'limti'; did you mean 'limit'?
    """
    names = tuple(options.__annotations__)
    defaults = {name: DEFAULTS[name] for name in names}

    def decorate(method: Callable[_Parameters, _Output]) -> Callable[_Parameters, _Output]:
        signature = inspect.signature(method)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults[name],
                annotation=_written(options.__annotations__[name]),
            )
            for name in names
        ]
        known = {p.name for p in own} | set(names)

        @wraps(method)
        def checked(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Output:
            for name in named:
                if name not in known:
                    raise TypeError(
                        f"{method.__name__}() has no option {name!r}{_hint(name, known)}"
                    )
            filled: Any = {**defaults, **named}
            return method(*args, **filled)

        checked.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        return checked

    return decorate


def pop_options(options: Any, kind: type) -> dict[str, Any]:
    """Remove the options of a kind from the others; return them.

    >>> options = {"start": 0, "report": "rstream", "every": 5}
    >>> pop_options(options, ReportOptions), options
    ({'report': 'rstream', 'every': 5}, {'start': 0})
    """
    return {name: options.pop(name) for name in kind.__annotations__}


def _written(annotation: Any) -> str:
    """Return an annotation as it was written."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def _hint(name: str, known: set[str]) -> str:
    close = get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; it has {', '.join(sorted(known - {'self'}))}"
