"""The sources that patterns read: those active at a place of the query, with their windows.

createPlan (ESWC 2008, Algorithm 1) has four parameters for them: `actStream`, `namedStreams`, `win`
and `graphVar`. Here they are one frozen `ReadScope`; GRAPH, STREAM and WINDOW derive a new one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.entailment import Entailed, Entailing
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
"""A function that wraps the plan of a GRAPH's group in the operators that the GRAPH adds."""


@dataclass(frozen=True)
class DeclaredStream:
    """A stream, with the window of the FROM clause that declares it."""

    name: IRI
    window: Windowing | None = None
    clause: s.SyntaxNode | None = None


@dataclass(frozen=True)
class Dataset:
    """The sources that a query's FROM clauses declare.

    `named` streams are read with GRAPH <name>; `windows` are the windows with their own names.
    `graphs` are the named static graphs, or None if the query lists none and so reads the caller's.
    `static` are the graphs of the default graph; with `shares_static`, GRAPH <stream> reads them
    too (C-SPARQL, R19).
    """

    default: tuple[DeclaredStream, ...] = ()
    named: Mapping[IRI, DeclaredStream] = field(default_factory=dict)
    windows: Mapping[Variable | IRI, DeclaredStream] = field(default_factory=dict)
    graphs: tuple[IRI, ...] | None = None
    static: tuple[IRI, ...] = ()
    shares_static: bool = False

    @property
    def streams(self) -> dict[IRI, DeclaredStream]:
        """The streams of all FROM clauses, by name."""
        return {x.name: x for x in (*self.windows.values(), *self.named.values(), *self.default)}


@dataclass(frozen=True)
class ReadScope:
    """The sources that are active at one place of the query.

    These are `streams` and, unless `graphs` is None, the static graphs of these names; `background`
    adds the default graph that the caller passes. `window` is the window of the innermost group
    that has one. `block` is STREAM or WINDOW inside such a block, else empty.
    """

    dataset: Dataset
    streams: tuple[DeclaredStream, ...]
    graphs: tuple[IRI | Variable, ...] | None
    background: bool = False
    window: Windowing | None = None
    block: str = ""

    @classmethod
    def of(cls, dataset: Dataset) -> ReadScope:
        """Return the scope of a query's WHERE."""
        return cls(dataset, dataset.default, dataset.static, background=True)

    def on_stream(self, stream: DeclaredStream) -> ReadScope:
        """Return the scope inside GRAPH with a stream."""
        if self.dataset.shares_static:
            return replace(self, streams=(stream,), graphs=self.dataset.static, background=True)
        return replace(self, streams=(stream,), graphs=None, background=False)

    def on_window(self, stream: DeclaredStream, block: str = "") -> ReadScope:
        """Return the scope inside a block with its own window, which overrides the group's."""
        return replace(
            self, streams=(stream,), graphs=None, background=False, window=None, block=block
        )

    def on_graph(self, name: IRI | Variable) -> ReadScope:
        """Return the scope inside GRAPH with a static graph."""
        return replace(self, streams=(), graphs=(name,), background=False)

    # -- GRAPH

    def in_graph(self, node: s.Iri, context: Context) -> tuple[ReadScope, Wrap]:
        """Return the scope inside GRAPH <name>, and the wrapper of its group's plan."""
        self._check_outside_block(node)
        name, dataset = context.names.iri(node), self.dataset
        if name in dataset.named:
            return self.on_stream(dataset.named[name]), _unchanged
        if name in dataset.windows:
            raise QueryError(
                f"{name} is a window, but GRAPH reads graphs",
                node.span,
                hint=f"write WINDOW {name} {{ .. }}",
            )
        if dataset.graphs is None and name not in dataset.streams:
            return self.on_graph(name), lambda plan: Graph(name, plan)
        if dataset.graphs is not None and name in dataset.graphs:
            return self.on_graph(name), _unchanged
        if dataset.streams:
            raise _not_named(name, node, dataset)
        return self.on_graph(name), _empty  # SPARQL 1.1: no such graph in the dataset

    def in_all_graphs(self, node: s.Var) -> Iterator[tuple[ReadScope, Wrap]]:
        """Yield the scope inside GRAPH ?variable per source, and a wrapper that binds ?variable."""
        self._check_outside_block(node)
        variable = Variable(node.name)
        if variable in self.dataset.windows:
            yield self.on_window(self.dataset.windows[variable]), _unchanged
            return
        for stream in self.dataset.named.values():
            yield self.on_stream(stream), _binding(variable, stream.name)
        for name in self.dataset.graphs or ():
            yield self.on_graph(name), _binding(variable, name)
        if self.dataset.graphs is None:
            yield self.on_graph(variable), lambda plan: Graph(variable, plan)
        elif not self.dataset.graphs and not self.dataset.named:
            yield self.on_graph(variable), lambda plan: _empty(_binding(variable, None)(plan))

    def _check_outside_block(self, node: s.SyntaxNode) -> None:
        if self.block:
            raise UnsupportedFeature(
                f"GRAPH inside {self.block}: a stream consists of triples and has no graphs",
                node.span,
                hint=f"move the GRAPH pattern out of the {self.block} block",
            )

    # -- WINDOW <w> and STREAM <s>

    def in_window(self, node: s.Iri, context: Context) -> ReadScope:
        """Return the scope inside RSP-QL's WINDOW <w>."""
        name = context.names.iri(node)
        if name not in self.dataset.windows:
            raise QueryError(
                f"unknown window {name}",
                node.span,
                hint=_suggestion(name, [w for w in self.dataset.windows if isinstance(w, IRI)])
                or f"declare it: FROM NAMED WINDOW {name} ON <stream> [RANGE .. STEP ..]",
            )
        return self.on_window(self.dataset.windows[name], "WINDOW")

    def in_all_windows(self, node: s.Var) -> Iterator[tuple[ReadScope, Wrap]]:
        """Yield the scopes inside RSP-QL's WINDOW ?w, one per window that is named by an IRI."""
        windows = {name: x for name, x in self.dataset.windows.items() if isinstance(name, IRI)}
        if not windows:
            raise QueryError(
                f"WINDOW ?{node.name} ranges over the windows of the query, which declares none",
                node.span,
                hint="declare one: FROM NAMED WINDOW <w> ON <stream> [RANGE .. STEP ..]",
            )
        for name, stream in windows.items():
            yield self.on_window(stream, "WINDOW"), _binding(Variable(node.name), name)

    def in_stream(self, node: s.Iri, clause: s.StreamPattern, context: Context) -> ReadScope:
        """Return the scope inside CQELS' STREAM <s> [window], or with the window of FROM."""
        name = context.names.iri(node)
        if clause.window is not None:
            stream = DeclaredStream(name, context.windowing(clause.window), clause)
        elif name in self.dataset.streams:
            stream = self.dataset.streams[name]
            windows = [str(w) for w, x in self.dataset.windows.items() if x.name == name]
            if len(windows) > 1:
                raise QueryError(
                    f"ambiguous: {name} has several windows: {', '.join(windows)}",
                    clause.name.span,
                    hint=f"read one of them: GRAPH {windows[0]} {{ .. }}",
                )
        else:
            raise QueryError(
                f"missing window of STREAM {name}",
                clause.name.span,
                hint=f"write STREAM {name} [RANGE 10s] {{ .. }}, or [NOW], [ALL], [TRIPLES n]",
            )
        return self.on_window(stream, "STREAM")


