"""Tables of native values, compared with tables of terms: Arrow, and frames of pandas."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.run.decoder import RowDecoder
from streamsparql.values.frames import pandas_frame

XSD = "http://www.w3.org/2001/XMLSchema#"
START = 1_772_352_000_000


def quoted(texts: Any, kind: str) -> list[str]:
    """Return literals in N-Triples syntax."""
    return [f'"{text}"^^<{XSD}{kind}>' for text in texts]


def moments(count: int) -> list[str]:
    """Return as many different times, in the form of xsd:dateTime."""
    stamps = (START + np.arange(count)).astype("datetime64[ms]")
    return np.datetime_as_string(stamps, unit="ms", timezone="UTC").tolist()


def columns(count: int) -> dict[str, list[str]]:
    """Return columns of terms; all are different unless the name says otherwise."""
    numbers = np.random.default_rng(7).permutation(count)
    hundredths = [f"{n // 100}.{n % 100:02}1" for n in numbers.tolist()]
    quotients = [f"{n // 3}.{'3' * 30}" for n in numbers.tolist()]
    few = [f"<http://example.org/windpark#T{n % 1000}>" for n in numbers.tolist()]
    return {
        "integer": quoted(numbers, "integer"),
        "double": quoted(hundredths, "double"),
        "decimal": quoted(hundredths, "decimal"),
        "decimal of 34 digits": quoted(quotients, "decimal"),
        "integer and double": quoted(numbers[: count // 2], "integer")
        + quoted(hundredths[count // 2 :], "double"),
        "boolean": quoted(["true", "false"] * (count // 2), "boolean"),
        "dateTime": quoted(moments(count), "dateTime"),
        "date with zone (100)": quoted(
            [f"2026-{1 + n % 10:02}-{10 + n // 10 % 10}Z" for n in numbers.tolist()], "date"
        ),
        "iri (1,000)": few,
        "iri": [f"<http://example.org/reading/{n}>" for n in numbers.tolist()],
        "string": [f'"reading {n}"' for n in numbers.tolist()],
        "string with escapes": [f'"say \\"{n}\\""' for n in numbers.tolist()],
    }


def measure(terms: list[str], repeat: int) -> dict[str, float]:
    """Measure the seconds of four tables of one column, in turns; the best of each counts."""
    dictionary: TermDictionary = TermDictionary()
    ids = dictionary.encode(pa.array(terms))
    assert (ids != 0).all()
    start = START + np.arange(len(ids))
    rows = Batch({"x": ids}, start, start + 60_000)
    decoder = RowDecoder("select", ("x",), dictionary)
    contenders: dict[str, Callable[[], Any]] = {
        "terms": lambda: decoder.table([rows], reports=False),
        "native": lambda: decoder.native_table(rows, reports=False),
        "terms to pandas": lambda: pandas_frame(decoder.table([rows], reports=False)),
        "native to pandas": lambda: pandas_frame(decoder.native_table(rows, False, exact=False)),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeat):
        for name, table in contenders.items():
            before = time.perf_counter()
            table()
            best[name] = min(best[name], time.perf_counter() - before)
    return best


def main() -> None:
    """Print the ratio of terms to native values for each kind of column."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    records = []
    for name, terms in columns(options.rows).items():
        best = measure(terms, options.repeat)
        records.append({"column": name, **best})
        arrow, pandas = (
            best["terms"] / best["native"],
            best["terms to pandas"] / best["native to pandas"],
        )
        print(
            f"{name:>22}  Arrow {arrow:6.2f}x terms ({best['native'] * 1e3:5.0f} ms)"
            f"   pandas {pandas:6.2f}x terms ({best['native to pandas'] * 1e3:5.0f} ms)",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
