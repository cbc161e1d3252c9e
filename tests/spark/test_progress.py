"""Progress of Spark as lines, where standard error is not a terminal."""

from __future__ import annotations

import time
from types import SimpleNamespace

from streamsparql.spark.progress import progress_lines

STAGE = SimpleNamespace(numTasks=8, numCompletedTasks=3, numActiveTasks=2)


def session(stages, info):
    tracker = SimpleNamespace(getActiveStageIds=lambda: stages, getStageInfo=info)
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_active_stages_are_printed_at_intervals(capsys):
    with progress_lines(session([2], {2: STAGE}.get), interval=0.01):
        time.sleep(0.1)
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "0 s: stage 2: 3 of 8 tasks, 2 running"


def test_short_runs_terminals_and_sessions_without_a_tracker_print_nothing(capsys, monkeypatch):
    with progress_lines(session([2], {2: STAGE}.get)):
        pass
    with progress_lines(object(), interval=0.001):
        time.sleep(0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_lines(session([2], {2: STAGE}.get), interval=0.001):
        time.sleep(0.01)
    assert capsys.readouterr().err == ""