def _unchanged(plan: Plan) -> Plan:
    return plan


def _empty(plan: Plan) -> Plan:
    return Table(visible_variables(plan), ())


def _binding(variable: Variable, name: IRI | None) -> Wrap:
    return lambda plan: Join(Table((variable,), ((name,),)), plan)


def _suggestion(name: IRI, known: list[IRI]) -> str:
    close = difflib.get_close_matches(name.value, [iri.value for iri in known], 1, 0.6)
    return f"did you mean <{close[0]}>?" if close else ""


def _not_named(name: IRI, node: s.Iri, dataset: Dataset) -> QueryError:
    windows = [window for window, stream in dataset.windows.items() if stream.name == name]
    if windows:
        word = "WINDOW" if isinstance(windows[0], IRI) else "GRAPH"
        return QueryError(
            f"{name} is declared with named windows, but GRAPH reads whole streams",
            node.span,
            hint=f"write {word} {windows[0]} {{ .. }}",
        )
    if name in dataset.streams:
        return QueryError(
            f"{name} is a default stream, but GRAPH reads named ones",
            node.span,
            hint=f"declare it FROM NAMED STREAM {name}, or remove the GRAPH",
        )
    return QueryError(
        f"unknown graph or stream {name}: no FROM clause declares it",
        node.span,
        hint=_suggestion(name, [*dataset.named, *(dataset.graphs or ())])
        or f"declare it: FROM NAMED {name}",
    )


# -- access and matching ---------------------------------------------------------------------------


def create_matching(pattern: TriplePattern, scope: ReadScope, context: Context) -> Plan:
    """Return the matching of a triple pattern, below `win` if it is set, else above FROM's window.

    This is the last branch of ESWC 2008, Algorithm 1.
    """
    stamps = context.stamps.on(pattern)
    if scope.window is None or not scope.streams or context.dialect.has_events:
        return TriplePatternMatching(pattern, merge_active_sources(scope, None, context), stamps)
    branches = [_match_in_window(pattern, stream, scope, context) for stream in scope.streams]
    if scope.graphs is not None:
        branches.append(TriplePatternMatching(pattern, _static_source(scope, context), stamps))
    union = Union(tuple(branches)) if len(branches) > 1 else branches[0]
    return Distinct(union) if context.dialect.windows_hold_sets else union


