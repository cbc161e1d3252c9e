"""A caller's DataFrame as a stream, which Catalyst selects and filters before the exchange.

Spark's own engine does the stateless part: it selects and converts columns, and filters by the
constants of the query's patterns and by time, which it pushes down into Parquet files. Rows become
blocks in the first Python stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra import window as w
from streamsparql.algebra.event import reads_events
from streamsparql.algebra.graph import Describe
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.partition import positions_read, reads_stream
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.sources import read_stream
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.stamps import RecognisedUnit, StampReader
from streamsparql.sources.tables import TERMS_KEY, UNREAD, constant_column, roles
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.exchange import (
    EVENT_SCHEMA,
    ITEM_SCHEMA,
    PACK,
    Need,
    pack_blocks,
    rebatch,
)
from streamsparql.spark.stream_inputs import FrameInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from streamsparql.spark.entailment import KnownSchema

QUANTILES = 512
ACCURACY = 5_000
"""The accuracy of Spark's `percentile_approx`."""
TERMS = ("subject", "predicate", "object")
SEQUENCE = "sequence"


def patterns_over(
    plan: Plan, stream: str, schema: KnownSchema | None = None
) -> tuple[TriplePattern, ...] | None:
    """Return the patterns that read a stream; None if anything else needs all its items.

    With a schema, return the patterns of items that entail a match.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> [str(pattern.predicate) for pattern in patterns_over(streamed("?x p ?y"), "s")]
    ['<p>']
    """
    patterns: dict[TriplePattern, None] = {}
    for node in plan.walk():
        if isinstance(node, Path | Describe) and reads_stream(node, stream):
            return None
        if isinstance(node, TriplePatternMatching) and reads_stream(node, stream):
            if any(isinstance(below, w.ElementWindow) for below in node.input.walk()):
                return None
            patterns[node.pattern] = None
    return tuple(patterns) if schema is None else schema.entailing(tuple(patterns))


def survey_frame(
    name: str,
    frame: DataFrame,
    plan: Plan,
    run_input: RunInput,
    schema: KnownSchema | None = None,
) -> FrameInput:
    """Return a DataFrame as a stream; a job surveys the timestamps of its items.

    Its columns are those of any table (`streamsparql.sources.tables`), and optionally `sequence`,
    which orders items of one timestamp. Terms must be strings. Spark cannot filter by IRIs where
    the data has escapes, so the job looks for escapes, too. With `strict`, a missing timestamp is
    an error, and nothing is filtered, as each term must be checked. The rows have no order, so the
    least timestamp decides on the unit of numbers.
    """
    from pyspark.sql import functions

    strict = run_input.strict
    reading = run_input.reading_of(name)
    if reading.stamps.zone is not None:
        raise SourceError(
            f"<{name}>: time_zone does not apply to a DataFrame; convert its times with"
            " to_utc_timestamp, or set Spark's session time zone"
        )
    part = roles(frame.columns, Encoder(f"<{name}>", TermDictionary(), reading=reading), True)
    times = {as_: part[role] for role, as_ in _TIMES.items() if role in part}
    stamped = part.get("t", part.get("end", ""))
    columns = [
        _term_column(frame, part[role], as_, name) for role, as_ in zip("spo", TERMS, strict=True)
    ]
    sequence = next((c for c in frame.columns if c.lower() == SEQUENCE), None)
    if sequence is not None:
        columns.append(frame[_quoted(sequence)].cast("long").alias(SEQUENCE))
    as_read = [
        frame[_quoted(part[role])].alias("timestamp" if role == "t" else role)
        for role in _TIMES
        if role in part
    ]
    whole = frame.select(*columns[:3], *as_read)
    unit, recognised = _unit_of(frame, stamped, reading.stamps)
    items = _with_milliseconds(frame, times, columns, name, unit)
    valid = functions.col("timestamp") >= 0
    if "start" in times:
        start = functions.col("start")
        valid = valid & (start >= 0) & (start <= functions.col("timestamp"))
    timed = functions.coalesce(valid, functions.lit(False))
    if strict and items.where(~timed).limit(1).count():
        raise SourceError(f"<{name}>: a row of the DataFrame has no valid timestamp")
    items = items.where(timed)
    patterns = None if strict else patterns_over(plan, name, schema)
    rows, least, most, sample, escaped = _survey(items, _constant_columns(patterns or ()))
    constants: tuple[str, ...] = ()
    if patterns and not escaped:
        items = items.where(_match_condition(patterns))
        predicates = {pattern.predicate for pattern in patterns}
        if all(isinstance(predicate, IRI) for predicate in predicates):
            constants = tuple(sorted(map(str, predicates)))
            items = items.withColumn("predicate", _predicate_number(constants))
    read = {"s", "p", "o"} if strict else positions_read(plan).get(name, frozenset())
    unread = [as_ for role, as_ in zip("spo", TERMS, strict=True) if role not in read]
    items = items.drop(*(as_ for as_ in unread if _has_only_terms(frame, part[as_[0]])))
    if not reads_events(plan):
        items = items.drop("start")
    elif "start" not in times:
        items = items.withColumn("start", functions.col("timestamp"))
    histogram = TimeHistogram.of_samples([np.array(sample, np.int64)], [rows])
    return FrameInput(
        *(name, histogram, least, most, items, whole),
        *(sequence is not None, constants, unit, recognised),
    )


