"""Where a pattern reads: the sources that are active at a place of the query, and their windows.

The paper's createPlan has four parameters for this (`actStream`, `namedStreams`, `win` and
`graphVar`); here they are one frozen `ReadScope`, which knows how GRAPH, STREAM and WINDOW
change it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.graph import Graph
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.join import Join, Union
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.scope import visible_variables
from streamsparql.algebra.shape import Distinct, Table
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s
from streamsparql.translator.context import Context
from streamsparql.translator.dialects.base import Windowing

Wrap = Callable[[Plan], Plan]
"""What a GRAPH puts around the plan of its group."""


@dataclass(frozen=True)
class Stream:
    """A stream, with the window of the FROM clause that names it."""

    name: IRI
    window: Windowing | None = None
    clause: s.Node | None = None


@dataclass(frozen=True)
class Dataset:
    """What a query's FROM clauses offer.

    `named` streams are read with GRAPH <name>, `slots` are windows with names of their own.
    `graphs` are the named static graphs; None where the query lists none, so that the caller's are
    meant. `static` are the graphs of the default graph; `shares_static` says that GRAPH <stream>
    reads them too (C-SPARQL, R19).
    """

    default: tuple[Stream, ...] = ()
    named: Mapping[IRI, Stream] = field(default_factory=dict)
    slots: Mapping[Variable | IRI, Stream] = field(default_factory=dict)
    graphs: tuple[IRI, ...] | None = None
    static: tuple[IRI, ...] = ()
    shares_static: bool = False

    @property
    def streams(self) -> dict[IRI, Stream]:
        """All streams of FROM clauses, by name."""
        return {x.name: x for x in (*self.slots.values(), *self.named.values(), *self.default)}


@dataclass(frozen=True)
class ReadScope:
    """What is read at one place of the query.

    Active are `streams` and, unless `graphs` is None, the static graphs of these names;
    `background` adds the default graph that the caller gives. `window` is that of the innermost
    group with one.
    """

    dataset: Dataset
    streams: tuple[Stream, ...]
    graphs: tuple[IRI | Variable, ...] | None
    background: bool = False
    window: Windowing | None = None
    block: str = ""

    @classmethod
    def of(cls, dataset: Dataset) -> ReadScope:
        """The scope of a query's WHERE."""
        return cls(dataset, dataset.default, dataset.static, background=True)

    def on_stream(self, stream: Stream) -> ReadScope:
        """Inside GRAPH with a stream."""
        if self.dataset.shares_static:
            return replace(self, streams=(stream,), graphs=self.dataset.static, background=True)
        return replace(self, streams=(stream,), graphs=None, background=False)

    def on_slot(self, stream: Stream, block: str = "") -> ReadScope:
        """Inside a block that asks for a window itself, by its name or by its clause: that wins."""
        return replace(
            self, streams=(stream,), graphs=None, background=False, window=None, block=block
        )

    def on_graph(self, name: IRI | Variable) -> ReadScope:
        """Inside GRAPH with a static graph."""
        return replace(self, streams=(), graphs=(name,), background=False)

    # -- GRAPH

    def in_graph(self, node: s.Iri, context: Context) -> tuple[ReadScope, Wrap]:
        """GRAPH <name>: the scope inside, and what it puts around the plan of its group."""
        self._no_block(node)
        name, dataset = context.names.iri(node), self.dataset
        if name in dataset.named:
            return self.on_stream(dataset.named[name]), _nothing
        if name in dataset.slots:
            raise QueryError(
                f"{name} is a window, and GRAPH reads graphs",
                node.span,
                hint=f"write WINDOW {name} {{ .. }}",
            )
        if dataset.graphs is None and name not in dataset.streams:
            return self.on_graph(name), lambda plan: Graph(name, plan)
        if dataset.graphs is not None and name in dataset.graphs:
            return self.on_graph(name), _nothing
        if dataset.streams:
            raise _not_named(name, node, dataset)
        return self.on_graph(name), _empty  # SPARQL 1.1: no such graph in the dataset

    def in_all_graphs(self, node: s.Var) -> Iterator[tuple[ReadScope, Wrap]]:
        """GRAPH ?variable: for each named source the scope inside, and what binds the variable."""
        self._no_block(node)
        variable = Variable(node.name)
        if variable in self.dataset.slots:
            yield self.on_slot(self.dataset.slots[variable]), _nothing
            return
        for stream in self.dataset.named.values():
            yield self.on_stream(stream), _binding(variable, stream.name)
        for name in self.dataset.graphs or ():
            yield self.on_graph(name), _binding(variable, name)
        if self.dataset.graphs is None:
            yield self.on_graph(variable), lambda plan: Graph(variable, plan)
        elif not self.dataset.graphs and not self.dataset.named:
            yield self.on_graph(variable), lambda plan: _empty(_binding(variable, None)(plan))

    def _no_block(self, node: s.Node) -> None:
        if self.block:
            raise UnsupportedFeature(
                f"GRAPH inside {self.block}: a stream here is one of triples, it has no graphs",
                node.span,
                hint=f"put the GRAPH pattern beside the {self.block} block",
            )

    # -- WINDOW <w> and STREAM <s>

    def in_window(self, node: s.Iri, context: Context) -> ReadScope:
        """RSP-QL: WINDOW <w>."""
        name = context.names.iri(node)
        if name not in self.dataset.slots:
            raise QueryError(
                f"there is no window {name}",
                node.span,
                hint=_known(name, [w for w in self.dataset.slots if isinstance(w, IRI)])
                or f"declare it: FROM NAMED WINDOW {name} ON <stream> [RANGE .. STEP ..]",
            )
        return self.on_slot(self.dataset.slots[name], "WINDOW")

    def in_all_windows(self, node: s.Var) -> Iterator[tuple[ReadScope, Wrap]]:
        """RSP-QL: WINDOW ?w, over all windows that have a name."""
        slots = {name: x for name, x in self.dataset.slots.items() if isinstance(name, IRI)}
        if not slots:
            raise QueryError(
                "there are no windows for this variable to range over",
                node.span,
                hint="declare one: FROM NAMED WINDOW <w> ON <stream> [RANGE .. STEP ..]",
            )
        for name, stream in slots.items():
            yield self.on_slot(stream, "WINDOW"), _binding(Variable(node.name), name)

    def in_stream(self, node: s.Iri, clause: s.StreamPattern, context: Context) -> ReadScope:
        """CQELS: STREAM <s> [window]; the window may also be that of a FROM clause."""
        name = context.names.iri(node)
        if clause.window is not None:
            stream = Stream(name, context.windowing(clause.window), clause)
        elif name in self.dataset.streams:
            stream = self.dataset.streams[name]
            slots = [str(slot) for slot, x in self.dataset.slots.items() if x.name == name]
            if len(slots) > 1:
                raise QueryError(
                    f"{name} has several windows: {', '.join(slots)}",
                    clause.name.span,
                    hint=f"read one of them: GRAPH {slots[0]} {{ .. }}",
                )
        else:
            raise QueryError(
                f"STREAM {name} has no window",
                clause.name.span,
                hint=f"write STREAM {name} [RANGE 10s] {{ .. }}, or [NOW], [ALL], [TRIPLES n]",
            )
        return self.on_slot(stream, "STREAM")


