"""What a run on Spark measures: the tasks give numbers in place of rows, a small row per slab.

It is the whole run: items are exchanged, slabs computed, rows at borders merged; only what would
leave it at the end is counted and dropped. Numbers travel the way that rows do, so it works over
Spark Connect, too. In a row on its way to the merge (`slab.MERGING`) that has numbers, `border` is
null and `block` is JSON.

When a stage begins and ends is told by the clocks of the workers: slabs begin when all that is
exchanged has come, the merge when all slabs have ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Description
from streamsparql.run.input import RunInput
from streamsparql.run.measured import (
    ItemsRead,
    MeasuredExecution,
    Measurements,
    OperatorMeasures,
    Slab,
    Stage,
    Times,
    items_offered,
)
from streamsparql.run.reports import Reporting
from streamsparql.spark import slab
from streamsparql.spark.cut import Part
from streamsparql.spark.failures import told
from streamsparql.spark.slab import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.spark.engine import SparkRun

Numbers = dict[str, Any]


# -- in the workers --------------------------------------------------------------------------------


def watched_part(task: Task, part: Part, streams: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Computes a part; gives the rows that go to the merge, if there is one, and the numbers."""
    begun, before = time(), perf_counter()
    runs: list[MeasuredExecution] = []
    rows = 0

    def execution(query: CompiledQuery, given: RunInput, **options: Any) -> MeasuredExecution:
        runs.append(MeasuredExecution(query, given, **options))
        return runs[-1]

    for table in slab.together(slab.compute(task, part, streams, execution)):
        rows += table.num_rows
        if task.merges:
            yield from slab.for_merging(task, part, table)
        else:
            for _ in slab.finished(task, table):
                pass
    (run,) = runs
    seconds = perf_counter() - before
    operators = run.measures()
    yield _numbers(
        part.number,
        slab=part.number,
        begun=begun,
        seconds=seconds,
        reading=run.reading,
        computing=run.computing,
        items=items_offered(run.pipeline.operators, operators),
        rows=rows,
        terms=len(run.terms),
        state=run.pipeline.peak,
        operators=[_sent(each) for each in operators],
    )


def watched_merge(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merges what came to a target and counts it; numbers of slabs pass."""
    begun, before = time(), perf_counter()
    rows = target = 0
    held: list[pa.RecordBatch] = []

    def blocks() -> Iterator[pa.RecordBatch]:
        nonlocal target
        for batch in batches:
            for k, border in enumerate(batch.column("border").to_pylist()):
                if border is None:
                    held.append(batch.slice(k, 1))
                else:
                    target = batch.column("target")[k].as_py()
                    yield batch.slice(k, 1)

    for batch in slab.merged(task, blocks()):
        rows += batch.num_rows
    yield from held
    yield _numbers(target, merge=target, begun=begun, seconds=perf_counter() - before, rows=rows)


def _numbers(target: int, **numbers: Any) -> pa.RecordBatch:
    columns = {
        "target": pa.array([target], pa.int32()),
        "border": pa.array([None], pa.bool_()),
        "block": pa.array([json.dumps(numbers).encode()], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _sent(each: OperatorMeasures) -> Numbers:
    """Return an operator and its numbers as JSON."""
    return {**each._asdict(), "description": each.description._asdict()}


def _received(sent: Numbers) -> OperatorMeasures:
    described = sent["description"]
    facts = tuple((name, value) for name, value in described["facts"])
    description = Description(**{**described, "facts": facts})
    lists = {name: tuple(sent[name]) for name in ("inputs", "rows_in")}
    return OperatorMeasures(**{**sent, **lists, "description": description})


# -- in the driver ---------------------------------------------------------------------------------


def measure_on_spark(
    query: CompiledQuery,
    given: RunInput,
    spark: SparkSession | None,
    slabs: int | None,
    report: Reporting | None,
) -> Measurements:
    """Run a query over data on Spark, and return what was measured."""
    from streamsparql.spark.engine import SparkRun
    from streamsparql.spark.sessions import session

    spark = session() if spark is None else spark
    with told():
        before = perf_counter()
        run = SparkRun(spark, query, given, report=report, slabs=slabs)
        looked = perf_counter()
        begun = time()
        batches = run.watched()
        ended = time()
    found = [json.loads(block.as_py()) for batch in batches for block in batch.column("block")]
    parts = sorted((each for each in found if "slab" in each), key=lambda each: each["slab"])
    merges = [each for each in found if "merge" in each]
    stages = _stages(run, looked - before, (begun, ended), parts, merges)
    return _together(query, run, stages, parts, looked - before + ended - begun)


def _stages(
    run: SparkRun,
    looked: float,
    job: tuple[float, float],
    parts: Sequence[Numbers],
    merges: Sequence[Numbers],
) -> tuple[Stage, ...]:
    """The stages in the order of time; those that there are not are left out."""
    items = sum(part["items"] for part in parts)
    rows = sum(part["rows"] for part in parts)
    begun = min((part["begun"] for part in parts), default=job[1])
    ended = max((part["begun"] + part["seconds"] for part in parts), default=job[1])
    found = [Stage("look", looked)]
    if run.exchanges:
        found.append(Stage("exchange", max(begun - job[0], 0.0), items, items))
        found.append(Stage("slabs", max(ended - begun, 0.0), items, rows))
    else:
        found.append(Stage("slabs", max(ended - job[0], 0.0), items, rows))
    if merges:
        given = sum(merge["rows"] for merge in merges)
        found.append(Stage("merge", max(job[1] - ended, 0.0), rows, given))
    return tuple(found)


def _together(
    query: CompiledQuery,
    run: SparkRun,
    stages: tuple[Stage, ...],
    parts: Sequence[Numbers],
    total: float,
) -> Measurements:
    def of(name: str) -> float:
        return float(sum(part[name] for part in parts))

    reading, computing = of("reading"), of("computing")
    writing = max(of("seconds") - reading - computing, 0.0)
    times = Times(total, stages[0].seconds, reading, computing, writing)
    items = int(of("items"))
    span = (run.task.begin, run.task.seen) if run.task.seen >= 0 else None
    return Measurements(
        query,
        "spark",
        _operators([[_received(each) for each in part["operators"]] for part in parts]),
        ItemsRead(items),
        stages[-1].rows_out or 0,
        times,
        max((part["terms"] for part in parts), default=0),
        max((part["state"] for part in parts), default=0),
        span,
        stages,
        tuple(
            Slab(part["slab"], part["items"], part["rows"], part["seconds"], part["state"])
            for part in parts
        ),
        run.described(),
        graph_rejects=len(run.statics.read),
    )


def _operators(parts: Sequence[Sequence[OperatorMeasures]]) -> tuple[OperatorMeasures, ...]:
    """The operators of all slabs together; all slabs run the same plan."""
    total = sum(each.seconds for part in parts for each in part)
    found = []
    for same in zip(*parts, strict=True):
        seconds = sum(each.seconds for each in same)
        found.append(
            same[0]._replace(
                rows_in=tuple(map(sum, zip(*(each.rows_in for each in same), strict=True))),
                rows_out=sum(each.rows_out for each in same),
                steps=sum(each.steps for each in same),
                state=max(each.state for each in same),
                seconds=seconds,
                share=seconds / total if total else 0.0,
            )
        )
    return tuple(found)
