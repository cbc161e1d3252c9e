"""The check of a record that is pushed: what its mapping cannot read is an error at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from streamsparql.errors import EngineError, SourceError
from streamsparql.sources.auto_mapping import guessed_mapping
from streamsparql.sources.mapping import (
    CompiledMapping,
    Mapped,
    compile_mapping,
    mapped,
    variable_of_column,
)
from streamsparql.sources.reading import Reading
from streamsparql.sources.records import (
    RecordColumns,
    RecordPath,
    parsed_record,
    path_name,
    unusable_value,
    value_at,
)

_READABLE = frozenset({str, int, float, bool, type(None)})

AUTO_MAPPING = "auto"
"""The mapping that is guessed from the first record."""


def mappings_of(mapping: Any, streams: Sequence[str]) -> dict[str, Any]:
    """Return the mappings of streams, of which a query with one stream need not name it.

    >>> mappings_of("CONSTRUCT { [] <v> ?v } {}", ["s"])
    {'s': 'CONSTRUCT { [] <v> ?v } {}'}
    """
    if mapping is None:
        return {}
    reads = ", ".join(f"<{name}>" for name in streams) or "no stream"
    if not isinstance(mapping, Mapping):
        if len(streams) != 1:
            raise EngineError(f"pass mappings as a dict by stream: the query reads {reads}")
        mapping = {streams[0]: mapping}
    for name, text in mapping.items():
        if name not in streams:
            raise EngineError(f"mapping of the unknown stream <{name}>; the query reads {reads}")
        record_mapping(text)
    return {str(name): text for name, text in mapping.items()}


def record_mapping(mapping: Any) -> Mapped:
    """Return a mapping over no records; raise an error for any other value."""
    if mapping == AUTO_MAPPING:
        return Mapped([], None)
    if not isinstance(mapping, str | os.PathLike):
        raise EngineError(
            f"a mapping must be the text of a CONSTRUCT, its file, or 'auto', not {mapping!r}"
        )
    return mapped([], mapping)


class RecordCheck:
    """The check of the records of one stream against their mapping.

    The first record determines which keys are columns. The mapping of a stream that has none is
    guessed from it; then a later record with another key is an error, since its value would be lost
    in silence.
    """

    def __init__(self, stream: str, mapped: Mapped, reading: Reading) -> None:
        self.mapped = mapped
        """The mapping, over no records."""
        self.first: Mapping[str, Any] | None = None
        """The first record."""
        self._stream, self._reading = stream, reading
        self._columns = RecordColumns()
        self._mapping: CompiledMapping | None = None
        self._keys: frozenset[str] | None = None
        self._stamps: list[RecordPath] = []
        self._top: list[Any] = []
        """The keys of the other columns."""
        self._nested: list[RecordPath] = []
        """The paths of the other columns that are inside of values."""

    @property
    def guessed(self) -> bool:
        """Whether the mapping was guessed from the first record."""
        return self._keys is not None

    def restore(self, first: Mapping[str, Any], guessed: bool) -> None:
        """Continue after a first record, which another process has checked."""
        self._start(first)
        self._keys = frozenset(first) if guessed else None

    def parsed(self, record: Any) -> Mapping[str, Any]:
        """Return a record; raise a SourceError if its mapping cannot read it."""
        parsed = parsed_record(record)
        if isinstance(parsed, str):
            raise SourceError(f"<{self._stream}>: {parsed}: {record!r:.80}")
        mapping = self._mapping or self._start(parsed)
        if self._keys is not None and not self._keys.issuperset(parsed):
            raise SourceError(
                f"<{self._stream}>: unknown key {min(parsed.keys() - self._keys)!r}; the mapping"
                " was guessed from the first record; pass a mapping"
            )
        if len(self._columns.paths) < len(mapping.used):
            self._learn(parsed, mapping)
        for variable in mapping.stamps:
            if variable in mapping.used and variable not in self._columns.paths:
                raise SourceError(
                    f"<{self._stream}>: missing timestamp: the record has no {variable}"
                )
        for path in self._stamps:
            self._check_stamp(value_at(parsed, path), path_name(path))
        for key in self._top:
            value = parsed.get(key)
            if type(value) not in _READABLE:
                self._check_value(value, key)
        for path in self._nested:
            self._check_value(value_at(parsed, path), path_name(path))
        return parsed

    def _learn(self, record: Mapping[str, Any], mapping: CompiledMapping) -> None:
        """Find the paths of the columns that the mapping reads."""
        self._columns.learn([record], mapping.used)
        known = self._columns.paths
        paths = {v: known[v] for v in mapping.used if v in known}
        self._stamps = [path for v, path in paths.items() if v in mapping.stamps]
        others = [path for v, path in paths.items() if v not in mapping.stamps]
        self._top = [path[0] for path in others if len(path) == 1]
        self._nested = [path for path in others if len(path) > 1]

    def _check_value(self, value: Any, name: str) -> None:
        if why := unusable_value(value):
            raise SourceError(f"<{self._stream}>: the value of {name} {why}")

    def _check_stamp(self, value: Any, name: str) -> None:
        try:
            self._reading.stamps.check(value)
        except ValueError as error:
            raise SourceError(f"<{self._stream}>: {name}: {error}") from None

    def _start(self, first: Mapping[str, Any]) -> CompiledMapping:
        """Compile the mapping for the keys of the first record."""
        name = f"<{self._stream}>"
        if self.mapped.mapping is None:
            text = guessed_mapping(self.mapped, [first])
            self.mapped = Mapped([], text, now=self.mapped.now)
            self._keys = frozenset(first)
        assert self.mapped.mapping is not None
        self._columns.start(first, name)
        stamp = self._reading.column
        self._mapping = compile_mapping(
            self.mapped.mapping,
            list(self._columns.paths),
            name,
            True,
            True,
            None if stamp is None else variable_of_column(stamp),
        )
        self._learn(first, self._mapping)
        self.first = first
        return self._mapping
