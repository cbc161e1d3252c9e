"""A wind park as files: the stream, the graph, a table with its mapping, queries, and a README.

A file that exists with other content is never replaced: the user may have edited it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamsparql.errors import SourceError
from streamsparql.rdflib_terms import term
from streamsparql.text.widths import wrap
from streamsparql.translator.sparql_text import Writer
from streamsparql.windpark.weather import DAY, mast_readings

if TYPE_CHECKING:
    from streamsparql.windpark import ParkItem, WindPark

_XSD = "http://www.w3.org/2001/XMLSchema#"
_MAST_INTERVAL = 5
"""The minutes from one reading of a mast to the next."""


def write_files(files: Mapping[str, Callable[[], Iterable[str]]], folder: Path) -> list[Path]:
    """Write files and return their paths; write none if one exists with other content."""
    contents = {folder / name: content for name, content in files.items()}
    try:
        for path, content in contents.items():
            if path.exists() and not (path.is_file() and _has_content(path, content())):
                raise SourceError(
                    f"{path} exists with other content; name another folder, or remove the file"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(content())
    except OSError as error:
        name = error.filename or folder
        raise SourceError(f"cannot write {name}: {error.strerror}") from None
    return list(contents)


def _has_content(path: Path, content: Iterable[str]) -> bool:
    """Return whether a file has exactly this content."""
    with path.open("rb") as file:
        return all(file.read(len(part)) == part for part in map(str.encode, content)) and (
            not file.read(1)
        )


def park_files(park: WindPark) -> dict[str, Callable[[], Iterable[str]]]:
    """Return the files by name, each with a function that yields the parts of its content."""
    mapping = (files(__package__) / "mast.map.rq").read_text("utf-8")
    texts = {"README.txt": readme_text(park), "turbines.ttl": graph_turtle(park)}
    texts["mast.map.rq"] = mapping
    texts |= {f"{name}.rq": text for name, text in park.queries.items()}

    def wind() -> Iterator[str]:
        return quad_lines(takewhile(lambda item: item[3] < park.end, park.live()))

    contents: dict[str, Callable[[], Iterable[str]]] = {
        name: partial(tuple, (text,)) for name, text in texts.items()
    }
    return {**contents, "wind.nq": wind, "mast.csv": partial(mast_rows, park)}


def quad_lines(items: Iterable[ParkItem]) -> Iterator[str]:
    """Yield the items as lines of N-Quads with the time as the fourth term.

    >>> print(*quad_lines([("<a>", "<p>", "<b>", 1_772_352_000_000)]), end="")
    <a> <p> <b> "2026-03-01T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
    """
    last, stamp = -1, ""
    for subject, predicate, value, t in items:
        if t != last:
            last, stamp = t, f'"{date_time_text(t)}"^^<{_XSD}dateTime>'
        yield f"{subject} {predicate} {value} {stamp} .\n"


def date_time_text(t: int) -> str:
    """Return an instant as xsd:dateTime, with milliseconds only if they are not 0.

    >>> date_time_text(1_772_352_000_000), date_time_text(1)
    ('2026-03-01T08:00:00Z', '1970-01-01T00:00:00.001Z')
    """
    return f"{np.datetime64(t, 'ms')}".removesuffix(".000") + "Z"


def graph_turtle(park: WindPark) -> str:
    """Return the static graph as Turtle, one statement per subject."""
    from streamsparql.windpark import PREFIXES

    used = {name: PREFIXES[name] for name in ("", "rdfs")}
    writer = Writer(used)
    lines = [f"@prefix {name}: <{value}> .\n" for name, value in used.items()]
    for triples in park.graph_by_subject:
        predicates = [
            f"{writer.predicate(term(predicate))} {writer.term(term(value))}"
            for _, predicate, value in triples
        ]
        lines.append(f"\n{writer.term(term(triples[0][0]))} {' ; '.join(predicates)} .")
    return "".join(lines) + "\n"


def mast_rows(park: WindPark) -> Iterator[str]:
    """Yield the readings of the mast of each field as lines of CSV."""
    first, count = park.start // 60_000, -(-park.minutes // _MAST_INTERVAL)
    yield "time,field,temperature,humidity\n"
    readings = mast_readings(len(park.fields), park.seed, first % DAY, _MAST_INTERVAL)
    for k, reading in enumerate(islice(readings, count)):
        time = (
            date_time_text(park.start + k * _MAST_INTERVAL * 60_000)
            .replace("T", " ")
            .removesuffix("Z")
        )
        columns = (array.tolist() for array in reading)
        for field, tenths, humidity in zip(park.fields, *columns, strict=True):
            sign = "-" if tenths < 0 else ""
            yield f"{time},{field},{sign}{abs(tenths) // 10}.{abs(tenths) % 10},{humidity}\n"


# -- examples --------------------------------------------------------------------------------------


def example_commands(folder: str = "") -> Mapping[str, str]:
    """Return example commands on the files in a folder, by purpose.

    >>> next(iter(example_commands("my park").values()))
    "streamsparql run 'my park/listing-1.1.rq' --stream 'my park/wind.nq'"
    """

    def path_of(name: str) -> str:
        return shlex.quote(f"{folder.rstrip('/')}/{name}" if folder else name)

    run, wind, graph = "streamsparql run", path_of("wind.nq"), f"--graph {path_of('turbines.ttl')}"
    return {
        "run the paper's query": f"{run} {path_of('listing-1.1.rq')} --stream {wind}",
        "report every 10 minutes": f"{run} {path_of('power.rq')} --stream {wind} {graph}"
        " --report rstream",
        "show the plan of a query": f"streamsparql explain {path_of('stops.rq')}",
        "run on a live stream, a minute per second, until Ctrl-C": "streamsparql demo --pour |"
        f" {run} {path_of('now.rq')} --stream - --every 1m",
    }


def readme_text(park: WindPark) -> str:
    """Return the README of the folder: its files, and example commands."""
    from streamsparql.windpark import MAST

    descriptions = {
        "wind.nq": f"the stream <{park.stream}>",
        "turbines.ttl": "the static graph: turbines, fields, models",
        "mast.csv": f"the stream <{MAST}>, as a table",
        "mast.map.rq": "a CONSTRUCT query that maps mast.csv to triples",
    }
    for name, text in park.queries.items():
        descriptions[f"{name}.rq"] = query_comment(text)
    lines = [
        f"A wind park of {park.turbines} turbines over {park.minutes} minutes, simulated by"
        " streamsparql demo.",
        "",
    ]
    for name, text in descriptions.items():
        first, *more = wrap(text, 60)
        lines += [f"{name:18}{first}", *(" " * 18 + line for line in more)]
    lines += ["", "Commands to try in this folder:"]
    streams = (f"--stream {park.stream}=wind.nq", f"--stream {MAST}=mast.csv")
    options = (*streams, f"--map {MAST}=mast.map.rq", "--graph turbines.ttl", "--every 10m")
    ice = " \\\n    ".join(("streamsparql run ice.rq", *options))
    for purpose, command in {
        **example_commands(),
        "run over two streams, one of them a table": ice,
    }.items():
        lines += ["", f"# {purpose}", command]
    return "\n".join(lines) + "\n"


def query_comment(query: str) -> str:
    """Return the text of the comment that a query begins with.

    >>> query_comment("# Which turbines\\n# turn?\\nSELECT ?x {}")
    'Which turbines turn?'
    """
    comments = takewhile(lambda line: line.startswith("#"), query.splitlines())
    return " ".join(line.strip("# ") for line in comments)