def _nothing(plan: Plan) -> Plan:
    return plan


def _empty(plan: Plan) -> Plan:
    return Table(visible_variables(plan), ())


def _binding(variable: Variable, name: IRI | None) -> Wrap:
    return lambda plan: Join(Table((variable,), ((name,),)), plan)


def _known(name: IRI, known: list[IRI]) -> str:
    close = difflib.get_close_matches(name.value, [iri.value for iri in known], 1, 0.6)
    return f"did you mean <{close[0]}>?" if close else ""


def _not_named(name: IRI, node: s.Iri, dataset: Dataset) -> QueryError:
    slots = [slot for slot, stream in dataset.slots.items() if stream.name == name]
    if slots:
        word = "WINDOW" if isinstance(slots[0], IRI) else "GRAPH"
        return QueryError(
            f"{name} is read through its windows here",
            node.span,
            hint=f"write {word} {slots[0]} {{ .. }}",
        )
    if name in dataset.streams:
        return QueryError(
            f"{name} is a default stream, and GRAPH reads named ones",
            node.span,
            hint=f"declare it FROM NAMED STREAM {name}, or leave the GRAPH out",
        )
    return QueryError(
        f"{name} is not among the sources of this query",
        node.span,
        hint=_known(name, [*dataset.named, *(dataset.graphs or ())])
        or f"declare it: FROM NAMED {name}",
    )


# -- access and matching ---------------------------------------------------------------------------


