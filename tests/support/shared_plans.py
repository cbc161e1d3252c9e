"""Many queries by one plan: a skeleton over a table of queries, step by step, without a session.

`Instance` is a query of the table: its constants, when it is added and when it is removed.
`disagreement` runs a query's skeleton with random instances, in random steps, and compares the rows
of each instance with the definition of its own plan, at each instant from its start to its end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from support.engine import Answers, Cells, Data, Definition, cells, show

import streamsparql
from streamsparql.algebra.access import AccessStream
from streamsparql.algebra.functions import Run
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.partition import stream_reaches
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import rewrite
from streamsparql.algebra.sharing import bind, is_shareable, skeleton
from streamsparql.algebra.streams import INFINITY, Element
from streamsparql.algebra.terms import IRI, XSD, Literal, Term, integer
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import ANSWER, QUERY
from streamsparql.physical.lowering.lower import At, Catalog, Lowering
from streamsparql.physical.lowering.lower_parameters import carrying, queries_as_outer_rows
from streamsparql.physical.operators.access import Clock, StreamAccess
from streamsparql.physical.operators.queries import QueryTable, SelectQueries
from streamsparql.physical.operators.report import TemporalCoalesce
from streamsparql.physical.operators.shape import projected_to
from streamsparql.physical.pipeline import Pipeline
from streamsparql.run.decoder import RowDecoder
from streamsparql.sources import read_graph, read_stream
from streamsparql.sources.disorder import Sorter

IRIS: list[Term] = [IRI(f"http://e/{name}") for name in "abcp"]
TERMS: list[Term] = [
    *IRIS,
    *map(integer, (1, 2, 3)),
    Literal("x"),
    Literal("1.5", IRI(XSD + "decimal")),
]


class Instance(NamedTuple):
    """A query of the table: its constants, when it is added, and when it is removed."""

    constants: Mapping[str, Term]
    added: int
    removed: int = INFINITY


class SharedRun:
    """A run of one plan for many queries."""

    def __init__(self, form: str, columns: Sequence[str], plan: Plan, data: Data, lease: int):
        self.terms = TermDictionary()
        low = Lowering(self.terms, Run(), self._catalog(data), None, ())
        accesses = [node for node in plan.operators() if isinstance(node, AccessStream)]
        clock = Clock(*(low.rows(node, At()) for node in dict.fromkeys(accesses)))
        self.parameters = sorted(parameters_in(plan))
        reach = max(stream_reaches(plan).values(), default=1)
        self.table = QueryTable(clock, self.parameters, reach)
        self.table._lease = lease
        at = At(outer=queries_as_outer_rows(self.table, plan))
        with recursion_headroom():
            rows = carrying(low.plan(plan, at).plain, at, self.terms)
        self.columns = columns if form == "select" else [ANSWER] if form == "ask" else TRIPLE
        self.select = SelectQueries(projected_to(rows, (*self.columns, QUERY)))
        self.sink = TemporalCoalesce(self.select)
        self.pipeline = Pipeline(self.sink, self.terms)
        self.sorters = {name: self._sorter(name, k, data) for k, name in enumerate(data.streams)}
        self.streams = tuple(data.streams)
        operators = self.pipeline.operators
        self._stamps = {o.stream: o.stamp for o in operators if isinstance(o, StreamAccess)}
        self._emitted: dict[int, list[Batch]] = defaultdict(list)
        self._numbers: dict[int, int] = {}

    def _catalog(self, data: Data) -> Catalog:
        graphs = {f"<{name}>": triples for name, triples in data.graphs.items()}
        named = {
            IRI(name[1:-1]): self._graph(triples, name, f"g{k}.")
            for k, (name, triples) in enumerate(graphs.items())
        }
        return Catalog(self._graph(data.graph, "default", "d."), named)

    def _graph(self, triples: object, name: str, scope: str) -> Batch:
        batch, _ = read_graph(triples, name, self.terms, scope=scope)
        for column in batch.columns.values():
            self.terms.keep(column)
        return batch

    def _sorter(self, name: str, k: int, data: Data) -> Sorter:
        sorter = Sorter(name, max_jump=None)
        items = [(*triple, t) for triple, t in data.streams[name]]
        for chunk in read_stream(items, name, self.terms, scope=f"s{k}."):
            sorter.push(chunk)
        return sorter

    def add(self, k: int, instance: Instance, t: int) -> None:
        """Add a query."""
        number = self.terms.of_integers(np.array([k + 1]))
        self._numbers[int(number[0])] = k
        values = [np.array([self.terms.id_of(instance.constants[n])]) for n in self.parameters]
        self.table.add(number, values, t)

    def remove(self, k: int, t: int) -> None:
        """Remove a query; its open rows end here."""
        number = self.terms.of_integers(np.array([k + 1]))
        rows = self.sink.open_rows()
        mine = (rows.columns[QUERY] == number[0]) & (rows.start < t)
        rows = rows.where(mine)
        self._take(rows.over(rows.start, np.minimum(rows.end, t)))
        self.table.remove(number)
        self.select.exclude(number, self.table.until)
        del self._numbers[int(number[0])]

    def step(self, t: int, cut: bool) -> None:
        """Process the items before an instant."""
        until = t if t == INFINITY else t - 1
        offered = {n: self._stamped(n, s.release(until)) for n, s in self.sorters.items()}
        self._take(self.pipeline.step(offered, dict.fromkeys(self.streams, t), cut)[0])

    def _stamped(self, name: str, batch: Batch) -> Batch:
        column = self._stamps.get(name)
        if column is None:
            return batch
        return batch.with_columns({column: self.terms.of_integers(batch.start)})

    def _take(self, rows: Batch) -> None:
        for number in np.unique(rows.columns[QUERY]).tolist():
            if number in self._numbers:
                own = rows.where(rows.columns[QUERY] == number)
                self._emitted[self._numbers[number]].append(own.project(self.columns))

    def rows(self, form: str, k: int) -> Answers:
        """Return the rows of a query."""
        variables = self.columns if form == "select" else ()
        decoder = RowDecoder(form, variables, self.terms)
        rows = [row for batch in self._emitted[k] for row in decoder.rows(batch)]
        return Answers([Element(cells(form, row), row.start, row.end) for row in rows])


def disagreement(text: str, data: Data, seed: int) -> str | None:
    """Describe where an instance differs from its definition; "" if all agree.

    Return None for a query that cannot be shared.
    """
    random, query = Random(seed), streamsparql.compile(text)
    data = data.of(query)
    shared = skeleton(query.logical)
    if not is_shareable(shared.plan):
        return None
    fixed = {n: term for n, term in shared.constants.items() if random.random() < 0.3}
    plan = bind(shared.plan, fixed)
    instances = list(_instances(random, plan, shared.constants, data))
    lowered = rewrite(plan).plan if random.random() < 0.7 else plan
    names = [shared.variables[name] for name in query.variables]
    run = SharedRun(query.form, names, lowered, data, random.choice([1, 3, 7, 100]))
    for t in _instants(random, instances, data):
        if t > 0:
            run.step(t, random.random() < 0.5 or any(i.removed == t for i in instances))
        for k, instance in enumerate(instances):
            if instance.added == t:
                run.add(k, instance, t)
            if instance.removed == t < INFINITY:
                run.remove(k, t)
    for k, instance in enumerate(instances):
        definition = Definition(query, data)
        definition.plan = bind(plan, instance.constants)
        difference = _difference(run.rows(query.form, k), definition, instance)
        if difference:
            return f"{difference}\nseed {seed}, {instance}\n{data}\n{plan}\n{text}"
    return ""


def _instances(
    random: Random, plan: Plan, constants: Mapping[str, Term], data: Data
) -> Iterator[Instance]:
    timed = any(isinstance(node, AccessStream) for node in plan.operators())
    stamps = data.stamps or [0]
    for _ in range(random.randint(1, 4)):
        values = {
            name: random.choice([term, *(IRIS if isinstance(term, IRI) else TERMS)])
            for name, term in constants.items()
            if name in parameters_in(plan)
        }
        added = 0 if random.random() < 0.5 else random.randint(stamps[0], stamps[-1] + 15)
        removed = random.randint(max(added, stamps[0]) + 1, stamps[-1] + 25)
        removed = INFINITY if random.random() < 0.6 else removed
        yield Instance(values, added, removed) if timed else Instance(values, 0)


def _instants(random: Random, instances: Sequence[Instance], data: Data) -> list[int]:
    stamps = data.stamps or [0]
    steps = {random.randint(stamps[0], stamps[-1] + 20) for _ in range(random.randint(0, 6))}
    ends = {t for instance in instances for t in (instance.added, instance.removed)}
    return sorted({0, INFINITY} | steps | ends)


def _difference(ours: Answers, definition: Definition, instance: Instance) -> str:
    begin = max(instance.added, definition.start)
    instants = {begin} | definition.borders() | ours.changes | {t - 1 for t in ours.changes}
    for t in sorted(t for t in instants if begin <= t < instance.removed):
        here, there = ours.at(t), Counter(map(_visible, definition.at(t).elements()))
        if here != there:
            return f"at {t} the shared plan has {show(here)}, expected {show(there)}"
    if any(end > instance.removed for _, _, end in ours.rows):
        return f"rows after {instance.removed}: {ours.rows}"
    return ""


def _visible(row: Cells) -> Cells:
    if isinstance(row, frozenset):
        return frozenset((name, term) for name, term in row if not name.startswith("."))
    return row
