"""The speed of sources: files of each format are read to the term ids of the engine, on one core.

    python benchmarks/reading.py [--readings 100000] [--formats nq,csv,..] [--repeat 3]
                                 [--clock cpu] [--json FILE]

The files of all formats contain the same readings, five triples each, every reading a new IRI.
`park` is the output of `streamsparql.wind_park`, whose terms repeat. The peer of a format is a
parser that makes no ids: pyoxigraph for RDF, Arrow for tables. They take turns, and the best turn
of each counts. Times are wall clock times; with `--clock cpu`, processor times of all threads.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pyoxigraph

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from streamsparql import wind_park  # noqa: E402
from streamsparql.physical.dictionary.term_dictionary import TermDictionary  # noqa: E402
from streamsparql.sources import mapped, read_graph, read_stream  # noqa: E402

E = "http://example.org/windpark#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
BARS = {"parquet": 1.0, "nq": 0.5, "park parquet": 1.0, "park nq": 0.5}
"""The least million triples per second of these formats."""
MAPPING = f"""PREFIX : <{E}> PREFIX xsd: <{XSD}>
CONSTRUCT {{ ?r a :Reading ; :of ?m ; :power ?p ; :windSpeed ?w ; :state :on }}
WHERE {{ BIND(IRI(CONCAT("{E}reading", ?id)) AS ?r) BIND(IRI(CONCAT("{E}turbine", ?turbine)) AS ?m)
        BIND(xsd:double(?power) AS ?p) BIND(xsd:double(?wind) AS ?w) }}"""
START, STEP = 1_600_000_000_000, 250

Row = tuple[int, int, float, float, int]
Item = tuple[str, str, str, int]


def rows(count: int) -> Iterator[Row]:
    """Yield readings: number, turbine, power, wind speed, time."""
    for k in range(count):
        yield k, k * 7 % 100, (k * 7919 % 100_000) / 10, (k * 31 % 250) / 10, START + k * STEP


def items(count: int) -> Iterator[Item]:
    """Yield the triples of readings, with their timestamps."""
    for k, turbine, power, wind, t in rows(count):
        subject = f"<{E}reading{k}>"
        yield subject, TYPE, f"<{E}Reading>", t
        yield subject, f"<{E}of>", f"<{E}turbine{turbine}>", t
        yield subject, f"<{E}power>", f'"{power}"^^<{XSD}double>', t
        yield subject, f"<{E}windSpeed>", f'"{wind}"^^<{XSD}double>', t
        yield subject, f"<{E}state>", f"<{E}on>", t


def write_files(folder: Path, count: int) -> dict[str, Path]:
    """Write files of all formats, and return their paths by the name of the format."""
    table = pa.table(
        dict(
            zip(
                ("subject", "predicate", "object", "timestamp"),
                map(list, zip(*items(count), strict=True)),
                strict=True,
            )
        )
    )
    paths = {
        name: folder / f"items.{name}"
        for name in ("nq", "nq.gz", "csv", "jsonl", "parquet", "ttl", "trig")
    }
    paths["mapped csv"] = folder / "readings.csv"
    quads = "".join(f"{s} {p} {o} <{E}t/{t}> .\n" for s, p, o, t in items(count))
    paths["nq"].write_text(quads)
    paths["nq.gz"].write_bytes(gzip.compress(quads.encode(), 6))
    paths["ttl"].write_text("".join(f"{s} {p} {o} .\n" for s, p, o, _ in items(count)))
    paths["trig"].write_text("".join(_trig_graphs(count)))
    park = wind_park(turbines=100, minutes=max(1, count // 40)).to_arrow()
    paths["park nq"], paths["park parquet"] = folder / "park.nq", folder / "park.parquet"
    pa.parquet.write_table(park, paths["park parquet"], compression="zstd")
    columns = (park[name].to_pylist() for name in park.column_names)
    lines = (f"{s} {p} {o} <{E}t/{t}> .\n" for s, p, o, t in zip(*columns, strict=True))
    paths["park nq"].write_text("".join(lines))
    pa.csv.write_csv(table, paths["csv"])
    pa.parquet.write_table(table, paths["parquet"], compression="zstd")
    with paths["jsonl"].open("w") as file:
        file.writelines(
            json.dumps(dict(zip("spot", item, strict=True))) + "\n" for item in items(count)
        )
    with paths["mapped csv"].open("w") as file:
        file.write("id,turbine,power,wind,timestamp\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows(count))
    return paths


def _trig_graphs(count: int) -> Iterator[str]:
    """Yield lines of TriG: a graph per reading, and the time at which it was generated."""
    five: list[str] = []
    for k, (s, p, o, t) in enumerate(items(count)):
        five.append(f"{s} {p} {o} .")
        if k % 5 == 4:
            yield f"<{E}g{t}> {{ {' '.join(five)} }}\n"
            yield f'<{E}g{t}> <http://www.w3.org/ns/prov#generatedAtTime> "{t}"^^<{XSD}integer> .\n'
            five = []


def read(name: str, path: Path) -> int:
    """Read a file to term ids, as an engine does that recycles unused ids; return the triples."""
    terms = TermDictionary()
    if name == "ttl":
        return len(read_graph(path, "the graph", terms)[0])
    source: Any = mapped(path, MAPPING) if name == "mapped csv" else path
    count = 0
    for chunk in read_stream(source, "<s>", terms):
        assert not chunk.rejects
        count += len(chunk)
        if terms.due():
            terms.recycle([])
    return count


def parse(name: str, path: Path) -> int:
    """Parse a file with the peer of its format; return the number of triples."""
    if name in ("csv", "mapped csv"):
        options = pa.csv.ReadOptions(use_threads=False)
        return _triples(name, pa.csv.read_csv(path, options).num_rows)
    if name == "jsonl":
        return int(pa.json.read_json(path, pa.json.ReadOptions(use_threads=False)).num_rows)
    if name.endswith("parquet"):
        return int(pa.parquet.read_table(path, use_threads=False).num_rows)
    form = {"ttl": pyoxigraph.RdfFormat.TURTLE, "trig": pyoxigraph.RdfFormat.TRIG}
    opened: Callable[..., Any] = gzip.open if name.endswith(".gz") else open
    with opened(path, "rb") as file:
        kind = form.get(name, pyoxigraph.RdfFormat.N_QUADS)
        return sum(1 for _ in pyoxigraph.parse(file, format=kind))


def _triples(name: str, count: int) -> int:
    return count * 5 if name == "mapped csv" else count


def measure(name: str, path: Path, repeat: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Measure the million triples per second of a format, for this engine and its peer."""
    best = {read: 0.0, parse: 0.0}
    for _ in range(repeat):
        for contender in best:
            before = clock()
            count = contender(name, path)
            spent = clock() - before
            best[contender] = max(best[contender], count / spent / 1e6)
    tables = ("csv", "jsonl", "parquet", "park parquet", "mapped csv")
    peer = "pyarrow" if name in tables else "pyoxigraph"
    return {"format": name, "mtps": best[read], "peer": peer, "peer_mtps": best[parse]}


def show(record: dict[str, Any]) -> bool:
    """Print a line, and return whether the bar is met."""
    bar = BARS.get(record["format"])
    met = bar is None or record["mtps"] >= bar
    verdict = "" if bar is None else f"   bar {bar:.1f}: {'ok' if met else 'BELOW THE BAR'}"
    ratio = record["mtps"] / record["peer_mtps"]
    print(
        f"{record['format']:>11}  {record['mtps']:6.2f} M/s   {ratio:5.2f}x {record['peer']}"
        f" ({record['peer_mtps']:.2f} M/s){verdict}",
        flush=True,
    )
    return met


def main() -> int:
    """Measure the selected formats; return 1 if one is below its bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--readings", type=int, default=100_000, help="each has five triples")
    parser.add_argument("--formats", help="separated by commas; default: all")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), options.readings)
        names = options.formats.split(",") if options.formats else list(paths)
        records = []
        met = True
        for name in names:
            records.append(measure(name, paths[name], options.repeat, clock))
            met &= show(records[-1])
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
