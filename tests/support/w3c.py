"""The test suites of the W3C for SPARQL 1.0 (data-r2) and SPARQL 1.1: what they ask and expect.

A suite is a tree of folders, each with a manifest that lists test cases. `cases` finds them all: a
folder with a manifest that is put beside the others is picked up as it is. Of a case this module
knows the query, the data (`inputs`) and the answer (`expected`), and it tells whether ours is the
same (`difference`).

Two answers are the same when one becomes the other by renaming blank nodes. Terms are compared as
they are written. Only where a plan computes terms, in expressions or aggregates, does a literal
count by datatype and value: SPARQL does not say how `1/2` is written, nor in which order doubles
are added. (So do the numbers of a TSV file, which are written in short.)

What this cannot see: the last digits of computed doubles, and the order of rows by a key that the
query does not show, except where the result file numbers its rows; the order altogether where the
file neither numbers its rows nor has them in order.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import cache
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

import pyoxigraph as ox

from streamsparql import Query
from streamsparql.algebra.expressions import value_or_none
from streamsparql.algebra.functions import Run
from streamsparql.algebra.group import Aggregation
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.order import comparison_key
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import Distinct, Extend, OrderBy, Projection, Reduced, Slice
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import Snapshot
from streamsparql.algebra.terms import IRI, RDF, BlankNode, Literal, Term, Triple
from streamsparql.algebra.xsd.numeric import Single
from streamsparql.algebra.xsd.values import date_time_literal, value_of

SUITES = {
    "sparql10": "http://www.w3.org/2001/sw/DataAccess/tests/data-r2/",
    "sparql11": "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/",
}
"""The folders of the suites below `w3c`, and the IRI that each is published at."""

NO_QUERIES = {
    "entailment": "queries under RDFS, OWL and RIF entailment; ours is simple entailment",
    "service": "SERVICE is not supported",
    "syntax-fed": "SERVICE",
    "service-description": "what an endpoint says of itself",
    "protocol": "HTTP",
    "http-rdf-update": "HTTP",
    "add": "SPARQL Update",
    "basic-update": "SPARQL Update",
    "clear": "SPARQL Update",
    "copy": "SPARQL Update",
    "delete": "SPARQL Update",
    "delete-data": "SPARQL Update",
    "delete-insert": "SPARQL Update",
    "delete-where": "SPARQL Update",
    "drop": "SPARQL Update",
    "move": "SPARQL Update",
    "syntax-update-1": "SPARQL Update",
    "syntax-update-2": "SPARQL Update",
    "update-silent": "SPARQL Update",
}
"""The folders that are left out, each with what it tests."""

Kind = OneOf["accepted", "refused", "evaluated"]

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"

_KINDS: dict[Term, Kind] = {
    IRI(_MF + "PositiveSyntaxTest"): "accepted",
    IRI(_MF + "PositiveSyntaxTest11"): "accepted",
    IRI(_MF + "NegativeSyntaxTest"): "refused",
    IRI(_MF + "NegativeSyntaxTest11"): "refused",
    IRI(_MF + "QueryEvaluationTest"): "evaluated",
    IRI(_MF + "CSVResultFormatTest"): "evaluated",
}


# -- manifests -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One test: a query that is to be accepted, or refused, or to give `result` over some data.

    Files have names of the form `base` + file name, as where the suites are published. `lax` says
    that the query may drop duplicates (REDUCED).
    """

    name: str
    kind: Kind
    folder: Path
    base: str
    query: str
    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    result: str = ""
    lax: bool = False

    def path(self, iri: str) -> Path:
        """The file that is published at an IRI."""
        return self.folder / iri.removeprefix(self.base)

    @property
    def text(self) -> str:
        """The query, its line ends as they are."""
        return self.path(self.query).read_bytes().decode()


