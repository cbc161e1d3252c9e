"""The plans of a session in a checkpoint: which operators they share, and rows not yet read.

The operators are not saved: plans are lowered again, and take the places of the saved ones. So a
plan that another version of the package lowers differently is refused. The readers of plans are
numbered by query, in the order of the queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsparql.algebra.sharing import bind
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.outputs import OutputStream, Since
from streamsparql.physical.state.parts import table_of_arrays
from streamsparql.run.checkpoint.tables import TableFolder
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.routing import Emission, RoutedRows
from streamsparql.run.session_engine import SessionEngine
from streamsparql.run.shared_plan import Shape, SharedPlan

Readers = Sequence[PlanReader]
"""All readers, in the order of the queries; plans name them by their places."""


def save_plans(
    engine: SessionEngine, plans: Sequence[SharedPlan], readers: Readers, tables: TableFolder
) -> list[dict[str, Any]]:
    """Return plans, those that run first, and add their tables and those of the pipeline."""
    tables.put_all("pipeline", engine.pipeline.save())
    number_of = {operator: k for k, operator in enumerate(engine.pipeline.operators)}
    place_of = {reader: k for k, reader in enumerate(readers)}
    return [
        _save_plan(engine, plan, place_of, number_of, tables.inside(f"plans/{k}"))
        for k, plan in enumerate(plans)
    ]


def _save_plan(
    engine: SessionEngine,
    plan: SharedPlan,
    place_of: Mapping[PlanReader, int],
    number_of: Mapping[Operator, int],
    tables: TableFolder,
) -> dict[str, Any]:
    running = plan in engine.plans
    numbers = np.fromiter(plan.numbers, np.int64, len(plan.numbers))
    owners = np.array([place_of[reader] for reader in plan.numbers.values()], np.int64)
    tables.put("numbers", table_of_arrays({"number": numbers, "reader": owners}))
    emissions = plan.outbox.emissions.since(0)
    for k, emission in enumerate(emissions):
        tables.put_rows(f"emissions/{k}", emission.rows)
    if plan.ahead is not None:
        tables.put_rows("ahead", plan.ahead)
    output = plan.shape.output if running else None
    return {
        "running": running,
        "fixed": [*plan.fixed],
        "tabled": plan.table is not None,
        "since": plan.since,
        "begin": plan.begin,
        "lowered_since": _lowered_since(plan),
        "root": number_of.get(plan.operators.sink),
        "fed": None if output is None else number_of[engine.outputs[output].access()],
        "readers": [place_of[reader] for reader in plan.readers],
        "with_rest": [place_of[reader] for reader in plan.with_rest if reader in place_of],
        "fresh": plan.fresh,
        "ahead": plan.ahead is not None,
        "cuts": [plan.since_cut, plan.rows_cut],
        "collected": plan.collected,
        "emissions": [_save_emission(emission, place_of) for emission in emissions],
        "emitted": plan.outbox.emissions.begin,
        "instants": [plan.outbox.instants.begin, plan.outbox.instants.since(0)],
    }


def _lowered_since(plan: SharedPlan) -> dict[str, int]:
    """Return the stamps from which on the plan reads the items of streams, where it skips some."""
    since: dict[str, int] = {}
    pending, seen = [plan.operators.sink], set[Operator]()
    while pending:
        operator: Operator = pending.pop()
        if isinstance(operator, Since):
            (stream,) = operator.inputs
            assert isinstance(stream, StreamAccess | OutputStream)
            since[stream.stream] = operator.since
        elif operator not in seen and not isinstance(operator, OutputStream):
            seen.add(operator)
            pending += operator.inputs  # type: ignore[arg-type]
    return since


def _save_emission(
    emission: Emission[PlanReader], place_of: Mapping[PlanReader, int]
) -> dict[str, Any]:
    if emission.divided:
        parts = {place_of[reader]: parts for reader, parts in emission.parts.items()}
        return {"parts": [[place, own] for place, own in parts.items()], "owners": None}
    owners = emission.owners
    return {"parts": None, "owners": owners and [place_of[reader] for reader in owners]}


# -- Restoring -------------------------------------------------------------------------------------


def restore_rows(
    plan: SharedPlan, saved: Mapping[str, Any], readers: Readers, tables: TableFolder
) -> None:
    """Restore the readers of a plan, and the rows that they have not read."""
    for place in saved["readers"]:
        plan.join(readers[place])
    plan.with_rest.update((readers[place], None) for place in saved["with_rest"])
    numbers, owners = (tables.get("numbers")[name].to_pylist() for name in ("number", "reader"))
    of_number = {n: readers[place] for n, place in zip(numbers, owners, strict=True)}
    plan.restore(of_number, tuple(saved["collected"]))
    plan.fresh = saved["fresh"]
    plan.since_cut, plan.rows_cut = saved["cuts"]
    emissions = []
    for k, each in enumerate(saved["emissions"]):
        rows = tables.rows(f"emissions/{k}", *plan.names)
        owners = each["owners"]
        of_all = None if owners is None else [readers[place] for place in owners]
        emission = Emission[PlanReader](rows, plan.owner_of, of_all)
        if each["parts"] is not None:
            emission.restore(
                {readers[place]: [RoutedRows(*p) for p in own] for place, own in each["parts"]}
            )
        emissions.append(emission)
    if saved["ahead"]:
        plan.ahead = tables.rows("ahead", *plan.names)
    plan.outbox.emissions.restore(saved["emitted"], emissions)
    plan.outbox.instants.restore(*saved["instants"])


def bound_shape(shape: Shape, terms: Mapping[str, Any]) -> Shape:
    """Return the shape of an instance that has a plan of its own."""
    bound = {name: term for name, term in terms.items() if term is not None}
    return shape._replace(skeleton=bind(shape.skeleton, bound))