SAMPLE_FRACTION = 0.02
SAMPLE_FROM = 1_000_000
"""The number of rows from which quantiles are computed over a sample."""


def _survey(items: DataFrame, columns: Sequence[str]) -> tuple[int, int, int, list[int], bool]:
    """Survey the items with two jobs; `columns` are those in which patterns have IRIs.

    Return the number of items, the least and the greatest timestamp, quantiles, and whether terms
    in `columns` have escapes.
    """
    from pyspark.sql import functions

    t = functions.col("timestamp")
    backslash = functions.lit("\\")
    escapes = [functions.bool_or(functions.contains(functions.col(c), backslash)) for c in columns]
    ends = items.agg(functions.count(t), functions.min(t), functions.max(t), *escapes)
    rows, least, most, *escaped = tuple(ends.collect()[0])
    if not rows:
        return 0, INFINITY, -1, [], False
    few = rows < SAMPLE_FROM
    sampled = items if few else items.where(functions.rand(7) < SAMPLE_FRACTION)
    quantiles = [k / QUANTILES for k in range(QUANTILES + 1)]
    sample = sampled.agg(functions.percentile_approx(t, quantiles, ACCURACY)).collect()[0][0]
    return rows, least, most, [least, *(sample or ()), most], any(escaped)


def _predicate_number(constants: Sequence[str]) -> Column:
    """Return the column of the predicates' numbers, which travel faster than strings."""
    from pyspark.sql import functions

    predicate = functions.col("predicate")
    numbers = functions.when(predicate == constants[0], 0)
    for number, text in enumerate(constants[1:], 1):
        numbers = numbers.when(predicate == text, number)
    return numbers.cast("int")


def _has_only_terms(frame: DataFrame, column: str) -> bool:
    """Return whether a column is known to contain only terms, as in files that `prepare` wrote."""
    return frame.schema[column].metadata.get(TERMS_KEY) == "terms"


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _term_column(frame: DataFrame, column: str, as_: str, name: str) -> Column:
    kind = dict(frame.dtypes)[column]
    if kind != "string":
        raise SourceError(f"<{name}>: column {column} has type {kind}; terms must be strings")
    return frame[_quoted(column)].alias(as_)


_INTEGERS = ("bigint", "int", "smallint", "tinyint")


def _unit_of(
    frame: DataFrame, column: str, stamps: StampReader
) -> tuple[str, RecognisedUnit | None]:
    """Return the unit of the numbers in a column of timestamps, and whether it was recognised."""
    from pyspark.sql import functions

    if stamps.unit is not None or dict(frame.dtypes)[column] not in _INTEGERS:
        return stamps.unit or "ms", None
    stamp = frame[_quoted(column)].cast("long")
    least = frame.where(stamp >= 0).agg(functions.min(stamp)).collect()[0][0]
    if least is not None:
        stamps.stamp_of(least)
    return stamps.unit or "ms", stamps.recognised


_TIMES = {"t": "timestamp", "start": "start", "end": "timestamp"}
"""The columns with the times of items, by their role."""


def _with_milliseconds(
    frame: DataFrame, times: Mapping[str, str], others: Sequence[Column], name: str, unit: str
) -> DataFrame:
    """Return the other columns, and columns of times in milliseconds with new names."""
    converted = {as_: _milliseconds(frame, column, name, unit) for as_, column in times.items()}
    stamps = [
        (frame[_quoted(times[as_])] if column is None else column).alias(as_)
        for as_, column in converted.items()
    ]
    items = frame.select(*others, *stamps)
    texts = [as_ for as_, column in converted.items() if column is None]
    if not texts:
        return items
    kinds = ", ".join(f"{c} {'string' if c in TERMS else 'long'}" for c in items.columns)
    return items.mapInArrow(partial(_parse_timestamps, unit, texts), kinds)