def matching(pattern: TriplePattern, scope: ReadScope, context: Context) -> Plan:
    """Algorithm 1's branch for a triple: `win`, if any, above the matching, FROM's window below."""
    stamps = context.stamps.on(pattern)
    if scope.window is None or not scope.streams or context.dialect.content == "events":
        return TriplePatternMatching(pattern, access(scope, None, context), stamps)
    branches: list[Plan] = [
        scope.window(TriplePatternMatching(pattern, create_access_op(stream, context), stamps))
        for stream in scope.streams
    ]
    if scope.graphs is not None:
        branches.append(TriplePatternMatching(pattern, _access_graph(scope, context), stamps))
    union = Union(tuple(branches)) if len(branches) > 1 else branches[0]
    return Distinct(union) if context.dialect.content == "set" else union


def access(scope: ReadScope, window: Windowing | None, context: Context) -> Plan:
    """All active sources, merged, each stream through `window` or else through its own.

    Where windows hold sets, the merged content is one. The plan is shared by all who read the same.
    """
    key = (scope.streams, scope.graphs, scope.background, window)
    if key not in context.shared:
        context.shared[key] = _access(scope, window, context)
    return context.shared[key]


def _access(scope: ReadScope, window: Windowing | None, context: Context) -> Plan:
    sources = [_windowed(stream, window, context) for stream in scope.streams]
    if scope.graphs is not None:
        sources.append(_access_graph(scope, context))
    merged = Merge(tuple(sources)) if len(sources) > 1 else sources[0]
    return Distinct(merged) if scope.streams and context.dialect.content == "set" else merged


def _windowed(stream: Stream, window: Windowing | None, context: Context) -> Plan:
    source = create_access_op(stream, context)
    if context.dialect.content == "events":
        return source
    window = window or stream.window
    if window is None:
        raise QueryError(
            f"the stream {stream.name} is read without a window, so all of it for ever",
            stream.clause.span if stream.clause else None,
            hint="write for instance WINDOW RANGE 10 MINUTE SLIDE 1 MINUTE behind it",
        )
    windowed = window(source)
    return context.came_from(windowed, stream.clause) if stream.clause else windowed


def create_access_op(stream: Stream, context: Context) -> Plan:
    """The paper's createAccessOp."""
    return AccessStream(stream.name, stamped=context.stamps.asked)


def _access_graph(scope: ReadScope, context: Context) -> Plan:
    return AccessGraph(scope.graphs or (), scope.background, stamped=context.stamps.asked)


# -- FROM ------------------------------------------------------------------------------------------


def dataset(sources: tuple[s.Source, ...], context: Context) -> Dataset:
    """What the FROM clauses of a query offer."""
    default: dict[IRI, Stream] = {}
    named: dict[IRI, Stream] = {}
    slots: dict[Variable | IRI, Stream] = {}
    static: list[IRI] = []
    graphs: list[IRI] = []
    for source in sources:
        name = context.names.iri(source.name)
        if source.kind == "graph":
            (graphs if source.named else static).append(name)
            continue
        slot = _slot(source, context)
        window = context.windowing(source.window, slot) if source.window else None
        stream = Stream(name, window, source)
        if slot is not None and not source.named:
            raise QueryError(
                f"{slot} names a window that is part of the default graph already",
                source.span,
                hint=f"write FROM NAMED {name} [..] AS {slot}, or leave the AS out",
            )
        if slot is not None:
            _add(slots, slot, stream, source)
        elif source.named:
            _add(named, name, stream, source)
        else:
            _add(default, name, stream, source)
    if context.dialect.content == "events" and not default:
        default[DEFAULT_STREAM] = Stream(DEFAULT_STREAM)
    shares_static = context.dialect.name == "csparql"
    return Dataset(
        default=tuple(default.values()),
        named={**default, **named} if shares_static else named,
        slots=slots,
        graphs=tuple(dict.fromkeys(graphs)) if static or graphs else None,
        static=tuple(dict.fromkeys(static)),
        shares_static=shares_static,
    )


def _slot(source: s.Source, context: Context) -> Variable | IRI | None:
    match source.slot:
        case s.Var(name):
            return Variable(name)
        case s.Iri() as iri:
            return context.names.iri(iri)
    return None


def _add(
    streams: dict[Variable | IRI, Stream] | dict[IRI, Stream],
    key: Variable | IRI,
    stream: Stream,
    source: s.Source,
) -> None:
    if key in streams:
        raise QueryError(
            f"{key} is declared twice",
            source.span,
            hint="two windows on one stream need names: FROM NAMED WINDOW <w> ON <s> [..]",
        )
    streams[key] = stream  # type: ignore[index]
