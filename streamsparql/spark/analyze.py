"""Measurements of a run on Spark: tasks emit a small row of numbers per slab instead of rows.

The run is complete: items are exchanged, slabs computed, rows at borders merged. Only the rows of
the result are counted and discarded instead of returned. The numbers travel in the same DataFrames
as rows, so this works over Spark Connect, too. In a row of `slab.MERGE_SCHEMA` with numbers,
`border` is null and `block` is JSON.

The clocks of the workers determine when stages begin and end: slabs begin when the exchange has
ended, the merge begins when all slabs have ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamsparql.compiled import CompiledQuery
from streamsparql.display import Description
from streamsparql.physical.state.probe_orders import TakenOrder, added_orders
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
from streamsparql.spark.cut import TaskPart
from streamsparql.spark.failures import raising_task_errors
from streamsparql.spark.slab import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamsparql.spark.engine import SparkRun

TaskNumbers = dict[str, Any]
"""The measurements of a task, as JSON."""


# -- in the workers --------------------------------------------------------------------------------


def measure_part(
    task: Task, part: TaskPart, streams: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Compute a part; yield the rows for the merge, if there is one, and then the numbers."""
    begun, before = time(), perf_counter()
    runs: list[MeasuredExecution] = []
    rows = 0

    def execution(query: CompiledQuery, run_input: RunInput, **options: Any) -> MeasuredExecution:
        runs.append(MeasuredExecution(query, run_input, **options))
        return runs[-1]

    for table in slab.combine_output(slab.compute_part(task, part, streams, execution)):
        rows += table.num_rows
        if task.merges:
            yield from slab.merge_input(task, part, table)
        else:
            for _ in slab.result_batches(task, table):
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
        operators=[_as_json(each) for each in operators],
    )


def measure_merge(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the rows of a target and count them; pass the numbers of slabs through."""
    begun, before = time(), perf_counter()
    rows = target = 0
    numbers: list[pa.RecordBatch] = []

    def blocks() -> Iterator[pa.RecordBatch]:
        nonlocal target
        for batch in batches:
            for k, border in enumerate(batch.column("border").to_pylist()):
                if border is None:
                    numbers.append(batch.slice(k, 1))
                else:
                    target = batch.column("target")[k].as_py()
                    yield batch.slice(k, 1)

    for batch in slab.merge_blocks(task, blocks()):
        rows += batch.num_rows
    yield from numbers
    yield _numbers(target, merge=target, begun=begun, seconds=perf_counter() - before, rows=rows)


def _numbers(target: int, **numbers: Any) -> pa.RecordBatch:
    columns = {
        "target": pa.array([target], pa.int32()),
        "border": pa.array([None], pa.bool_()),
        "block": pa.array([json.dumps(numbers).encode()], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _as_json(each: OperatorMeasures) -> TaskNumbers:
    """Return an operator's measures as JSON."""
    return {**each._asdict(), "description": each.description._asdict()}


def _from_json(sent: TaskNumbers) -> OperatorMeasures:
    described = sent["description"]
    facts = tuple((name, value) for name, value in described["facts"])
    description = Description(**{**described, "facts": facts})
    lists = {name: tuple(sent[name]) for name in ("inputs", "rows_in")}
    orders = tuple(TakenOrder(tuple(order), rows) for order, rows in sent["orders"])
    return OperatorMeasures(**{**sent, **lists, "description": description, "orders": orders})


# -- in the driver ---------------------------------------------------------------------------------


def measure_on_spark(
    query: CompiledQuery,
    run_input: RunInput,
    spark: SparkSession | None,
    slabs: int | None,
    report: Reporting | None,
) -> Measurements:
    """Run a query over data on Spark, and return the measurements.

    Without a session, `session` finds or creates one.
    """
    from streamsparql.spark.engine import SparkRun
    from streamsparql.spark.sessions import session

    spark = session() if spark is None else spark
    with raising_task_errors():
        before = perf_counter()
        run = SparkRun(spark, query, run_input, report=report, slabs=slabs)
        surveyed = perf_counter()
        begun = time()
        batches = run.measure()
        ended = time()
    numbers = [json.loads(block.as_py()) for batch in batches for block in batch.column("block")]
    parts = sorted((each for each in numbers if "slab" in each), key=lambda each: each["slab"])
    merges = [each for each in numbers if "merge" in each]
    stages = _stages(run, surveyed - before, (begun, ended), parts, merges)
    return _measurements(query, run, stages, parts, surveyed - before + ended - begun)


def _stages(
    run: SparkRun,
    survey_seconds: float,
    job: tuple[float, float],
    parts: Sequence[TaskNumbers],
    merges: Sequence[TaskNumbers],
) -> tuple[Stage, ...]:
    """Return the stages that ran, in order of time; `job` is when the job began and ended."""
    items = sum(part["items"] for part in parts)
    rows = sum(part["rows"] for part in parts)
    begun = min((part["begun"] for part in parts), default=job[1])
    ended = max((part["begun"] + part["seconds"] for part in parts), default=job[1])
    stages = [Stage("survey", survey_seconds)]
    if run.exchanges:
        stages.append(Stage("exchange", max(begun - job[0], 0.0), items, items))
        stages.append(Stage("slabs", max(ended - begun, 0.0), items, rows))
    else:
        stages.append(Stage("slabs", max(ended - job[0], 0.0), items, rows))
    if merges:
        rows_out = sum(merge["rows"] for merge in merges)
        stages.append(Stage("merge", max(job[1] - ended, 0.0), rows, rows_out))
    return tuple(stages)


def _measurements(
    query: CompiledQuery,
    run: SparkRun,
    stages: tuple[Stage, ...],
    parts: Sequence[TaskNumbers],
    total: float,
) -> Measurements:
    def total_of(name: str) -> float:
        return float(sum(part[name] for part in parts))

    reading, computing = total_of("reading"), total_of("computing")
    writing = max(total_of("seconds") - reading - computing, 0.0)
    times = Times(total, stages[0].seconds, reading, computing, writing)
    items = int(total_of("items"))
    span = (run.task.begin, run.task.seen) if run.task.seen >= 0 else None
    return Measurements(
        query,
        "spark",
        _operators([[_from_json(each) for each in part["operators"]] for part in parts]),
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
        graph_rejects=len(run.statics.driver_rejects),
    )


def _operators(parts: Sequence[Sequence[OperatorMeasures]]) -> tuple[OperatorMeasures, ...]:
    """Return the operators with the measures of all slabs, which run the same plan."""
    total = sum(each.seconds for part in parts for each in part)
    operators = []
    for same in zip(*parts, strict=True):
        seconds = sum(each.seconds for each in same)
        operators.append(
            same[0]._replace(
                rows_in=tuple(map(sum, zip(*(each.rows_in for each in same), strict=True))),
                rows_out=sum(each.rows_out for each in same),
                steps=sum(each.steps for each in same),
                state=max(each.state for each in same),
                seconds=seconds,
                share=seconds / total if total else 0.0,
                orders=added_orders(each.orders for each in same),
            )
        )
    return tuple(operators)
