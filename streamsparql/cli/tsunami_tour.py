"""The tour of `streamsparql demo --only tsunami`: means by a window, then rules and events."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from streamsparql.cli.screen import Screen
from streamsparql.query import compile
from streamsparql.tsunami import FIRST_READING, READING_INTERVAL, Gauge, texts
from streamsparql.windpark.folder import date_time_text, query_comment

TSUNAMI_COMMANDS = {
    "write the readings, the queries and the rules to a folder": (
        "streamsparql demo --only tsunami --write ocean"
    ),
    "compute the means": (
        "streamsparql run ocean/means.rq ocean/readings.csv"
        " --report rstream --every 15s -o ocean/means.csv"
    ),
    "detect tsunamis": (
        "streamsparql run ocean/tsunami.rq ocean/readings.csv ocean/means.csv"
        " --rules ocean/prediction.rules.rq"
    ),
}
"""The commands that do what the tour shows, by purpose."""

_LEVELS = "▁▂▃▄▅▆▇█"


class TsunamiTour:
    """The demonstration, part by part, over the readings of a gauge.

    `arguments` are those of `Query.run` that choose the engine.
    """

    def __init__(
        self,
        gauge: Gauge,
        arguments: Mapping[str, Any] | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._gauge, self._texts = gauge, texts()
        self._arguments = arguments or {}
        self._screen = Screen.of_stdout() if screen is None else screen

    def show(self) -> None:
        """Write all parts to the screen."""
        self._show_readings()
        self._introduce("2  A mean over ten minutes", "means.rq")
        self._introduce("3  Rules that predict", "prediction.rules.rq")
        self._introduce("4  An alarm per wave", "tsunami.rq")
        self._show_alarms()
        self._show_commands()

    def _show_readings(self) -> None:
        gauge, screen = self._gauge, self._screen
        low, high = gauge.heights.min(), gauge.heights.max()
        screen.heading("1  A pressure gauge in the ocean")
        screen.prose(
            f"Every 15 seconds it reports the height of the water above it: {gauge.readings:,}"
            f" readings, from {low:,.2f} to {high:,.2f} m. The tide is easy to see, and so is a"
            f" storm surge. {len(gauge.waves)} tsunamis have passed, too, at most 10 cm high."
        )
        screen.write()
        columns = np.array_split(gauge.heights, min(screen.width - 4, 76))
        means = np.array([column.mean() for column in columns])
        levels = (means - means.min()) / (np.ptp(means) or 1.0) * (len(_LEVELS) - 1)
        line = "".join(_LEVELS[level] for level in levels.round().astype(int).tolist())
        screen.write("  " + screen.paint(line, 36))

    def _introduce(self, title: str, name: str) -> None:
        """Write the heading, the comment and the text of a query or of rules."""
        text = self._texts[name]
        self._screen.heading(title)
        self._screen.prose(query_comment(text))
        self._screen.write()
        self._screen.query(text.partition("\n")[2].strip("\n"))

    def _show_alarms(self) -> None:
        """Run the queries, and write the rows and what is planted in the readings."""
        screen, table = self._screen, StringIO()
        query = compile(self._texts["tsunami.rq"], rules=[self._texts["prediction.rules.rq"]])
        with TemporaryDirectory(prefix="streamsparql-") as folder:
            readings, means = Path(folder) / "readings.csv", Path(folder) / "means.csv"
            self._gauge.write(folder)
            compile(self._texts["means.rq"]).run(readings, **self._arguments).write(
                means, report="rstream", every=READING_INTERVAL
            )
            query.run([readings, means], **self._arguments).write(table, "table", timestamps="iso")
        screen.write()
        screen.prose("These are the alarms. A row starts with the first mean that it is made of:")
        screen.write()
        for line in table.getvalue().splitlines():
            screen.write(f"  {line}")
        screen.write()
        screen.prose("And these are the first readings of the waves in the simulation:")
        screen.write()
        for first, height in self._gauge.waves:
            passes = date_time_text(FIRST_READING + first * READING_INTERVAL)
            screen.write(f"  {passes}  {100 * height:+3.0f} cm")

    def _show_commands(self) -> None:
        screen = self._screen
        screen.heading("The same, step by step")
        for purpose, command in TSUNAMI_COMMANDS.items():
            screen.write(screen.paint(f"# {purpose}", 2))
            screen.write(screen.paint(command, 1))
        screen.write()