def _milliseconds(frame: DataFrame, column: str, name: str, unit: str) -> Column | None:
    """Return a column of times in milliseconds; None if Spark cannot convert it."""
    from pyspark.sql import functions

    kind, stamp = dict(frame.dtypes)[column], frame[_quoted(column)]
    if kind in _INTEGERS:
        return {
            "s": stamp.cast("long") * 1000,
            "ms": stamp.cast("long"),
            "us": functions.expr(f"{_quoted(column)} div 1000"),  # exact, unlike a quotient
            "ns": functions.expr(f"{_quoted(column)} div 1000000"),
        }[unit]
    if kind == "timestamp":
        return functions.unix_millis(stamp)
    if kind == "timestamp_ntz":
        epoch = functions.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        return functions.timestamp_diff("MILLISECOND", epoch, stamp)
    if kind.partition("(")[0] not in ("string", "double", "float", "decimal", "date"):
        raise SourceError(
            f"<{name}>: column {column} has type {kind}; timestamps must be numbers, strings, dates"
            " or timestamps"
        )
    return None


def _parse_timestamps(
    unit: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Replace timestamps of any type by milliseconds, as a source does, and invalid ones by -1."""
    reader = StampReader(unit)
    for batch in batches:
        for name in names:
            place = batch.schema.names.index(name)
            stamps = pa.array(reader.of_column(batch.column(place))[0], pa.int64())
            batch = batch.set_column(place, name, stamps)
        yield batch


def _constant_columns(patterns: Sequence[TriplePattern]) -> list[str]:
    """Return the columns in which any pattern has an IRI."""
    columns = {n for p in patterns for n, x in zip(TERMS, p, strict=True) if isinstance(x, IRI)}
    return sorted(columns)


def _match_condition(patterns: Sequence[TriplePattern]) -> Column:
    """Return the condition that an item has the IRIs of one of the patterns."""
    from pyspark.sql import functions

    matches_any: Column = functions.lit(False)
    for pattern in patterns:
        matches: Column = functions.lit(True)
        for name, place in zip(TERMS, pattern, strict=True):
            if isinstance(place, IRI):
                matches = matches & (functions.col(name) == functions.lit(str(place)))
        matches_any = matches_any | matches
    return matches_any


# -- In tasks -----------------------------------------------------------------------------------


def pack_frame(
    need: Need,
    stream: int,
    normal: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.Table]] | None,
    predicates: Sequence[str],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Pack the rows of a DataFrame into blocks for the parts that need them.

    `normal` reads rows as items with terms in normal form, where terms are compared as strings.
    """
    if normal is not None:
        tables = normal(batches)
    else:
        tables = (items_of_batch(batch, predicates) for batch in larger_batches(batches))
    yield from pack_blocks(need, stream, tables)


def larger_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that are large enough for dictionary encoding."""
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    for table in rebatch(tables, PACK):
        yield from table.to_batches()


def items_of_batch(batch: pa.RecordBatch, predicates: Sequence[str]) -> pa.Table:
    """Return rows of a DataFrame as items of `ITEM_SCHEMA`.

    With `predicates`, the column of predicates has numbers in this list. Columns that the query
    does not read may be missing.
    """
    names, rows = batch.schema.names, batch.num_rows
    columns: dict[str, Any] = {}
    for name in TERMS:
        if name not in names:
            columns[name] = constant_column(UNREAD, rows)
        elif name == "predicate" and predicates:
            texts = pa.array(predicates, pa.string())
            columns[name] = pa.DictionaryArray.from_arrays(batch.column(name), texts)
        else:
            columns[name] = batch.column(name).dictionary_encode()
    columns["timestamp"] = batch.column("timestamp")
    zeros = np.zeros(rows, np.int64)
    columns["sequence"] = batch.column(SEQUENCE).fill_null(0) if SEQUENCE in names else zeros
    if "start" not in names:
        return pa.table(columns).cast(ITEM_SCHEMA)
    columns["start"] = batch.column("start")
    return pa.table(columns).select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)


def normal_items(
    name: str, predicates: Sequence[str], strict: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.Table]:
    """Yield the rows of a DataFrame that are valid items, with their terms in normal form."""
    terms = TermDictionary()
    for batch in batches:
        items = items_of_batch(batch, predicates)
        events = "start" in items.column_names
        schema = EVENT_SCHEMA if events else ITEM_SCHEMA
        source = items.drop_columns(["sequence"])
        if events:
            source = source.rename_columns([*TERMS, "start", "end"])
        for chunk in read_stream(source, name, terms, strict=strict):
            rows = chunk.positions if chunk.kept is None else chunk.positions[chunk.kept]
            columns = [terms.dictionary(ids) for ids in (chunk.s, chunk.p, chunk.o)]
            sequence = items.column("sequence").take(pa.array(rows - 1))
            times = [chunk.start, chunk.end] if events else [chunk.end]
            yield pa.table([*columns, *times, sequence], schema=schema)
        if terms.due():
            terms.recycle([])
