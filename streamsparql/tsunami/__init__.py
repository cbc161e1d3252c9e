"""A simulated pressure gauge on the floor of the ocean, and a detector of tsunamis in EP-SPARQL.

The detector is that of the paper on EP-SPARQL (section 6, test 3), by the formula of the National
Data Buoy Center: a cubic extrapolation of the means of ten minutes, now and one, two and three
hours ago, predicts the next reading, with the tide. A reading that is more than 30 mm from its
prediction belongs to a tsunami.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Heights = NDArray[np.float64]

OCEAN = "http://example.org/ocean#"
READINGS = 44_310
"""The number of readings in the paper; at one in 15 seconds, a week and 16 hours."""
FIRST_READING = 1_772_323_205_000
"""2026-03-01T00:00:05Z: readings are between the reports of the means, at each quarter minute."""
READING_INTERVAL = 15_000
"""The milliseconds from one reading to the next."""
COEFFICIENTS = (1.16818457031250, -0.28197558593750, 0.14689746093750, -0.03310644531250)
"""The weights of the means now and one, two and three hours ago: Newton's extrapolation."""

_DEPTH = 4_540.0
_TIDES = ((0.42, 12.42, 0.3), (0.15, 12.0, 1.1), (0.28, 23.93, 2.0), (0.19, 25.82, 4.4))
"""The amplitude in metres, the period in hours and the phase of each part of the tide."""
_NOISE = 0.001
_SURGE = (0.30, 0.65, 5 * 240)
"""A storm: its height in metres, its middle as a share of the readings, its width in readings."""
_WAVELENGTH, _DECAY = 64, 90
"""The period of a tsunami, 16 minutes, and the time in which it loses most of its height."""


class Wave(NamedTuple):
    """A tsunami that passes the gauge."""

    first: int
    """The number of its first reading."""
    height: float
    """The amplitude in metres, negative if a trough comes first."""


@dataclass(frozen=True)
class Gauge:
    """A pressure gauge: the height of the water above it every 15 seconds, in metres.

    It measures tides, a storm surge, noise of a millimetre, and a few tsunamis. The same seed
    yields the same readings.

    >>> gauge = Gauge()
    >>> len(gauge.heights), gauge.heights[:3].tolist()
    (44310, [4540.332, 4540.333, 4540.333])
    """

    readings: int = READINGS
    seed: int = 7

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The tsunamis: each is at most 10 cm high, less than a tenth of the tide."""
        shares = ((0.21, 0.07), (0.48, -0.05), (0.83, 0.10))
        return tuple(Wave(int(share * self.readings), height) for share, height in shares)

    @cached_property
    def heights(self) -> Heights:
        """The readings, rounded to millimetres."""
        number = np.arange(self.readings)
        hours = number * (READING_INTERVAL / 3_600_000)
        height = _DEPTH + sum(
            size * np.sin(2 * np.pi * hours / period + phase) for size, period, phase in _TIDES
        )
        size, share, width = _SURGE
        height += size * np.exp(-(((number - share * self.readings) / width) ** 2))
        for wave in self.waves:
            since = np.arange(self.readings - wave.first)
            swing = np.sin(2 * np.pi * since / _WAVELENGTH) * np.exp(-since / _DECAY)
            height[wave.first :] += wave.height * swing
        height += _NOISE * np.random.default_rng(self.seed).standard_normal(self.readings)
        rounded: Heights = np.round(height, 3)
        return rounded

    def to_arrow(self) -> pa.Table:
        """Return the readings as a table of items: subject, predicate, object, timestamp.

        >>> Gauge(1_000).to_arrow().num_rows
        1000
        """
        import pyarrow as pa

        decimal = "http://www.w3.org/2001/XMLSchema#decimal"
        subject = pa.array([f"<{OCEAN}gauge>"]).dictionary_encode()
        predicate = pa.array([f"<{OCEAN}height>"]).dictionary_encode()
        always = pa.array(np.zeros(self.readings, np.int32))
        return pa.table(
            {
                "subject": pa.DictionaryArray.from_arrays(always, subject.dictionary),
                "predicate": pa.DictionaryArray.from_arrays(always, predicate.dictionary),
                "object": [f'"{height:.3f}"^^<{decimal}>' for height in self.heights.tolist()],
                "timestamp": FIRST_READING + READING_INTERVAL * np.arange(self.readings),
            }
        )

    def write(self, folder: str | Path) -> list[Path]:
        """Write the readings, the queries and the rules to a folder; return the paths.

        Raise SourceError if one of these files exists with other content.
        """
        from streamsparql.windpark.folder import write_files

        contents = {**texts(), "readings.csv": "".join(self._lines())}
        return write_files(
            {name: partial(tuple, (text,)) for name, text in contents.items()}, Path(folder)
        )

    def _lines(self) -> Iterator[str]:
        """Yield the readings as lines of CSV."""
        table = self.to_arrow()
        yield ",".join(table.column_names) + "\n"
        for *terms, t in zip(*table.to_pydict().values(), strict=True):
            quoted = ",".join('"' + term.replace('"', '""') + '"' for term in terms)
            yield f"{quoted},{t}\n"


def texts() -> Mapping[str, str]:
    """Return the queries and the rules, by the names of their files.

    >>> sorted(texts())
    ['means.rq', 'prediction.rules.rq', 'tsunami.rq']
    """
    folder = files(__package__).iterdir()
    return {file.name: file.read_text("utf-8") for file in folder if file.name.endswith(".rq")}
