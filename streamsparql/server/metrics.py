"""The numbers of a server as text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import time

from streamsparql.physical.operator import INFINITY
from streamsparql.run.async_session import WorkerStats
from streamsparql.run.session import SessionStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[Mapping[str, str], float]


def metrics(
    stats: SessionStats,
    rows: Mapping[str, int],
    worker: WorkerStats,
    began: float,
    saved: float | None = None,
) -> str:
    """Return the metrics of a session, its queries' rows, its worker, and the last checkpoint."""
    items = stats.items
    marks = {name: mark for name, mark in stats.watermarks.items() if 0 <= mark < INFINITY}
    now = time()
    families: list[tuple[str, str, str, Iterable[_Sample]]] = [
        (
            "items_total",
            "counter",
            "Items that were read, by what became of them.",
            [
                ({"fate": "accepted"}, items.accepted),
                ({"fate": "late"}, items.late),
                ({"fate": "rejected"}, items.rejected),
            ],
        ),
        (
            "watermark_seconds",
            "gauge",
            "The instant before which all items of a stream were processed, since 1970.",
            [({"stream": name}, mark / 1000) for name, mark in marks.items()],
        ),
        (
            "watermark_lag_seconds",
            "gauge",
            "How far the watermark of a stream is behind the clock of this machine.",
            [({"stream": name}, now - mark / 1000) for name, mark in marks.items()],
        ),
        (
            "rows_total",
            "counter",
            "Rows of a query.",
            [({"query": name}, count) for name, count in rows.items()],
        ),
        ("queries", "gauge", "Queries, each instance counted.", [({}, stats.queries)]),
        ("plans", "gauge", "Plans that compute the queries.", [({}, stats.plans)]),
        ("state_rows", "gauge", "Rows that operators retain.", [({}, stats.state)]),
        ("terms", "gauge", "Terms in the dictionary.", [({}, stats.terms)]),
        ("steps_total", "counter", "Calls of the engine.", [({}, worker.jobs)]),
        ("step_seconds_total", "counter", "The time of these calls.", [({}, worker.seconds)]),
        ("step_seconds_max", "gauge", "The longest of these calls.", [({}, worker.longest)]),
        ("uptime_seconds", "gauge", "Time since the start.", [({}, now - began)]),
    ]
    if saved is not None:
        meaning = "Time since the last checkpoint."
        families.append(("checkpoint_age_seconds", "gauge", meaning, [({}, now - saved)]))
    if (size := _resident()) is not None:
        families.append(("resident_memory_bytes", "gauge", "Memory of the process.", [({}, size)]))
    return "".join(map(_family, families))


def _family(family: tuple[str, str, str, Iterable[_Sample]]) -> str:
    name, kind, meaning, samples = family
    name = f"streamsparql_{name}"
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels as Prometheus writes them.

    >>> _labels({"query": 'a "b"'}), _labels({})
    ('{query="a \\\\"b\\\\""}', '')
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _resident() -> int | None:
    """Return the bytes of memory of this process; None if the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError):
        return None
    from resource import getpagesize

    return pages * getpagesize()
