"""A simulated wind park: a realistic stream of any size, reproducible by its seed.

Turbines report wind, power, starts and stops, in the vocabulary of IEC 61400-25 as the paper on
Streaming SPARQL uses it. The fields and models of the turbines are in a static graph. The
demonstration, the tutorial, the notebooks and the benchmarks use the park.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import count as endless
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamsparql.windpark.weather import (
    DAY,
    MODELS,
    REASONS,
    Integers,
    Readings,
    model_index,
    turbine_readings,
)

if TYPE_CHECKING:
    import pyarrow as pa

ParkTriple = tuple[str, str, str]
ParkItem = tuple[str, str, str, int]
"""A triple of terms in N-Triples syntax, and milliseconds since 1970."""

LN = "http://iec.org/61400-25/root/ln-classes/"
PREFIXES = {
    "": "http://example.org/windpark#",
    "wtur": f"{LN}WTUR#",
    "wnac": f"{LN}WNAC#",
    "wmet": f"{LN}WMET#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
STREAM = "http://iec.org/61400-25/root/td.rdf"
MAST = "http://example.org/windpark/mast"
"""The IRI of the stream in `mast.csv`."""
START = 1_772_352_000_000
"""2026-03-01T08:00:00Z."""
MINUTE = 60_000

_PREDICATES = ("wnac:WdSpd", "wtur:W", "wtur:StrCnt", "wtur:StopCnt", ":stopReason")
_FIELDS = ("north", "south", "east", "west")
_REASON_LABELS = ("wind too strong", "wind too weak", "a fault", "service")
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_BLOCK_READINGS, _BLOCK_MINUTES = 1 << 16, 1 << 10  # the limits of a block


def park_iri(name: str) -> str:
    """Return the IRI of a prefixed name of the park, in N-Triples syntax.

    >>> park_iri(":T1"), park_iri("wtur:W")
    ('<http://example.org/windpark#T1>', '<http://iec.org/61400-25/root/ln-classes/WTUR#W>')
    """
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def wind_park(
    turbines: int = 8, minutes: int = 120, seed: int = 7, start: int | datetime = START
) -> WindPark:
    """Simulate a wind park of `turbines`, for `minutes` from `start` on.

    The same seed yields the same park on every machine. `start` is in milliseconds since 1970, or a
    datetime (UTC if it is naive). It sets the time of day: the wind is strongest in the afternoon.

    >>> park = wind_park(turbines=2, minutes=1)
    >>> subject, predicate, object, t = park.items[0]
    >>> predicate == park_iri("wnac:WdSpd"), object, (t - park.start) / 1000
    (True, '"11.4"^^<http://www.w3.org/2001/XMLSchema#decimal>', 28.0)
    """
    if isinstance(start, datetime):
        aware = start if start.tzinfo else start.replace(tzinfo=UTC)
        start = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    for name, value, least in (
        ("turbines", turbines, 1),
        ("minutes", minutes, 1),
        ("seed", seed, 0),
        ("start", start, 0),
    ):
        if type(value) is not int or value < least:
            raise ValueError(f"{name} must be an integer, at least {least}, not {value!r}")
    return WindPark(turbines, minutes, seed, start)


@dataclass(frozen=True)
class WindPark:
    """A wind park: a stream of readings, a static graph of turbines, and queries over them.

    Each turbine reports its wind (`wnac:WdSpd`, m/s) and power (`wtur:W`, kW) once a minute. When
    it stops, it reports the number of its stops (`wtur:StopCnt`) and the reason (`:stopReason`);
    when it starts, the number of its starts (`wtur:StrCnt`).
    """

    turbines: int
    minutes: int
    seed: int
    start: int

    stream = STREAM
    """The IRI of the stream."""

    @property
    def end(self) -> int:
        """The end of the last minute, in milliseconds since 1970."""
        return self.start + self.minutes * MINUTE

    @cached_property
    def items(self) -> list[ParkItem]:
        """The items of the stream, ordered by time."""
        return [item for block in self._blocks(self.minutes) for item in self._items(block)]

    def live(self) -> Iterator[ParkItem]:
        """Yield the items without end: those of `items`, then the following ones.

        >>> from itertools import islice
        >>> park = wind_park(turbines=3, minutes=5)
        >>> ahead = list(islice(park.live(), 100))
        >>> ahead[: len(park.items)] == park.items
        True
        """
        for block in self._blocks(None):
            yield from self._items(block)

    def to_arrow(self) -> pa.Table:
        """Return the items as an Arrow table: subject, predicate, object, timestamp.

        >>> wind_park(minutes=10).to_arrow().num_rows >= 2 * 8 * 10
        True
        """
        import pyarrow as pa

        parts = zip(*self._blocks(self.minutes), strict=True)
        turbines, kinds, values, stamps = map(np.concatenate, parts)
        columns = (
            (turbines, self._names),
            (kinds, _PREDICATE_IRIS),
            (values, _value_terms(values)),
        )
        terms = [
            pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts))
            for codes, texts in columns
        ]
        triples = dict(zip(("subject", "predicate", "object"), terms, strict=True))
        return pa.table({**triples, "timestamp": stamps})

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of the park, each with about four turbines or more."""
        return _FIELDS[: max(1, min(len(_FIELDS), self.turbines // 4))]

    @cached_property
    def graph(self) -> list[ParkTriple]:
        """The static graph: the turbines, their fields and models, and the reasons of stops.

        >>> graph = wind_park().graph
        >>> ("<http://example.org/windpark#T1>", park_iri(":field"), park_iri(":north")) in graph
        True
        """
        return [triple for triples in self.graph_by_subject for triple in triples]

    @property
    def graph_by_subject(self) -> Iterator[list[ParkTriple]]:
        """The triples of the static graph, a list per subject."""
        label, field_size = park_iri("rdfs:label"), -(-self.turbines // len(self.fields))
        for field in self.fields:
            yield [(park_iri(f":{field}"), label, f'"the {field}ern field"')]
        for name, rated_power, rated_wind in MODELS:
            power, wind = _number(rated_power, "integer"), _number(rated_wind // 1000, "integer")
            ratings = ((":ratedPower", power), (":ratedWind", wind))
            model = park_iri(f":{name}")
            yield [(model, park_iri(predicate), value) for predicate, value in ratings]
        for reason, text in zip(REASONS, _REASON_LABELS, strict=True):
            yield [(park_iri(f":{reason}"), label, f'"{text}"')]
        for k, name in enumerate(self._names):
            field = park_iri(f":{self.fields[k // field_size]}")
            model = park_iri(f":{MODELS[model_index(k)].name}")
            yield [
                (name, _TYPE, park_iri(":Turbine")),
                (name, park_iri(":field"), field),
                (name, park_iri(":model"), model),
            ]

    @property
    def queries(self) -> Mapping[str, str]:
        """Queries over the park, by name; each begins with a comment that describes it.

        >>> print(wind_park().queries["storm"].partition("\\n")[0])
        # A new stream: the turbines that are near their limit, with 20 m/s of wind or more.
        """
        return {
            file.name.removesuffix(".rq"): file.read_text("utf-8")
            for file in sorted((files(__package__) / "queries").iterdir(), key=lambda f: f.name)
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Write the stream, the graph, the queries and a README to a folder; return the paths.

        Raise SourceError if one of these files exists with other content.
        """
        from streamsparql.windpark.folder import park_files, write_files

        return write_files(park_files(self), Path(folder))

    @cached_property
    def _names(self) -> list[str]:
        return [park_iri(f":T{k + 1}") for k in range(self.turbines)]

    def _blocks(self, count: int | None) -> Iterator[_Block]:
        """Yield the items of the first `count` minutes in blocks, without end if it is None."""
        first = self.start // MINUTE % DAY
        size = max(1, min(_BLOCK_MINUTES, _BLOCK_READINGS // self.turbines))
        size = size if count is None else min(size, count)
        steps = endless(0, size) if count is None else range(0, count, size)
        blocks = turbine_readings(self.turbines, self.seed, first, size)
        for minute, readings in zip(steps, blocks, strict=False):
            left = size if count is None else count - minute
            needed = Readings._make(array[:left] for array in readings)
            yield _block(needed, self.start + minute * MINUTE)

    def _items(self, block: _Block) -> Iterator[ParkItem]:
        names, values = self._names, _value_terms(block.values)
        return zip(
            map(names.__getitem__, block.turbines.tolist()),
            map(_PREDICATE_IRIS.__getitem__, block.kinds.tolist()),
            map(values.__getitem__, block.values.tolist()),
            block.stamps.tolist(),
            strict=True,
        )


class _Block(NamedTuple):
    """Items as columns: indexes of turbines and predicates, codes of values, timestamps."""

    turbines: Integers
    kinds: Integers
    values: Integers
    stamps: Integers


_PREDICATE_IRIS = [park_iri(name) for name in _PREDICATES]


def _block(readings: Readings, start: int) -> _Block:
    """Return the items of a few minutes, ordered by time, turbine and predicate."""
    wind, power, started, stopped, reason, starts, stops, chance = readings
    stamps = start + np.arange(len(wind))[:, None] * MINUTE + _seconds(chance)
    always = np.ones(wind.shape, np.bool_)
    # the code of a value: the index of a reason; after those, tenths and integers alternate
    codes = (
        (always, 2 * wind + len(REASONS)),
        (always, 2 * power + len(REASONS) + 1),
        (started, 2 * starts + len(REASONS) + 1),
        (stopped, 2 * stops + len(REASONS) + 1),
        (stopped, reason),
    )
    positions = [np.flatnonzero(reported) for reported, _ in codes]
    values = [code.ravel()[places] for (_, code), places in zip(codes, positions, strict=True)]
    kinds = np.repeat(np.arange(len(codes)), [len(places) for places in positions])
    position = np.concatenate(positions)
    order = np.argsort(position * len(codes) + kinds)
    position = position[order]
    value = np.concatenate(values)[order]
    return _Block(position % wind.shape[1], kinds[order], value, stamps.ravel()[position])


def _seconds(chance: Integers) -> Integers:
    """Return when in its minute each turbine reports, in ms: in turn, on whole seconds if possible.

    >>> _seconds(np.array([0, 9, 2, 3])).tolist()
    [0, 24000, 32000, 48000]
    """
    count = chance.shape[-1]
    unit = 1000 if count * 1000 <= MINUTE else 1
    room = MINUTE // unit
    seconds: Integers = np.arange(count) * room // count + chance % max(1, room // count)
    return seconds * unit


def _value_terms(codes: Integers) -> list[str]:
    """Return the terms by code, for all codes up to the greatest of these, or more."""
    return _first_terms(1 << int(codes.max()).bit_length())


@lru_cache(maxsize=4)
def _first_terms(count: int) -> list[str]:
    integer, decimal = f"^^{park_iri('xsd:integer')}", f"^^{park_iri('xsd:decimal')}"
    terms = [park_iri(f":{reason}") for reason in REASONS]
    for n in range(count // 2):
        terms += [f'"{n // 10}.{n % 10}"{decimal}', f'"{n}"{integer}']
    return terms


def _number(value: int, kind: str) -> str:
    return f'"{value}"^^{park_iri(f"xsd:{kind}")}'
