"""Arroyo's SQL tests: their inputs, and the outputs that they expect."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import streamsparql
from tests.support.engine_cases import answers, line, lines
from tests.support.external_data import over_data

ARROYO = "http://example.org/arroyo/"
INPUTS = {
    "cars": "cars",
    "impulse": "impulse",
    "delayed_impulse": "impulse",
    "second_impulse": "impulse",
}
"""The input of each stream; `orders` is a log of changes, whose JSON is flattened."""

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")


def _cases(data: Path) -> list[ParameterSet]:
    folder = data / "arroyo"
    cases = json.loads((folder / "queries.json").read_text())
    assert len(cases) == 35
    return [pytest.param(folder, name, case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize(("folder", "name", "case"), over_data(_cases))
def test_arroyo(folder: Path, name: str, case: dict[str, Any]) -> None:
    query = streamsparql.compile(folder / "queries" / f"{case.get('query', name)}.rq")
    streams = {
        ARROYO + stream: _mapped(_file(folder, f"{table}.jsonl"), folder / f"{table}.map.rq")
        for stream, table in INPUTS.items()
    }
    orders = _file(folder, "aggregate_updates.jsonl")
    streams[ARROYO + "orders"] = _mapped(_flat(_records(orders)), folder / "orders.map.rq")
    rows = answers(query, streams, case["answer"])

    expected = _folded(_records(_file(folder, f"expected/{name}.jsonl")), case.get("keys", ()))
    names = [name for name in expected[0] if name not in case.get("without", ())]
    columns = [case.get("columns", {}).get(name, name) for name in names]
    answered = lines(rows, columns, case.get("range", 0))
    wanted = Counter(line(" ".join(_text(row[name]) for name in names)) for row in expected)
    if "tolerance" in case:
        _check_close(answered, wanted, case["tolerance"], 0.5 * 10.0 ** -case["decimals"])
    else:
        assert answered == wanted


def _file(folder: Path, name: str) -> Path:
    file = folder / name
    return file if file.exists() else folder / f"{name}.gz"


def _mapped(source: Any, mapping: Path) -> Any:
    return streamsparql.mapped(source, mapping.read_text())


def _records(file: Path) -> list[dict[str, Any]]:
    raw = file.read_bytes()
    text = gzip.decompress(raw) if file.suffix == ".gz" else raw
    return [json.loads(record) for record in text.splitlines()]


def _flat(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return changes as records without nesting: what was done, when, and the row it was done to."""
    return [
        {
            "op": change["op"],
            "lsn": change["source"]["lsn"],
            "ts_ms": change["ts_ms"],
            **(change["after"] or change["before"]),
        }
        for change in changes
    ]


def _folded(output: list[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the table that a log of changes leads to; another output is one already."""
    if "op" not in output[0]:
        return output
    if keys:
        table = {}
        for change in output:
            row = change["after"] or change["before"]
            table[tuple(row[key] for key in keys)] = None if change["op"] == "d" else row
        return [row for row in table.values() if row is not None]
    counts: Counter[str] = Counter()
    for change in output:
        counts.subtract([json.dumps(change["before"])] if change["before"] else [])
        counts.update([json.dumps(change["after"])] if change["op"] != "d" else [])
    return [json.loads(row) for row in counts.elements()]


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value)


def _check_close(
    answered: Counter[tuple[Any, ...]],
    wanted: Counter[tuple[Any, ...]],
    tolerance: float,
    rounding: float,
) -> None:
    """Compare numbers that are computed with doubles there, and are rounded."""
    pairs = zip(sorted(answered.elements()), sorted(wanted.elements()), strict=True)
    for row, expected in pairs:
        for value, other in zip(row, expected, strict=True):
            if isinstance(value, str):
                assert value == other
            else:
                assert math.isclose(value, other, rel_tol=tolerance, abs_tol=rounding)
