"""A wind park as files: the stream, the graph, a table with its mapping, queries, and a README.

What is there already is not replaced, unless it is the same: somebody may have worked on it.
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
from streamsparql.windpark.weather import DAY, air

if TYPE_CHECKING:
    from streamsparql.windpark import Item, WindPark

_XSD = "http://www.w3.org/2001/XMLSchema#"
_EVERY = 5
"""The minutes from one row of the mast to the next."""


def write(park: WindPark, folder: Path) -> list[Path]:
    """Writes all files, or none where one would replace what is something else."""
    made = {folder / name: content for name, content in written(park).items()}
    try:
        for path, content in made.items():
            if path.exists() and not (path.is_file() and _is(path, content())):
                raise SourceError(
                    f"{path} is there and is something else: name another folder, or remove it"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in made.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(content())
    except OSError as error:
        name = error.filename or folder
        raise SourceError(f"{name} cannot be written: {error.strerror}") from None
    return list(made)


def _is(path: Path, content: Iterable[str]) -> bool:
    """Whether a file has just this content."""
    with path.open("rb") as file:
        return all(file.read(len(part)) == part for part in map(str.encode, content)) and (
            not file.read(1)
        )


def written(park: WindPark) -> dict[str, Callable[[], Iterable[str]]]:
    """The files by name, and what gives their content, part by part."""
    mapping = (files(__package__) / "mast.map.rq").read_text("utf-8")
    texts = {"README.txt": readme(park), "turbines.ttl": turtle(park), "mast.map.rq": mapping}
    texts |= {f"{name}.rq": text for name, text in park.queries.items()}

    def wind() -> Iterator[str]:
        return quads(takewhile(lambda item: item[3] < park.end, park.live()))

    made: dict[str, Callable[[], Iterable[str]]] = {
        name: partial(tuple, (text,)) for name, text in texts.items()
    }
    return {**made, "wind.nq": wind, "mast.csv": partial(mast, park)}


def quads(items: Iterable[Item]) -> Iterator[str]:
    """The items as lines of N-Quads, the time as the fourth term.

    >>> print(*quads([("<a>", "<p>", "<b>", 1_772_352_000_000)]), end="")
    <a> <p> <b> "2026-03-01T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
    """
    last, stamp = -1, ""
    for subject, predicate, value, t in items:
        if t != last:
            last, stamp = t, f'"{time_of(t)}"^^<{_XSD}dateTime>'
        yield f"{subject} {predicate} {value} {stamp} .\n"


def time_of(t: int) -> str:
    """An instant as xsd:dateTime, without milliseconds where there are none.

    >>> time_of(1_772_352_000_000), time_of(1)
    ('2026-03-01T08:00:00Z', '1970-01-01T00:00:00.001Z')
    """
    return f"{np.datetime64(t, 'ms')}".removesuffix(".000") + "Z"


def turtle(park: WindPark) -> str:
    """The static graph as Turtle, a subject in each statement."""
    from streamsparql.windpark import PREFIXES

    used = {name: PREFIXES[name] for name in ("", "rdfs")}
    writer = Writer(used)
    lines = [f"@prefix {name}: <{value}> .\n" for name, value in used.items()]
    for triples in park.known:
        told = [
            f"{writer.predicate(term(predicate))} {writer.term(term(value))}"
            for _, predicate, value in triples
        ]
        lines.append(f"\n{writer.term(term(triples[0][0]))} {' ; '.join(told)} .")
    return "".join(lines) + "\n"


def mast(park: WindPark) -> Iterator[str]:
    """What the mast of each field measured, as CSV."""
    first, count = park.start // 60_000, -(-park.minutes // _EVERY)
    yield "time,field,temperature,humidity\n"
    told = air(len(park.fields), park.seed, first % DAY, _EVERY)
    for k, measured in enumerate(islice(told, count)):
        time = time_of(park.start + k * _EVERY * 60_000).replace("T", " ").removesuffix("Z")
        for field, warm, damp in zip(park.fields, *(m.tolist() for m in measured), strict=True):
            sign = "-" if warm < 0 else ""
            yield f"{time},{field},{sign}{abs(warm) // 10}.{abs(warm) % 10},{damp}\n"


# -- what to try -----------------------------------------------------------------------------------


def commands(folder: str = "") -> Mapping[str, str]:
    """What to try with the files in a folder, and what each command is for.

    >>> next(iter(commands("my park").values()))
    "streamsparql run 'my park/listing-1.1.rq' --stream 'my park/wind.nq'"
    """

    def at(name: str) -> str:
        return shlex.quote(f"{folder.rstrip('/')}/{name}" if folder else name)

    run, wind, graph = "streamsparql run", at("wind.nq"), f"--graph {at('turbines.ttl')}"
    return {
        "the paper's query": f"{run} {at('listing-1.1.rq')} --stream {wind}",
        "a report every 10 minutes": f"{run} {at('power.rq')} --stream {wind} {graph}"
        " --report rstream",
        "how a query is understood": f"streamsparql explain {at('stops.rq')}",
        "as time goes by, a minute in a second; Ctrl-C ends it": "streamsparql demo --pour |"
        f" {run} {at('now.rq')} --stream - --every 1m",
    }


def readme(park: WindPark) -> str:
    """What the files are, and what to try with them."""
    from streamsparql.windpark import MAST

    about = {
        "wind.nq": f"the stream <{park.stream}>",
        "turbines.ttl": "what is known of the turbines: the static graph",
        "mast.csv": f"what the masts measured: the stream <{MAST}>",
        "mast.map.rq": "what the columns of mast.csv mean, as a CONSTRUCT",
    }
    for name, text in park.queries.items():
        about[f"{name}.rq"] = said(text)
    lines = [
        f"A wind park of {park.turbines} turbines over {park.minutes} minutes, made by"
        " streamsparql demo.",
        "",
    ]
    for name, text in about.items():
        first, *more = wrap(text, 60)
        lines += [f"{name:18}{first}", *(" " * 18 + line for line in more)]
    lines += ["", "Try, in this folder:"]
    streams = (f"--stream {park.stream}=wind.nq", f"--stream {MAST}=mast.csv")
    options = (*streams, f"--map {MAST}=mast.map.rq", "--graph turbines.ttl", "--every 10m")
    ice = " \\\n    ".join(("streamsparql run ice.rq", *options))
    for purpose, command in {**commands(), "two streams, one of them a table": ice}.items():
        lines += ["", f"# {purpose}", command]
    return "\n".join(lines) + "\n"


def said(query: str) -> str:
    """What a query's comment says.

    >>> said("# Which turbines\\n# turn?\\nSELECT ?x {}")
    'Which turbines turn?'
    """
    comments = takewhile(lambda line: line.startswith("#"), query.splitlines())
    return " ".join(line.strip("# ") for line in comments)
