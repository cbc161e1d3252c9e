"""A wind park, made on the spot: a stream that is worth querying, of any size, the same each time.

Turbines tell the wind, their power, and how often they started and stopped, in the words of
IEC 61400-25 as the paper of Streaming SPARQL has them. What is known of the turbines (fields and
models) is a static graph beside the stream. The park serves the demonstration, the tutorial, the
notebooks and the measurements.
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

from streamsparql.windpark.weather import DAY, MODELS, REASONS, Stretch, Whole, life, model_of

if TYPE_CHECKING:
    import pyarrow as pa

Triple = tuple[str, str, str]
Item = tuple[str, str, str, int]
"""Three terms in N-Triples syntax, and milliseconds since 1970."""

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
"""The stream of `mast.csv`."""
START = 1_772_352_000_000
"""The 1st of March 2026, 8 o'clock UTC."""
MINUTE = 60_000

_PREDICATES = ("wnac:WdSpd", "wtur:W", "wtur:StrCnt", "wtur:StopCnt", ":stopReason")
_FIELDS = ("north", "south", "east", "west")
_SAID = ("wind too strong", "wind too weak", "a fault", "service")
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_BLOCK, _MOST = 1 << 16, 1 << 10  # readings, and minutes, that are made at once


def iri(name: str) -> str:
    """The IRI of a prefixed name of the park, in N-Triples syntax.

    >>> iri(":T1"), iri("wtur:W")
    ('<http://example.org/windpark#T1>', '<http://iec.org/61400-25/root/ln-classes/WTUR#W>')
    """
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def wind_park(
    turbines: int = 8, minutes: int = 120, seed: int = 7, start: int | datetime = START
) -> WindPark:
    """A wind park of so many turbines, over so many minutes from `start` on.

    The same seed gives the same park, on every machine. `start` is in milliseconds since 1970, or a
    datetime (UTC where it has no time zone); it decides what time of the day it is: there is most
    wind in the afternoon.

    >>> park = wind_park(turbines=2, minutes=1)
    >>> subject, predicate, object, t = park.items[0]
    >>> predicate == iri("wnac:WdSpd"), object, (t - park.start) / 1000
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
            raise ValueError(f"{name} is a whole number from {least} on, not {value!r}")
    return WindPark(turbines, minutes, seed, start)


@dataclass(frozen=True)
class WindPark:
    """A wind park: a stream of readings, a static graph of turbines, and queries over them.

    Each turbine tells its wind (`wnac:WdSpd`, m/s) and power (`wtur:W`, kW) once a minute. When it
    stops it tells how often it did (`wtur:StopCnt`) and why (`:stopReason`), when it starts again
    how often it did (`wtur:StrCnt`).
    """

    turbines: int
    minutes: int
    seed: int
    start: int

    stream = STREAM
    """The IRI of the stream."""

    @property
    def end(self) -> int:
        """The instant that the last minute ends at."""
        return self.start + self.minutes * MINUTE

    @cached_property
    def items(self) -> list[Item]:
        """The items of the stream in the order of time."""
        return [item for block in self._blocks(self.minutes) for item in self._items(block)]

    def live(self) -> Iterator[Item]:
        """The items one by one, without an end: after those of `items`, what comes then.

        >>> from itertools import islice
        >>> park = wind_park(turbines=3, minutes=5)
        >>> ahead = list(islice(park.live(), 100))
        >>> ahead[: len(park.items)] == park.items
        True
        """
        for block in self._blocks(None):
            yield from self._items(block)

    def to_arrow(self) -> pa.Table:
        """The items as an Arrow table: subject, predicate, object, timestamp.

        >>> wind_park(minutes=10).to_arrow().num_rows >= 2 * 8 * 10
        True
        """
        import pyarrow as pa

        parts = zip(*self._blocks(self.minutes), strict=True)
        turbines, kinds, values, stamps = map(np.concatenate, parts)
        columns = ((turbines, self._names), (kinds, _TOLD), (values, _values(values)))
        terms = [
            pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts))
            for codes, texts in columns
        ]
        made = dict(zip(("subject", "predicate", "object"), terms, strict=True))
        return pa.table({**made, "timestamp": stamps})

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields that the turbines stand in, about four or more in each."""
        return _FIELDS[: max(1, min(len(_FIELDS), self.turbines // 4))]

    @cached_property
    def graph(self) -> list[Triple]:
        """What is known of turbines, fields, models, and reasons to stop.

        >>> graph = wind_park().graph
        >>> ("<http://example.org/windpark#T1>", iri(":field"), iri(":north")) in graph
        True
        """
        return [triple for subject in self.known for triple in subject]

    @property
    def known(self) -> Iterator[list[Triple]]:
        """The triples of the static graph, those of one subject together."""
        label, share = iri("rdfs:label"), -(-self.turbines // len(self.fields))
        for field in self.fields:
            yield [(iri(f":{field}"), label, f'"the {field}ern field"')]
        for name, rated, enough in MODELS:
            power, wind = _number(rated, "integer"), _number(enough // 1000, "integer")
            told = ((":ratedPower", power), (":ratedWind", wind))
            yield [(iri(f":{name}"), iri(predicate), value) for predicate, value in told]
        for reason, said in zip(REASONS, _SAID, strict=True):
            yield [(iri(f":{reason}"), label, f'"{said}"')]
        for k, name in enumerate(self._names):
            field, model = self.fields[k // share], MODELS[model_of(k)].name
            told = ((":field", iri(f":{field}")), (":model", iri(f":{model}")))
            about = [(name, iri(predicate), value) for predicate, value in told]
            yield [(name, _TYPE, iri(":Turbine")), *about]

    @property
    def queries(self) -> Mapping[str, str]:
        """Queries over the park, by name; each begins with a comment that says what it asks.

        >>> print(wind_park().queries["storm"].partition("\\n")[0])
        # A new stream: the turbines that are near their limit, with 20 m/s of wind and more.
        """
        return {
            file.name.removesuffix(".rq"): file.read_text("utf-8")
            for file in sorted((files(__package__) / "queries").iterdir(), key=lambda f: f.name)
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Writes the stream, the graph, the queries and what to try with them into a folder.

        SourceError where that would replace a file that is something else.
        """
        from streamsparql.windpark.folder import write

        return write(self, Path(folder))

    @cached_property
    def _names(self) -> list[str]:
        return [iri(f":T{k + 1}") for k in range(self.turbines)]

    def _blocks(self, count: int | None) -> Iterator[_Block]:
        """The items of so many minutes, of all minutes to come where no number is given."""
        first, size = self.start // MINUTE % DAY, max(1, min(_MOST, _BLOCK // self.turbines))
        size = size if count is None else min(size, count)
        steps = endless(0, size) if count is None else range(0, count, size)
        for at, stretch in zip(steps, life(self.turbines, self.seed, first, size), strict=False):
            left = size if count is None else count - at
            told = Stretch._make(array[:left] for array in stretch)
            yield _block(told, self.start + at * MINUTE)

    def _items(self, block: _Block) -> Iterator[Item]:
        names, values = self._names, _values(block.values)
        return zip(
            map(names.__getitem__, block.turbines.tolist()),
            map(_TOLD.__getitem__, block.kinds.tolist()),
            map(values.__getitem__, block.values.tolist()),
            block.stamps.tolist(),
            strict=True,
        )


class _Block(NamedTuple):
    """Items as columns: which turbine, which predicate, the value's code, and when."""

    turbines: Whole
    kinds: Whole
    values: Whole
    stamps: Whole


_TOLD = [iri(name) for name in _PREDICATES]


def _block(told: Stretch, start: int) -> _Block:
    """The items of some minutes in order, by time, turbine and predicate."""
    wind, power, started, stopped, reason, starts, stops, chance = told
    stamps = start + np.arange(len(wind))[:, None] * MINUTE + _seconds(chance)
    always = np.ones(wind.shape, np.bool_)
    # a value's code: that of a reason, or an odd number for whole numbers, an even one for tenths
    codes = (
        (always, 2 * wind + len(REASONS)),
        (always, 2 * power + len(REASONS) + 1),
        (started, 2 * starts + len(REASONS) + 1),
        (stopped, 2 * stops + len(REASONS) + 1),
        (stopped, reason),
    )
    places = [np.flatnonzero(when) for when, _ in codes]
    values = [code.ravel()[place] for (_, code), place in zip(codes, places, strict=True)]
    kinds = np.repeat(np.arange(len(codes)), [len(place) for place in places])
    place = np.concatenate(places)
    order = np.argsort(place * len(codes) + kinds)
    place = place[order]
    value = np.concatenate(values)[order]
    return _Block(place % wind.shape[1], kinds[order], value, stamps.ravel()[place])


def _seconds(chance: Whole) -> Whole:
    """When in its minute each turbine tells: in turn, in whole seconds where there is room.

    >>> _seconds(np.array([0, 9, 2, 3])).tolist()
    [0, 24000, 32000, 48000]
    """
    count = chance.shape[-1]
    unit = 1000 if count * 1000 <= MINUTE else 1
    room = MINUTE // unit
    seconds: Whole = np.arange(count) * room // count + chance % max(1, room // count)
    return seconds * unit


def _values(codes: Whole) -> list[str]:
    """The terms of all codes up to the greatest of these, and of some more."""
    return _terms(1 << int(codes.max()).bit_length())


@lru_cache(maxsize=4)
def _terms(count: int) -> list[str]:
    whole, tenths = f"^^{iri('xsd:integer')}", f"^^{iri('xsd:decimal')}"
    made = [iri(f":{reason}") for reason in REASONS]
    for n in range(count // 2):
        made += [f'"{n // 10}.{n % 10}"{tenths}', f'"{n}"{whole}']
    return made


def _number(value: int, kind: str) -> str:
    return f'"{value}"^^{iri(f"xsd:{kind}")}'
