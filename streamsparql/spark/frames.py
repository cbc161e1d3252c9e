"""A caller's DataFrame as a stream: what Catalyst does before the items go to the exchange.

Spark's own engine runs what needs no state: it picks and converts the columns, and filters by the
constants of the query's patterns and by time, which reaches down into Parquet files. It packs
nothing: rows become blocks in the first Python stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra import window as w
from streamsparql.algebra.graph import Describe
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.partition import positions_read, reads_stream
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.operator import INFINITY
from streamsparql.sources import read_stream
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.stamps import of_column
from streamsparql.sources.tables import UNREAD, VOUCHED, constant, roles
from streamsparql.spark.cut import TimeHistogram
from streamsparql.spark.exchange import ITEMS, PACK, Need, blocks_of, gathered
from streamsparql.spark.stream_inputs import Frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

QUANTILES = 512
ACCURACY = 5_000
TERMS = ("subject", "predicate", "object")
SEQUENCE = "sequence"


def patterns_over(plan: Plan, stream: str) -> tuple[TriplePattern, ...] | None:
    """The patterns that read a stream; None where something else needs all its items.

    >>> from streamsparql.algebra.rules.sketch import streamed
    >>> [str(pattern.predicate) for pattern in patterns_over(streamed("?x p ?y"), "s")]
    ['<p>']
    """
    found: dict[TriplePattern, None] = {}
    for node in plan.walk():
        if isinstance(node, Path | Describe) and reads_stream(node, stream):
            return None
        if isinstance(node, TriplePatternMatching) and reads_stream(node, stream):
            if any(isinstance(below, w.ElementWindow) for below in node.input.walk()):
                return None
            found[node.pattern] = None
    return tuple(found)


def look_at_frame(name: str, frame: DataFrame, plan: Plan, strict: bool = False) -> Frame:
    """A DataFrame as a stream; one job finds out when its items come.

    Its columns are those of any table (`streamsparql.sources.tables`), and perhaps `sequence`,
    which orders items of one timestamp. Terms must be strings; IRIs with escapes keep Spark from
    filtering by them, so the job looks for those too. Where reading is `strict`, what has no
    timestamp is an error, and nothing is filtered: each term is looked at.
    """
    from pyspark.sql import functions

    part = roles(frame.columns, Encoder(f"<{name}>", TermDictionary()), True)
    stamped = part.get("t", part.get("end", ""))
    columns = [_text(frame, part[role], as_, name) for role, as_ in zip("spo", TERMS, strict=True)]
    sequence = next((c for c in frame.columns if c.lower() == SEQUENCE), None)
    if sequence is not None:
        columns.append(frame[_quoted(sequence)].cast("long").alias(SEQUENCE))
    whole = frame.select(*columns[:3], frame[_quoted(stamped)].alias("timestamp"))
    items = _timed(frame, stamped, columns, name)
    timed = functions.coalesce(functions.col("timestamp") >= 0, functions.lit(False))
    if strict and items.where(~timed).limit(1).count():
        raise SourceError(f"<{name}>: a row of the DataFrame has no timestamp that can be used")
    items = items.where(timed)
    patterns = None if strict else patterns_over(plan, name)
    rows, least, most, sample, escaped = _surveyed(items, _constants(patterns or ()))
    constants: tuple[str, ...] = ()
    if patterns and not escaped:
        items = items.where(_matching(patterns))
        found = {pattern.predicate for pattern in patterns}
        if all(isinstance(predicate, IRI) for predicate in found):
            constants = tuple(sorted(map(str, found)))
            items = items.withColumn("predicate", _code(constants))
    looked_at = {"s", "p", "o"} if strict else positions_read(plan, name)
    unread = [as_ for role, as_ in zip("spo", TERMS, strict=True) if role not in looked_at]
    items = items.drop(*(as_ for as_ in unread if _is_vouched(frame, part[as_[0]])))
    spread = TimeHistogram.of_samples([np.array(sample, np.int64)], [rows])
    return Frame(name, spread, least, most, items, whole, sequence is not None, constants)


SAMPLED = 0.02
ENOUGH = 1_000_000
"""Of frames with so many rows, quantiles are taken of a sample."""


def _surveyed(items: DataFrame, columns: Sequence[str]) -> tuple[int, int, int, list[int], bool]:
    """How many items there are, the first and the last timestamp and some between, and whether
    terms in these columns are escaped."""  # fmt: skip
    from pyspark.sql import functions

    t = functions.col("timestamp")
    backslash = functions.lit("\\")
    escapes = [functions.bool_or(functions.contains(functions.col(c), backslash)) for c in columns]
    ends = items.agg(functions.count(t), functions.min(t), functions.max(t), *escapes)
    rows, least, most, *found = tuple(ends.collect()[0])
    if not rows:
        return 0, INFINITY, -1, [], False
    some = items if rows < ENOUGH else items.where(functions.rand(7) < SAMPLED)
    quantiles = [k / QUANTILES for k in range(QUANTILES + 1)]
    sample = some.agg(functions.percentile_approx(t, quantiles, ACCURACY)).collect()[0][0]
    return rows, least, most, [least, *(sample or ()), most], any(found)


def _code(constants: Sequence[str]) -> Column:
    """The number of a predicate: numbers travel faster than texts."""
    from pyspark.sql import functions

    predicate = functions.col("predicate")
    found = functions.when(predicate == constants[0], 0)
    for number, text in enumerate(constants[1:], 1):
        found = found.when(predicate == text, number)
    return found.cast("int")


def _is_vouched(frame: DataFrame, column: str) -> bool:
    """Whether a column holds nothing but terms: one of files that `prepare` has made."""
    return frame.schema[column].metadata.get(VOUCHED) == "terms"


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _text(frame: DataFrame, column: str, as_: str, name: str) -> Column:
    kind = dict(frame.dtypes)[column]
    if kind != "string":
        raise SourceError(f"<{name}>: the column {column} holds {kind}, not terms as text")
    return frame[_quoted(column)].alias(as_)


def _timed(frame: DataFrame, column: str, others: Sequence[Column], name: str) -> DataFrame:
    """The columns with the timestamp in milliseconds."""
    from pyspark.sql import functions

    kind, stamp = dict(frame.dtypes)[column], frame[_quoted(column)]
    if kind in ("bigint", "int", "smallint", "tinyint"):
        return frame.select(*others, stamp.cast("long").alias("timestamp"))
    if kind == "timestamp":
        return frame.select(*others, functions.unix_millis(stamp).alias("timestamp"))
    if kind == "timestamp_ntz":
        epoch = functions.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        since = functions.timestamp_diff("MILLISECOND", epoch, stamp)
        return frame.select(*others, since.alias("timestamp"))
    if kind != "string":
        raise SourceError(f"<{name}>: the column {column} holds {kind}, not timestamps")
    texts = frame.select(*others, stamp.alias("timestamp"))
    kinds = ", ".join(f"{c} {'string' if c in TERMS else 'long'}" for c in texts.columns)
    return texts.mapInArrow(_stamped, kinds)


def _stamped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The items with the timestamps that texts mean; -1 where one means none."""
    for batch in batches:
        place = batch.schema.names.index("timestamp")
        stamps = pa.array(of_column(batch.column(place))[0], pa.int64())
        columns = [*batch.columns[:place], stamps, *batch.columns[place + 1 :]]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _constants(patterns: Sequence[TriplePattern]) -> list[str]:
    """The columns that patterns ask for an IRI in."""
    found = {n for p in patterns for n, x in zip(TERMS, p, strict=True) if isinstance(x, IRI)}
    return sorted(found)