def cases(data: Path) -> Iterator[Case]:
    """All cases of all manifests below `data`, folder by folder."""
    for suite, home in SUITES.items():
        root = data / "w3c" / suite
        for manifest in sorted(root.rglob("manifest.ttl")):
            folder = manifest.parent
            if folder.name not in NO_QUERIES:
                base = home + "".join(f"{part}/" for part in folder.relative_to(root).parts)
                yield from _entries(manifest, folder, base)


def _entries(manifest: Path, folder: Path, base: str) -> Iterator[Case]:
    about = _Description(load(manifest, base + manifest.name))
    for listed in about.subjects(_MF + "entries"):
        for entry in about.list(about.one(listed, _MF + "entries")):
            action = about.one(entry, _MF + "action")
            queries = about.all(action, _QT + "query")
            kinds = [_KINDS[x] for x in about.all(entry, RDF + "type") if x in _KINDS]
            if not kinds:
                continue  # SPARQL Update, and what an endpoint does
            kind = kinds[0]
            yield Case(
                name="/".join((folder.parent.name, folder.name, _iri(entry).rpartition("#")[2])),
                kind=kind,
                folder=folder,
                base=base,
                query=_iri(queries[0] if queries else action),
                default=tuple(map(_iri, about.all(action, _QT + "data"))),
                named=tuple(map(_iri, about.all(action, _QT + "graphData"))),
                result=_iri(about.one(entry, _MF + "result")) if kind == "evaluated" else "",
                lax=bool(about.all(entry, _MF + "resultCardinality")),
            )