def _match_in_window(
    pattern: TriplePattern, stream: DeclaredStream, scope: ReadScope, context: Context
) -> Plan:
    """Return the matching of a stream below `win`, which counts its matches.

    With entailment the window counts the elements that entail a match.
    """
    assert scope.window is not None, "the group has a window"
    source, stamps = create_access_op(stream, context), context.stamps.on(pattern)
    if not context.entailment:
        return scope.window(TriplePatternMatching(pattern, source, stamps))
    schema = _access_schema(scope)
    counted = scope.window(Entailing(pattern, source, schema))
    return TriplePatternMatching(pattern, Entailed(counted, schema), stamps)


def merge_active_sources(scope: ReadScope, window: Windowing | None, context: Context) -> Plan:
    """Return the merge of all active sources, each stream through `window` or its own window.

    If the dialect's windows are sets, so is the merge. Equal scopes share one plan.
    """
    key = (scope.streams, scope.graphs, scope.background, window)
    if key not in context.shared:
        context.shared[key] = _merge_sources(scope, window, context)
    return context.shared[key]


def _merge_sources(scope: ReadScope, window: Windowing | None, context: Context) -> Plan:
    sources = [_windowed(stream, window, context) for stream in scope.streams]
    if context.entailment:
        sources = [Entailed(source, _access_schema(scope)) for source in sources]
    if scope.graphs is not None:
        sources.append(_static_source(scope, context))
    merged = Merge(tuple(sources)) if len(sources) > 1 else sources[0]
    return Distinct(merged) if scope.streams and context.dialect.windows_hold_sets else merged


def _windowed(stream: DeclaredStream, window: Windowing | None, context: Context) -> Plan:
    source = create_access_op(stream, context)
    if context.dialect.has_events:
        return source
    window = window or stream.window
    if window is None:
        raise QueryError(
            f"missing window: the stream {stream.name} would be retained for ever",
            stream.clause.span if stream.clause else None,
            hint="add a window after it, such as WINDOW RANGE 10 MINUTE SLIDE 1 MINUTE",
        )
    windowed = window(source)
    return context.locate(windowed, stream.clause) if stream.clause else windowed


def create_access_op(stream: DeclaredStream, context: Context) -> Plan:
    """Return the access to a stream: the paper's createAccessOp."""
    return AccessStream(stream.name, stamped=context.stamps.any)


def _static_source(scope: ReadScope, context: Context) -> Plan:
    """Return the active static graphs; with entailment, the set of what they entail."""
    graphs = AccessGraph(scope.graphs or (), scope.background, stamped=context.stamps.any)
    return Distinct(Entailed(graphs, _access_schema(scope))) if context.entailment else graphs


def _access_schema(scope: ReadScope) -> AccessGraph:
    """Return the graphs with the schema: the static default graph, and an active named graph."""
    names = dict.fromkeys((*scope.dataset.static, *(scope.graphs or ())))
    return AccessGraph(tuple(names), background=True)


# -- FROM ------------------------------------------------------------------------------------------


def create_dataset(sources: tuple[s.FromClause, ...], context: Context) -> Dataset:
    """Return the sources that the FROM clauses of a query declare."""
    default: dict[IRI, DeclaredStream] = {}
    named: dict[IRI, DeclaredStream] = {}
    windows: dict[Variable | IRI, DeclaredStream] = {}
    static: list[IRI] = []
    graphs: list[IRI] = []
    for source in sources:
        name = context.names.iri(source.name)
        if source.kind == "graph":
            (graphs if source.named else static).append(name)
            continue
        window_name = _window_name(source, context)
        window = context.windowing(source.window, window_name) if source.window else None
        stream = DeclaredStream(name, window, source)
        if window_name is not None and not source.named:
            raise QueryError(
                f"{window_name} names a window of the default graph, which needs no name",
                source.span,
                hint=f"write FROM NAMED {name} [..] AS {window_name}, or remove the AS",
            )
        if window_name is not None:
            _declare(windows, window_name, stream, source)
        elif source.named:
            _declare(named, name, stream, source)
        else:
            _declare(default, name, stream, source)
    if context.dialect.has_events and not default:
        default[DEFAULT_STREAM] = DeclaredStream(DEFAULT_STREAM)
    shares = context.dialect.graph_reads_default_streams
    return Dataset(
        default=tuple(default.values()),
        named={**default, **named} if shares else named,
        windows=windows,
        graphs=tuple(dict.fromkeys(graphs)) if static or graphs else None,
        static=tuple(dict.fromkeys(static)),
        shares_static=shares,
    )


def _window_name(source: s.FromClause, context: Context) -> Variable | IRI | None:
    match source.window_name:
        case s.Var(name):
            return Variable(name)
        case s.Iri() as iri:
            return context.names.iri(iri)
    return None


def _declare(
    streams: dict[Variable | IRI, DeclaredStream] | dict[IRI, DeclaredStream],
    key: Variable | IRI,
    stream: DeclaredStream,
    source: s.FromClause,
) -> None:
    if key in streams:
        raise QueryError(
            f"duplicate declaration of {key}",
            source.span,
            hint="two windows on one stream need names: FROM NAMED WINDOW <w> ON <s> [..]",
        )
    streams[key] = stream  # type: ignore[index]
