"""One open query in a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import Catalog
from streamsparql.run.checkpoint.file import Checkpoint
from streamsparql.run.checkpoint.inputs import (
    restore_open,
    restored_graphs,
    restored_input,
    restored_query,
    save_graphs,
    save_input,
    save_open,
    save_query,
    save_terms,
    saved_terms,
)
from streamsparql.run.checkpoint.streams import (
    restore_stream,
    restored_mapping,
    save_stream,
    saved_mapping,
)
from streamsparql.run.checkpoint.tables import TableFolder
from streamsparql.run.live import Live

ONE_QUERY = "query"
"""The kind of a checkpoint of one open query."""


def save_live(live: Live[Any]) -> Checkpoint:
    """Return the state of an open query whose pushed items were processed."""
    tables: dict[str, Any] = {}
    folder, execution = TableFolder(tables), live._execution
    counters, state = execution.save()
    folder.put_all("execution", state)
    folder.put_rows("retained", live._retained())
    report = live.report
    content = {
        "kind": ONE_QUERY,
        "query": save_query(execution.query),
        "input": save_input(execution.input),
        "idle": live._clock.idle,
        "emit": "eager" if execution.eager else "final",
        "report": None if report is None else [report.kind, live.every],
        "mapping": {name: saved_mapping(text) for name, text in live._mappings.items()},
        "graphs": save_graphs(
            execution.catalog.default, execution.catalog.named, folder.inside("graphs")
        ),
        "graph_cells": execution.graph_cells.save(),
        "graph_rejects": live._graph_rejects,
        "execution": counters,
        "streams": [
            save_stream(stream, folder.inside(f"streams/{k}"))
            for k, stream in enumerate(live._streams.values())
        ],
        "watermark": live._watermark,
        "prompted": live._prompted,
        "instants": live._unread_instants(),
        "calling": live._calling,
        **save_open(live),
    }
    save_terms(execution.terms, execution.used_ids(), folder)
    return Checkpoint(content, tables)


def restored_live(
    checkpoint: Checkpoint,
    on_row: Callable[[Any], object] | None,
    files: str | os.PathLike[str] | Callable[[str], Any] | None,
) -> Live[Any]:
    """Return an open query in a saved state."""
    content, folder = checkpoint.content, TableFolder(checkpoint.tables)
    terms = TermDictionary()
    terms.load(saved_terms(folder))
    default, named = restored_graphs(content["graphs"], folder.inside("graphs"))
    catalog = Catalog(default, {IRI(name): graph for name, graph in named.items()})
    mapping = {name: restored_mapping(*saved) for name, saved in content["mapping"].items()}
    kind, every = content["report"] or (None, None)
    live = Live[Any](
        restored_query(content["query"]),
        restored_input(content["input"], files),
        idle=content["idle"],
        emit=content["emit"],
        report=kind,
        every=every,
        on_row=on_row,
        mapping=mapping or None,
        restored=(terms, catalog),
    )
    with live._guard:
        _restore(live, content, folder)
    return live


def _restore(live: Live[Any], content: dict[str, Any], tables: TableFolder) -> None:
    execution = live._execution
    execution.load(content["execution"], tables.all("execution"))
    execution.graph_cells.load(content["graph_cells"])
    live._graph_rejects = content["graph_rejects"]
    retained = tables.rows("retained", *execution.sink.names)
    execution.retained = [retained] if len(retained) else list[Batch]()
    for k, (stream, saved) in enumerate(
        zip(live._streams.values(), content["streams"], strict=True)
    ):
        restore_stream(stream, saved, tables.inside(f"streams/{k}"))
    live._watermark, live._prompted = content["watermark"], content["prompted"]
    live._instants = content["instants"]
    restore_open(live, content)