class _Description:
    """A graph, to be asked for the objects of a subject's predicate."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[tuple[Term, str], list[Term]] = {}
        for subject, predicate, value in triples:
            self._objects.setdefault((subject, _iri(predicate)), []).append(value)

    def all(self, subject: Term, predicate: str) -> list[Term]:
        return self._objects.get((subject, predicate), [])

    def one(self, subject: Term, predicate: str) -> Term:
        values = self.all(subject, predicate)
        assert len(values) == 1, f"{subject} has {len(values)} values of {predicate}"
        return values[0]

    def subjects(self, predicate: str) -> list[Term]:
        return [subject for subject, other in self._objects if other == predicate]

    def list(self, head: Term) -> Iterator[Term]:
        while head != IRI(RDF + "nil"):
            yield self.one(head, RDF + "first")
            head = self.one(head, RDF + "rest")


def _iri(term: Term) -> str:
    assert isinstance(term, IRI), term
    return term.value


# -- data ------------------------------------------------------------------------------------------


@cache
def load(path: Path, iri: str) -> frozenset[Triple]:
    """The triples of a file's default graph. Blank nodes are the file's own."""
    return _loaded(path, iri).get(None, frozenset())


@cache
def _loaded(path: Path, iri: str) -> dict[IRI | None, frozenset[Triple]]:
    """The graphs of a file; that with no name is the default graph."""
    found: dict[IRI | None, set[Triple]] = {}
    for quad in ox.parse(path=path, base_iri=iri):
        places = (quad.subject, quad.predicate, quad.object)
        name = IRI(quad.graph_name.value) if isinstance(quad.graph_name, ox.NamedNode) else None
        found.setdefault(name, set()).add(Triple(*(_term(x, f"{iri} ") for x in places)))
    return {name: frozenset(triples) for name, triples in found.items()}


def _term(found: object, scope: str = "") -> Term:
    match found:
        case ox.NamedNode():
            return IRI(found.value)
        case ox.BlankNode():
            return BlankNode(scope + found.value)
        case ox.Literal():
            if found.language is not None:
                return Literal(found.value, language=found.language)
            return Literal(found.value, IRI(found.datatype.value))
    raise AssertionError(found)


def inputs(case: Case, query: Query) -> Inputs:
    """What a case's query is asked over.

    A query with FROM clauses describes its dataset itself (SPARQL 1.1, 13.2): it gets the files
    that it names, and no others.
    """
    described = query.translation.dataset
    default, named = case.default, case.named
    if described.graphs is not None:
        default, named = (), tuple(iri.value for iri in (*described.static, *described.graphs))
    graphs = {IRI(iri): load(case.path(iri), iri) for iri in named}
    for iri in default:  # a TriG file has named graphs of its own
        inside = _loaded(case.path(iri), iri).items()
        graphs |= {name: triples for name, triples in inside if name is not None}
    return Inputs(
        graph=frozenset(triple for iri in default for triple in load(case.path(iri), iri)),
        graphs=graphs,
        run=Run(now=date_time_literal(1_300_000_000_000)),
    )


# -- answers ---------------------------------------------------------------------------------------

Row = tuple[Hashable, ...]


@dataclass(frozen=True)
class Answer:
    """What a query gives, as rows: solutions, or triples, or one boolean.

    A cell is a term, or None where a variable is unbound. `ordered` says that the rows stand in
    the one order that is right.
    """

    form: OneOf["solutions", "graph", "boolean"]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False

    def map(self, function: Callable[[Hashable], Hashable]) -> Answer:
        """The answer with another value in each cell."""
        return replace(self, rows=tuple(tuple(map(function, row)) for row in self.rows))

    def solutions(self) -> Iterator[dict[Variable, Term]]:
        """The rows as solution mappings."""
        for row in self.rows:
            cells = zip(self.columns, row, strict=True)
            yield {Variable(name): x for name, x in cells if isinstance(x, Term)}


def _table(columns: Iterable[str], rows: Iterable[Mapping[str, Term]], ordered: bool) -> Answer:
    names = tuple(sorted(columns))
    return Answer("solutions", names, tuple(tuple(map(row.get, names)) for row in rows), ordered)


def _graph(triples: Iterable[Triple]) -> Answer:
    return Answer("graph", ("subject", "predicate", "object"), tuple(triples))


def _boolean(value: bool) -> Answer:
    return Answer("boolean", ("answer",), ((value,),))


def answer(query: Query, snapshot: Snapshot[Any]) -> Answer:
    """A snapshot of a query as an answer."""
    if query.form == "ask":
        (value,) = snapshot
        return _boolean(value_of(value) is True)
    if query.form == "select":
        rows = ({v.name: term for v, term in row.items()} for row in snapshot)
        return _table(query.variables, rows, ordered=False)
    return _graph(snapshot)


def expected(case: Case) -> Answer:
    """The answer in a case's result file."""
    path = case.path(case.result)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        cells = (line or [""] for line in lines)  # one column, unbound: an empty line
        rows = (dict(zip(header, map(_from_csv, line), strict=True)) for line in cells)
        return _table(header, rows, ordered=False)
    if path.suffix in (".srx", ".srj", ".json", ".tsv"):
        found = ox.parse_query_results(path=path)
        if isinstance(found, ox.QueryBoolean):
            return _boolean(bool(found))
        names = [variable.value for variable in found.variables]
        solutions = [{n: _term(row[n]) for n in names if row[n] is not None} for row in found]
        return _table(names, solutions, ordered=False)
    triples = load(path, case.result)
    is_result_set = any(triple.object == IRI(_RS + "ResultSet") for triple in triples)
    return _result_set(triples) if is_result_set else _graph(triples)


def _result_set(triples: frozenset[Triple]) -> Answer:
    """A result that is written in the vocabulary of the working group's old suite."""
    about = _Description(triples)
    (root,) = (x.subject for x in triples if x.object == IRI(_RS + "ResultSet"))
    if truth := about.all(root, _RS + "boolean"):
        return _boolean(value_of(truth[0]) is True)
    solutions = about.all(root, _RS + "solution")
    ordered = any(about.all(solution, _RS + "index") for solution in solutions)
    if ordered:
        solutions.sort(key=lambda solution: comparison_key(about.one(solution, _RS + "index")))
    rows = (
        {
            _lexical(about.one(binding, _RS + "variable")): about.one(binding, _RS + "value")
            for binding in about.all(solution, _RS + "binding")
        }
        for solution in solutions
    )
    return _table(map(_lexical, about.all(root, _RS + "resultVariable")), rows, ordered)


