"""The input in a checkpoint: options, static graphs, streams, rejects, and the terms in use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.compiled import CompiledQuery, Recipe
from streamsparql.errors import EngineError
from streamsparql.limits import Limits
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.checkpoint.tables import TableFolder
from streamsparql.run.input import RunInput
from streamsparql.run.open_input import OpenInput
from streamsparql.sources.chunk import restored_reject, saved_reject

_OPTIONS = ("start", "end", "strict", "max_delay", "max_jump", "time_unit", "stamp_from", "started")


# -- Options ---------------------------------------------------------------------------------------


def save_input(run_input: RunInput) -> dict[str, Any]:
    """Return the options of an input as JSON; functions in `files` are passed again."""
    files = run_input.files
    return {
        **{name: _plain_option(getattr(run_input, name)) for name in _OPTIONS},
        "time_zone": _saved_zone(run_input.time_zone),
        "files": None if files is None or callable(files) else os.fspath(files),
        "limits": _saved_limits(run_input.limits),
        "graphs": [*run_input.graphs],
    }


def restored_input(
    saved: Mapping[str, Any], files: str | os.PathLike[str] | Callable[[str], Any] | None
) -> RunInput:
    """Return the input that `save_input` saved, without sources."""
    return RunInput(
        {},
        None,
        dict.fromkeys(saved["graphs"]),
        **{name: saved[name] for name in _OPTIONS},
        time_zone=_restored_zone(saved["time_zone"]),
        files=saved["files"] if files is None else files,
        limits=restored_limits(saved["limits"]),
    )


def _plain_option(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _saved_zone(zone: Any) -> Any:
    if isinstance(zone, Mapping):
        return {"by stream": {name: _saved_zone(each) for name, each in zone.items()}}
    if zone is None or isinstance(zone, str):
        return zone
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if isinstance(zone, timezone):
        return {"seconds": zone.utcoffset(None).total_seconds()}
    raise EngineError(f"cannot save time_zone={zone!r}; pass a name such as Europe/Copenhagen")


def _restored_zone(saved: Any) -> str | tzinfo | Mapping[str, Any] | None:
    if isinstance(saved, Mapping):
        if "seconds" in saved:
            return timezone(timedelta(seconds=saved["seconds"]))
        return {name: _restored_zone(each) for name, each in saved["by stream"].items()}
    zone: str | None = saved
    return zone


def _saved_limits(limits: Limits | None) -> dict[str, Any] | None:
    return None if limits is None else asdict(limits)


def restored_limits(saved: Mapping[str, Any] | None) -> Limits | None:
    """Return limits that were saved."""
    return None if saved is None else Limits(**saved)


def save_query(query: CompiledQuery) -> dict[str, Any]:
    """Return the arguments from which a query is compiled."""
    recipe = query.recipe
    return {**recipe._asdict(), "limits": _saved_limits(recipe.limits)}


def restored_query(saved: Mapping[str, Any]) -> CompiledQuery:
    """Compile a saved query again."""
    limits, rules = restored_limits(saved["limits"]), tuple(saved["rules"])
    query = CompiledQuery(Recipe(**{**saved, "limits": limits, "rules": rules}))
    query.warned = True
    return query


# -- Graphs and terms ------------------------------------------------------------------------------


def save_graphs(default: Batch, named: Mapping[Any, Batch], tables: TableFolder) -> list[str]:
    """Add the static graphs; return the names of the named ones."""
    tables.put_rows("default", default)
    for k, graph in enumerate(named.values()):
        tables.put_rows(f"named/{k}", graph)
    return [str(getattr(name, "value", name)) for name in named]


def restored_graphs(names: Iterable[str], tables: TableFolder) -> tuple[Batch, dict[str, Batch]]:
    """Return the default graph and the named ones."""
    named = {name: tables.rows(f"named/{k}", *TRIPLE) for k, name in enumerate(names)}
    return tables.rows("default", *TRIPLE), named


def save_terms(terms: TermDictionary, used: Iterator[IntArray], tables: TableFolder) -> None:
    """Add the terms whose ids are in use; those of static graphs apart, since they stay."""
    saved = terms.save(used)
    for name, kept in (("terms", False), ("static terms", True)):
        tables.put(name, saved.filter(pc.equal(saved["kept"], kept)).combine_chunks())


def saved_terms(tables: TableFolder) -> pa.Table:
    """Return the entries of a term dictionary that `save_terms` added."""
    return pa.concat_tables([tables.get("terms"), tables.get("static terms")]).combine_chunks()


# -- Input -----------------------------------------------------------------------------------------


def save_open(open_input: OpenInput) -> dict[str, Any]:
    """Return what an open query and a session have in common, besides streams."""
    return {
        "clock": open_input._clock.save(),
        "noted": sorted(open_input._noted),
        "late": [saved_reject(reject) for reject in open_input._late],
        "rejected": [saved_reject(reject) for reject in open_input._rejected],
        "closed": open_input.closed,
    }


def restore_open(open_input: OpenInput, saved: Mapping[str, Any]) -> None:
    """Restore what `save_open` saved."""
    open_input._clock.load(saved["clock"])
    open_input._noted.update(saved["noted"])
    open_input._late.extend(map(restored_reject, saved["late"]))
    open_input._rejected.extend(map(restored_reject, saved["rejected"]))
    open_input._closed = saved["closed"]
