"""The data of the measurements: a stream of readings of wind turbines, and a static graph.

The data are seeded, so all runs read the same. The four predicates are equally frequent: two
counters, whose values never repeat for a turbine, and two readings. A slide of 6 s has exactly a
tenth of the triples of a window of 60 s. No timestamp is at a border of a slide or 1 ms after one,
so windows `[a, b)` and `(a, b]` contain the same items. (`streamsparql.wind_park` is more
realistic, but its readings repeat: engines whose windows are sets would return other results.)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

EX = "http://ex.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM, STATIC = EX + "s", EX + "static"
START, SLIDE, WIDTH = 600_000, 6_000, 60_000
SLIDES_PER_WINDOW = WIDTH // SLIDE
TURBINES_WITH_DATA = 12_500
PREDICATES = ("StrCnt", "StopCnt", "WindSpeed", "Power")

Triple = tuple[int, str, str, str]
"""The input of peers: a timestamp, two IRIs without brackets, an object in N-Triples syntax."""
Item = tuple[str, str, str, int]
"""The input of this engine: three terms in N-Triples syntax, and a timestamp."""


class Size(NamedTuple):
    """The size of a history: triples per full window, turbines, slides, and the seed."""

    window: int
    turbines: int
    slides: int
    seed: int


SIZES = {
    "1k": Size(1_000, 125, 60, 21),
    "10k": Size(10_000, 1_250, 60, 22),
    "100k": Size(100_000, 12_500, 30, 23),
    "w6": Size(10_000, 5_000, 40, 24),
}


@dataclass
class History:
    """A history by slides, in the form of the peers and in that of this engine."""

    size: Size
    triples: list[list[Triple]]
    items: list[list[Item]]
    static: list[tuple[str, str, str]] = field(default_factory=list)
    """The static graph: triples of terms in N-Triples syntax."""

    @property
    def per_slide(self) -> int:
        """The number of triples of a slide."""
        return self.size.window // SLIDES_PER_WINDOW

    @property
    def all_items(self) -> list[Item]:
        """The items of all slides in one list."""
        return [item for slide in self.items for item in slide]


def history(name: str, static: bool = False) -> History:
    """Generate the history of a size, by its name in SIZES.

    >>> data = history("1k")
    >>> len(data.triples), {len(slide) for slide in data.triples}
    (60, {100})
    """
    size = SIZES[name]
    chance = random.Random(size.seed)
    counters: dict[tuple[int, int], int] = {}
    data = History(size, [], [], static_triples() if static else [])
    for k in range(size.slides):
        slide = [
            (stamp, *_reading(chance, size.turbines, counters))
            for stamp in _stamps(chance, START + k * SLIDE, data.per_slide)
        ]
        data.triples.append(slide)
        data.items.append([(f"<{s}>", f"<{p}>", o, t) for t, s, p, o in slide])
    return data


def _stamps(chance: random.Random, start: int, count: int) -> list[int]:
    stamps = (start + chance.randrange(2, SLIDE) for _ in range(count))
    return sorted(t + 2 if t % 1000 < 2 else t for t in stamps)


def _reading(
    chance: random.Random, turbines: int, counters: dict[tuple[int, int], int]
) -> tuple[str, str, str]:
    turbine, kind = chance.randrange(turbines), chance.randrange(4)
    if kind < 2:
        count = counters.get((turbine, kind)) or chance.randrange(100)
        counters[turbine, kind] = count = count + 1
        value = f'"{count}"^^<{XSD}integer>'
    else:
        value = f'"{chance.uniform(0, 25 if kind == 2 else 3000):.6f}"^^<{XSD}double>'
    return f"{EX}T{turbine}", f"{EX}{PREDICATES[kind]}", value


def static_triples() -> list[tuple[str, str, str]]:
    """Generate the static graph of 12,500 turbines: 100,000 triples."""
    chance = random.Random(7)
    facts: tuple[tuple[str, Callable[[int], str]], ...] = (
        ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", lambda _: f"<{EX}Turbine>"),
        (f"<{EX}inPark>", lambda i: f"<{EX}Park{i % 250}>"),
        (f"<{EX}model>", lambda _: f"<{EX}Model{chance.randrange(10)}>"),
        (f"<{EX}manufacturer>", lambda _: f"<{EX}Man{chance.randrange(5)}>"),
        (f"<{EX}capacity>", lambda _: f'"{chance.randrange(1000, 9000)}"^^<{XSD}integer>'),
        (f"<{EX}lat>", lambda _: f'"{chance.uniform(53, 56):.5f}"^^<{XSD}double>'),
        (f"<{EX}long>", lambda _: f'"{chance.uniform(6, 14):.5f}"^^<{XSD}double>'),
        (f"<{EX}commissioned>", lambda _: f'"{chance.randrange(1995, 2026)}"^^<{XSD}integer>'),
    )
    return [
        (f"<{EX}T{i}>", predicate, value(i))
        for i in range(TURBINES_WITH_DATA)
        for predicate, value in facts
    ]


def end_of(slide: int) -> int:
    """Return the instant at which a slide ends, and a window ends and is reported."""
    return START + (slide + 1) * SLIDE