def _matching(patterns: Sequence[TriplePattern]) -> Column:
    """Whether an item has the IRIs of some pattern."""
    from pyspark.sql import functions

    found: Column = functions.lit(False)
    for pattern in patterns:
        its: Column = functions.lit(True)
        for name, place in zip(TERMS, pattern, strict=True):
            if isinstance(place, IRI):
                its = its & (functions.col(name) == functions.lit(str(place)))
        found = found | its
    return found


# -- In tasks -----------------------------------------------------------------------------------


def pack_frame(
    need: Need,
    stream: int,
    normal: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.Table]] | None,
    predicates: Sequence[str],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame, packed for the parts that need them.

    Where terms are compared by their texts, they are brought to their `normal` form first.
    """
    if normal is not None:
        tables = normal(batches)
    else:
        tables = (items_of_batch(batch, predicates) for batch in larger(batches))
    yield from blocks_of(need, stream, tables)


def larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are worth a dictionary."""
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    for table in gathered(tables, PACK):
        yield from table.to_batches()


def items_of_batch(batch: pa.RecordBatch, predicates: Sequence[str]) -> pa.Table:
    """The rows as items; their predicates may be numbers of these, and what is unread missing."""
    names, rows = batch.schema.names, batch.num_rows
    made: dict[str, Any] = {}
    for name in TERMS:
        if name not in names:
            made[name] = constant(UNREAD, rows)
        elif name == "predicate" and predicates:
            texts = pa.array(predicates, pa.string())
            made[name] = pa.DictionaryArray.from_arrays(batch.column(name), texts)
        else:
            made[name] = batch.column(name).dictionary_encode()
    made["timestamp"] = batch.column("timestamp")
    zeros = np.zeros(rows, np.int64)
    made["sequence"] = batch.column(SEQUENCE).fill_null(0) if SEQUENCE in names else zeros
    return pa.table(made).cast(ITEMS)


def normal_items(
    name: str, predicates: Sequence[str], strict: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.Table]:
    """The rows that are items, their terms in normal form."""
    terms = TermDictionary()
    for batch in batches:
        items = items_of_batch(batch, predicates)
        for chunk in read_stream(items.drop_columns(["sequence"]), name, terms, strict=strict):
            rows = chunk.positions if chunk.kept is None else chunk.positions[chunk.kept]
            columns = [terms.dictionary(ids) for ids in (chunk.s, chunk.p, chunk.o)]
            sequence = items.column("sequence").take(pa.array(rows - 1))
            yield pa.table([*columns, chunk.end, sequence], schema=ITEMS)
        if terms.due():
            terms.recycle([])
