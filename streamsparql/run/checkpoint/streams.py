"""Streams in a checkpoint: items that wait for the watermark or are kept, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamsparql.physical.batch import Batch
from streamsparql.run.checkpoint.tables import TableFolder
from streamsparql.run.open_input import PushedStream
from streamsparql.run.record_check import RecordCheck
from streamsparql.run.session_streams import SessionStream
from streamsparql.sources import Mapped, Wanted


def save_stream(stream: PushedStream, tables: TableFolder) -> dict[str, Any]:
    """Return the state of a stream whose buffered items were read; add its tables."""
    sorter, rows = stream.sorter.save()
    tables.put_all("sorter", rows)
    return {
        "name": stream.name,
        "sorter": sorter,
        "stamps": stream.reading.stamps.save(),
        "cells": stream.reading.cells.save(),
        "arrived": stream.arrived,
        "mappings": [
            _saved_check(mapping, check)
            for mapping, check in stream.checks.items()
            if check.first is not None
        ],
    }


def restore_stream(stream: PushedStream, saved: Mapping[str, Any], tables: TableFolder) -> None:
    """Restore the state of a new stream."""
    stream.sorter.load(saved["sorter"], tables.all("sorter"))
    stream.reading.stamps.load(saved["stamps"])
    stream.reading.cells.load(saved["cells"])
    stream.arrived = saved["arrived"]
    for mapping in saved["mappings"]:
        key, check = _restored_check(stream, mapping)
        stream.checks[key] = check


def save_session_stream(stream: SessionStream, tables: TableFolder) -> dict[str, Any]:
    """Return the state of a stream of a session; add its tables."""
    return {
        **save_stream(stream, tables),
        "scope": stream.scope,
        "tables_read": stream.tables_read,
        "mark": stream.mark,
        "kept": save_batches(stream.kept(), tables.inside("kept")),
        "complete": [[*_saved_need(need), since] for need, since in stream.needs.complete],
        "skipped": stream.needs.skipped,
    }


def restore_session_stream(
    stream: SessionStream, saved: Mapping[str, Any], tables: TableFolder
) -> None:
    """Restore the state of a new stream of a session; the needs of queries follow."""
    restore_stream(stream, saved, tables)
    stream.scope, stream.mark = saved["scope"], saved["mark"]
    stream.tables_read = saved["tables_read"]
    stream.keep(restored_batches(saved["kept"], tables.inside("kept")))


def restore_needs(stream: SessionStream, saved: Mapping[str, Any]) -> None:
    """Restore what is known of skipped items, once the plans have added their needs."""
    complete = [(_restored_need(*need), since) for *need, since in saved["complete"]]
    stream.needs.restore(complete, saved["skipped"])


def save_batches(batches: Iterable[Batch], tables: TableFolder) -> int:
    """Add the items of a stream, as they were released; return the number of batches."""
    filled = [batch for batch in batches if len(batch)]
    for k, batch in enumerate(filled):
        tables.put_rows(str(k), batch)
    return len(filled)


def restored_batches(count: int, tables: TableFolder) -> list[Batch]:
    """Return the items that `save_batches` added."""
    return [tables.rows(str(k)) for k in range(count)]


def _saved_need(need: Wanted) -> list[Any]:
    predicates = None if need.predicates is None else sorted(need.predicates)
    return [predicates, "".join(sorted(need.places))]


def _restored_need(predicates: list[int] | None, places: str) -> Wanted:
    return Wanted(None if predicates is None else frozenset(predicates), frozenset(places))


# -- Mappings, whose columns, or text, are those of the first record -------------------------------


def saved_mapping(mapping: Any) -> list[Any]:
    """Return the text of a mapping, or the path of its file, as JSON."""
    return [os.fspath(mapping), not isinstance(mapping, str)]


def restored_mapping(text: str, is_path: bool) -> str | Path:
    """Return the mapping that `saved_mapping` saved."""
    return Path(text) if is_path else text


def _saved_check(mapping: Any, check: RecordCheck) -> dict[str, Any]:
    assert check.first is not None
    return {
        "mapping": saved_mapping(mapping),
        "text": check.mapped.mapping,
        "guessed": check.guessed,
        "now": check.mapped.now,
        "first": _plain(check.first),
    }


def _restored_check(stream: PushedStream, saved: Mapping[str, Any]) -> tuple[Any, RecordCheck]:
    check = RecordCheck(stream.name, Mapped([], saved["text"], now=saved["now"]), stream.reading)
    check.restore(saved["first"], saved["guessed"])
    return restored_mapping(*saved["mapping"]), check


def _plain(value: Any) -> Any:
    """Return a record with the same keys, whose values JSON can represent."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or type(value) in (str, int, float, bool) else str(value)
