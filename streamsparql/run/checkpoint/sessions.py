"""Sessions in a checkpoint: their queries, instances and plans, with all that these retain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.terms import Term
from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.pipeline import SavedPlans
from streamsparql.run.checkpoint.file import Checkpoint
from streamsparql.run.checkpoint.inputs import (
    restore_open,
    restored_graphs,
    restored_input,
    restored_query,
    save_graphs,
    save_input,
    save_open,
    save_query,
    save_terms,
    saved_terms,
)
from streamsparql.run.checkpoint.plans import bound_shape, restore_rows, save_plans
from streamsparql.run.checkpoint.streams import (
    restore_needs,
    restore_session_stream,
    restored_batches,
    save_batches,
    save_session_stream,
)
from streamsparql.run.checkpoint.tables import TableFolder
from streamsparql.run.instances import Instances
from streamsparql.run.plan_reader import PlanReader
from streamsparql.run.registered import Registered
from streamsparql.run.registration import Registration
from streamsparql.run.reports import Reporting
from streamsparql.run.session_engine import SessionEngine
from streamsparql.run.shared_plan import Shape, SharedPlan
from streamsparql.sources.chunk import restored_reject, saved_reject

if TYPE_CHECKING:
    from streamsparql.run.session import Session

WHOLE_SESSION = "session"
"""The kind of a checkpoint of a session."""


def save_session(session: Session) -> Checkpoint:
    """Return the state of a session whose pushed items were processed."""
    tables: dict[str, Any] = {}
    folder, engine = TableFolder(tables), session._engine
    queries = [*session.queries.values()]
    readers = [reader for query in queries for reader in query.readers]
    ended = dict.fromkeys(reader.plan for reader in readers if reader.plan not in engine.plans)
    plans = [*engine.plans, *ended]
    default, named = engine.graphs
    rests = [reader.save() for reader in readers]
    for k, (_, rest) in enumerate(rests):
        for j, (_, rows) in enumerate(rest):
            folder.put_rows(f"readers/{k}/{j}", rows)
    content = {
        "kind": WHOLE_SESSION,
        "input": save_input(engine.input),
        "history": engine.history,
        "idle": engine.clock.idle,
        "graphs": save_graphs(default, named, folder.inside("graphs")),
        "graph_cells": engine.graph_cells.save(),
        "graph_rejects": session._graph_rejects,
        "drained": [saved_reject(each) for each in session._drained or ()],
        "draining": session._drained is not None,
        "numbers": session._numbers,
        "streams": [
            save_session_stream(stream, folder.inside(f"streams/{k}"))
            for k, stream in enumerate(engine.streams.values())
        ],
        "stream_numbers": engine._numbers,
        "outputs": {
            name: [plans.index(output.plan), output.query]
            for name, output in engine.outputs.items()
        },
        "kept": [
            save_batches(output.retained, folder.inside(f"outputs/{k}"))
            for k, output in enumerate(engine.outputs.values())
        ],
        "changed": engine._changed,
        "queries": [_save_query(query, plans, folder) for query in queries],
        "readers": [
            {**saved, "plan": plans.index(reader.plan), "rest": [number for number, _ in rest]}
            for reader, (saved, rest) in zip(readers, rests, strict=True)
        ],
        "plans": save_plans(engine, plans, readers, folder),
        "roots": _roots(engine),
        **save_open(session),
    }
    save_terms(engine.terms, _used(engine, plans, readers), folder)
    return Checkpoint(content, tables)


def _roots(engine: SessionEngine) -> list[list[int]]:
    number_of = {operator: k for k, operator in enumerate(engine.pipeline.operators)}
    return [[number_of[root], int(cut)] for root, cut in engine.pipeline.roots.items()]


def _used(
    engine: SessionEngine, plans: Sequence[SharedPlan], readers: Sequence[PlanReader]
) -> Iterator[IntArray]:
    """Yield the ids of the terms that are in use."""
    for operator in engine.pipeline.operators:
        yield from operator.retained_ids()
    yield from engine._ids()
    for plan in plans:
        yield from plan.retained_ids()
    for reader in readers:
        yield from reader.retained_ids()


def _save_query(
    query: Registered, plans: Sequence[SharedPlan], tables: TableFolder
) -> dict[str, Any]:
    registration = query.registration
    if query.instances is not None:
        tables.put(f"instances/{query.name}", query.instances.save())
    return {
        "name": query.name,
        "query": save_query(registration.query),
        "parameters": [*registration.parameters],
        "report": registration.report,
        "output": registration.output,
        "readers": [*query.readers.values()],
        "end": query.end,
        "calling": query.on_row is not None,
    }


# -- Restoring -------------------------------------------------------------------------------------


def restore_session(
    session: Session,
    checkpoint: Checkpoint,
    on_row: Mapping[str, Callable[[Any], object]],
    files: str | os.PathLike[str] | Callable[[str], Any] | None,
    known: Mapping[str, Registered] | None = None,
) -> None:
    """Restore a saved state in a new session; `known` queries become those of the same names."""
    content, folder = checkpoint.content, TableFolder(checkpoint.tables)
    engine = session._engine
    unknown = set(on_row) - {saved["name"] for saved in content["queries"]}
    if unknown:
        names = ", ".join(saved["name"] for saved in content["queries"]) or "none"
        raise EngineError(f"on_row of the unknown query {min(unknown)!r}; the queries: {names}")
    with session._guard:
        engine.terms.load(saved_terms(folder))
        graphs = restored_graphs(content["graphs"], folder.inside("graphs"))
        engine.restore_graphs(restored_input(content["input"], files), *graphs)
        engine.graph_cells.load(content["graph_cells"])
        session._graph_rejects, session._numbers = content["graph_rejects"], content["numbers"]
        if content["draining"]:
            session._drained = [restored_reject(each) for each in content["drained"]]
        for k, saved in enumerate(content["streams"]):
            stream = engine.stream(saved["name"])
            restore_session_stream(stream, saved, folder.inside(f"streams/{k}"))
        engine._numbers = content["stream_numbers"]
        queries = _restore_queries(session, content, folder, on_row, known or {})
        plans = _restore_plans(session, queries, content, folder)
        _restore_readers(queries, plans, content, folder)
        for stream, saved in zip(engine.streams.values(), content["streams"], strict=True):
            restore_needs(stream, saved)
        for k, (name, count) in enumerate(zip(content["outputs"], content["kept"], strict=True)):
            items = restored_batches(count, folder.inside(f"outputs/{k}"))
            engine.outputs[name].restore(items)
        engine._changed = content["changed"]
        restore_open(session, content)


def _restore_queries(
    session: Session,
    content: Mapping[str, Any],
    tables: TableFolder,
    on_row: Mapping[str, Callable[[Any], object]],
    known: Mapping[str, Registered],
) -> list[Registered]:
    """Compile the queries again, without their plans."""
    queries = []
    for saved in content["queries"]:
        name = saved["name"]
        query = restored_query(saved["query"])
        report = saved["report"] and Reporting(*saved["report"])
        own = name if saved["output"] == name else None
        registration = Registration.of(query, own, None, None, saved["parameters"])
        registration = registration._replace(report=report)
        if registration.output != saved["output"]:
            raise EngineError(f"the query {name!r} feeds {registration.output}")
        shape = registration.shape(session._engine.read_named_graphs(query.graphs))
        call = on_row.get(name)
        session._check_on_row(call)
        registered = known.get(name) or Registered.__new__(Registered)
        registered.__init__(session, name, registration, shape, call)  # type: ignore[misc]
        registered.end = saved["end"]
        if registration.parameters:
            registered.instances = Instances(
                registration.parameters, registration.subjects, session.terms
            )
            registered.instances.load(tables.get(f"instances/{name}"))
        session._queries[name] = registered
        session._callers += call is not None
        queries.append(registered)
    return queries


def _restore_plans(
    session: Session,
    queries: Sequence[Registered],
    content: Mapping[str, Any],
    tables: TableFolder,
) -> list[SharedPlan]:
    """Lower the plans again, those that feed streams before their readers."""
    engine = session._engine
    pipeline = tables.all("pipeline")
    places, shapes = SavedPlans(pipeline), _shapes(session, queries, content)
    feeding = {place: (name, query) for name, (place, query) in content["outputs"].items()}
    plans: dict[int, SharedPlan] = {}
    left = [*range(len(content["plans"]))]
    while left:
        fed = {name for k, (name, _) in feeding.items() if k in left}
        ready = [k for k in left if not fed.intersection(shapes[k][0].streams)]
        if not ready:
            raise EngineError("the plans feed each other")
        for k in ready:
            shape, constants = shapes[k]
            plans[k] = engine.restore_plan(shape, constants, content["plans"][k], places)
            if k in feeding:
                output = engine.restore_output(*feeding[k], plans[k])
                places.place(output.access(), content["plans"][k]["fed"])
            left.remove(k)
    engine.order([plans[k] for k in sorted(plans)], [*content["outputs"]])
    roots = {places.operator(number): bool(cut) for number, cut in content["roots"]}
    engine.pipeline.adopt(places.operators(), roots)
    engine.pipeline.load(pipeline)
    return [plans[k] for k in sorted(plans)]


def _shapes(
    session: Session, queries: Sequence[Registered], content: Mapping[str, Any]
) -> dict[int, tuple[Shape, Mapping[str, Term]]]:
    """Return the shape and the constants of each plan: those of a query that reads it."""
    shapes: dict[int, tuple[Shape, Mapping[str, Term]]] = {}
    readers = iter(content["readers"])
    for query, saved in zip(queries, content["queries"], strict=True):
        registration = query.registration
        for key in saved["readers"]:
            shape = query.shape
            if key and query.instances is not None:
                ids = query.instances.values_of_one(key)
                named = [registration.skeleton.named[name] for name in registration.parameters]
                terms = map(session.terms.term_of, ids)
                shape = bound_shape(shape, dict(zip(named, terms, strict=True)))
            shapes.setdefault(next(readers)["plan"], (shape, registration.constants))
    return shapes


def _restore_readers(
    queries: Sequence[Registered],
    plans: Sequence[SharedPlan],
    content: Mapping[str, Any],
    tables: TableFolder,
) -> None:
    """Restore the readers of plans, and the rows that they have not read."""
    readers: list[PlanReader] = []
    for query, saved_query in zip(queries, content["queries"], strict=True):
        for key in saved_query["readers"]:
            k = len(readers)
            saved = content["readers"][k]
            plan = plans[saved["plan"]]
            reader = PlanReader(query, plan, saved["start"])
            rest = [
                (number, tables.rows(f"readers/{k}/{j}", *plan.names))
                for j, number in enumerate(saved["rest"])
            ]
            reader.restore(saved, rest)
            query.readers[reader] = key
            readers.append(reader)
    for k, (plan, saved) in enumerate(zip(plans, content["plans"], strict=True)):
        restore_rows(plan, saved, readers, tables.inside(f"plans/{k}"))
