"""Lines with the progress of Spark, for output that is not a terminal, where its bar is off."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import Any

INTERVAL = 10.0
"""The seconds between two lines; a shorter run has none."""


@contextmanager
def progress_lines(spark: Any, interval: float = INTERVAL) -> Iterator[None]:
    """Print a line about the active stages to standard error, every `interval` seconds.

    Spark Connect has no tracker, and a terminal has Spark's own bar.
    """
    tracker = None
    with suppress(Exception):
        tracker = spark.sparkContext.statusTracker()
    if tracker is None or sys.stderr is None or sys.stderr.isatty():
        yield
        return
    ended, began = Event(), monotonic()

    def show() -> None:
        while not ended.wait(interval):
            with suppress(Exception):  # the session may end at any time
                if text := progress_text(tracker.getActiveStageIds(), tracker.getStageInfo):
                    print(f"{monotonic() - began:.0f} s: {text}", file=sys.stderr, flush=True)

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(1.0)


def progress_text(stages: list[int], info: Callable[[int], Any]) -> str:
    """Return how many tasks of the active stages have ended; empty without stages.

    >>> from types import SimpleNamespace
    >>> stage = SimpleNamespace(numTasks=8, numCompletedTasks=3, numActiveTasks=2)
    >>> progress_text([4], {4: stage}.get), progress_text([], {}.get)
    ('stage 4: 3 of 8 tasks, 2 running', '')
    """
    known = [(number, stage) for number in sorted(stages) if (stage := info(number)) is not None]
    return "; ".join(
        f"stage {number}: {stage.numCompletedTasks} of {stage.numTasks} tasks,"
        f" {stage.numActiveTasks} running"
        for number, stage in known
    )