def _lexical(term: Term) -> str:
    assert isinstance(term, Literal), term
    return term.lexical


# -- comparison ------------------------------------------------------------------------------------


def difference(case: Case, query: Query, ours: Answer, theirs: Answer) -> str:
    """How our answer differs from theirs; "" where it is the same."""
    if (ours.form, ours.columns) != (theirs.form, theirs.columns):
        return f"{ours.form} {ours.columns} where {theirs.form} {theirs.columns} are expected"
    if case.result.endswith(".csv"):
        found = agree(ours.map(_as_csv), theirs)
    else:
        found = agree(ours, theirs, case.lax)
        if not found and (_computes(query.logical) or case.result.endswith(".tsv")):
            found = agree(ours.map(_worth), theirs.map(_worth), case.lax)
        if found and _sequence(query, ours) != _sequence(query, theirs):
            if theirs.ordered or _is_sorted(query, theirs):
                return _report("the order differs", ours, theirs)
    return "" if found else _report("the answers differ", ours, theirs)


def agree(ours: Answer, theirs: Answer, lax: bool = False) -> bool:
    """Whether a renaming of blank nodes makes one of the other.

    Rows are told apart by their place, or else by how often they come. `lax`: each row of theirs
    comes at least once, and not more often than there.
    """
    if lax:
        one, other = Counter(ours.rows), Counter(theirs.rows)
        return any(
            all(n <= other[_renamed(row, renaming)] for row, n in one.items())
            for renaming in isomorphisms(frozenset(one), frozenset(other))
        )
    if theirs.ordered:
        sets = [frozenset((i, *row) for i, row in enumerate(x.rows)) for x in (ours, theirs)]
    else:
        sets = [frozenset((n, *row) for row, n in Counter(x.rows).items()) for x in (ours, theirs)]
    return any(True for _ in isomorphisms(*sets))


Colours = dict[BlankNode, int]


def isomorphisms(
    one: frozenset[Row], other: frozenset[Row]
) -> Iterator[dict[BlankNode, BlankNode]]:
    """The renamings of blank nodes that make `other` of `one`.

    Blank nodes get colours by where they stand beside what; only nodes of one colour can be images
    of each other. Where several nodes share a colour, one of them is tried with each (the method of
    individualisation and refinement). Whatever the colours say, a renaming is checked in the end.

    >>> a, b, c, d = map(BlankNode, "abcd")
    >>> list(isomorphisms(frozenset({(a, b)}), frozenset({(c, d)}))) == [{a: c, b: d}]
    True
    >>> list(isomorphisms(frozenset({(a, a)}), frozenset({(c, d)})))
    []
    """
    nodes, images = _blank_nodes(one), _blank_nodes(other)
    if len(one) != len(other) or len(nodes) != len(images):
        return
    pending: list[tuple[Colours, Colours]] = [(dict.fromkeys(nodes, 0), dict.fromkeys(images, 0))]
    while pending:
        before, before_there = pending.pop()
        ours, theirs = _refined(one, before), _refined(other, before_there)
        sizes = Counter(ours.values())
        if sizes != Counter(theirs.values()):
            continue
        undecided = [node for node in nodes if sizes[ours[node]] > 1]
        if undecided:
            node = undecided[0]
            candidates = [image for image in images if theirs[image] == ours[node]]
            pending += [({**ours, node: 1}, {**theirs, image: 1}) for image in candidates]
            continue
        by_colour = {colour: image for image, colour in theirs.items()}
        renaming = {node: by_colour[colour] for node, colour in ours.items()}
        if {_renamed(row, renaming) for row in one} == other:
            yield renaming


def _blank_nodes(rows: Iterable[Row]) -> list[BlankNode]:
    return list(dict.fromkeys(x for row in rows for x in row if isinstance(x, BlankNode)))


def _refined(rows: frozenset[Row], colours: Colours) -> Colours:
    """Colours that tell apart all that neighbours of neighbours tell apart."""
    for _ in colours:
        seen: dict[BlankNode, Counter[Hashable]] = {node: Counter() for node in colours}
        for row in rows:
            for node in _blank_nodes([row]):
                seen[node][tuple(_look(x, node, colours) for x in row)] += 1
        colours = {node: hash((colours[node], frozenset(seen[node].items()))) for node in colours}
    return colours


def _look(cell: Hashable, node: BlankNode, colours: Colours) -> Hashable:
    return (cell == node, colours[cell]) if isinstance(cell, BlankNode) else cell


def _renamed(row: Row, renaming: Mapping[BlankNode, BlankNode]) -> Row:
    return tuple(renaming[x] if isinstance(x, BlankNode) else x for x in row)


def _computes(plan: Plan) -> bool:
    """Whether there are terms in the answer that are not in the data."""
    return any(isinstance(node, Extend | Aggregation) for node in plan.walk())


def _worth(cell: Hashable) -> Hashable:
    """What a literal counts as where plans compute: its datatype and its value."""
    value = value_of(cell) if isinstance(cell, Literal) else None
    if not isinstance(cell, Literal) or value is None or isinstance(value, str):
        return cell
    if isinstance(value, Decimal):  # how many places a quotient has is not said
        return cell.datatype, Context(prec=15).plus(value)
    if isinstance(value, float):  # the last digits depend on the order of additions
        return cell.datatype, f"{value:.{6 if isinstance(value, Single) else 12}g}"
    return cell.datatype, value


def _as_csv(cell: Hashable) -> Hashable:
    """What CSV keeps of a term."""
    match cell:
        case IRI(value):
            return Literal(value)
        case Literal(lexical):
            return Literal(lexical)
        case None:
            return Literal("")
    return cell


def _from_csv(cell: str) -> Term:
    return BlankNode(cell[2:]) if cell.startswith("_:") else Literal(cell)


def _order(query: Query) -> tuple[tuple[Expression, bool], ...]:
    """The keys of the query's ORDER BY, and whether they descend."""
    plan = query.logical
    while isinstance(plan, Projection | Distinct | Reduced | Slice):
        plan = plan.input
    return plan.keys if isinstance(plan, OrderBy) else ()


def _sequence(query: Query, found: Answer) -> list[list[Hashable]]:
    """What the query's ORDER BY compares, row by row: the same for the same order."""
    keys = [expression for expression, _ in _order(query)]
    return [
        [_without_label(value_or_none(key, row, Run())) for key in keys]
        for row in found.solutions()
        if keys
    ]


def _is_sorted(query: Query, found: Answer) -> bool:
    """Whether a file that does not number its rows has them in the query's order all the same."""
    rows = list(found.solutions())
    by_keys = list(range(len(rows)))
    for key, descending in reversed(_order(query)):
        values = [comparison_key(value_or_none(key, row, Run())) for row in rows]
        by_keys.sort(key=values.__getitem__, reverse=descending)
    return by_keys == sorted(by_keys)


def _without_label(term: Term | None) -> Hashable:
    return BlankNode if isinstance(term, BlankNode) else comparison_key(term)


def _report(message: str, ours: Answer, theirs: Answer) -> str:
    def show(rows: Iterable[Row]) -> list[str]:
        return [" | ".join("-" if x is None else str(x) for x in row) for row in rows]

    one, other = Counter(ours.rows), Counter(theirs.rows)
    lines = [message, " | ".join(theirs.columns)]
    lines += ["we give:", *show(ours.rows), "expected:", *show(theirs.rows)]
    lines += ["only we have:", *show((one - other).elements())]
    lines += ["we miss:", *show((other - one).elements())]
    return "\n".join(lines)
