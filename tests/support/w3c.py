"""The W3C test suites for SPARQL 1.0 (data-r2) and SPARQL 1.1: queries, data, expected answers.

A suite is a tree of folders, each with a manifest that lists test cases. `cases` yields the cases of
all manifests, including those of folders that are added later. For each case this module returns the
query, the data (`inputs`) and the expected answer (`expected`), and compares ours (`difference`).

Two answers are equal if a renaming of blank nodes makes them identical. Terms are compared by their
lexical form. Literals are compared by datatype and value only if a plan computes terms, in
expressions or aggregates, because SPARQL defines neither the lexical form of `1/2` nor the order in
which doubles are added; and for TSV files, which abbreviate numbers.

Not covered: the last digits of computed doubles; the order of rows by a key that the query does not
project, unless the result file numbers its rows; the order altogether if the file neither numbers
its rows nor sorts them.
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
    "entailment": "queries under RDFS, OWL and RIF entailment: `entailment_cases`",
    "service": "SERVICE is not supported",
    "syntax-fed": "SERVICE",
    "service-description": "the description of an endpoint",
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
"""The folders that are skipped, each with its subject."""

Kind = OneOf["accepted", "refused", "evaluated"]

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_SD = "http://www.w3.org/ns/sparql-service-description#"
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
    """One test: a query that is accepted or refused, or whose answer over some data is `result`.

    Files are named by IRIs, `base` + file name, as where the suites are published. If `lax`, the
    query may remove duplicates (REDUCED).
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
        """Return the file that is published at an IRI."""
        return self.folder / iri.removeprefix(self.base)

    @property
    def text(self) -> str:
        """The text of the query, with its original line ends."""
        return self.path(self.query).read_bytes().decode()


def cases(data: Path) -> Iterator[Case]:
    """Yield the cases of all manifests below `data`, folder by folder."""
    for suite, home in SUITES.items():
        root = data / "w3c" / suite
        for manifest in sorted(root.rglob("manifest.ttl")):
            folder = manifest.parent
            if folder.name not in NO_QUERIES:
                base = home + "".join(f"{part}/" for part in folder.relative_to(root).parts)
                yield from _entries(manifest, folder, base)


def entailment_cases(data: Path) -> Iterator[tuple[Case, frozenset[str]]]:
    """Yield the cases of queries under entailment, with their regimes, such as RDFS."""
    folder = data / "w3c" / "sparql11" / "entailment"
    manifest, base = folder / "manifest.ttl", SUITES["sparql11"] + "entailment/"
    about = _Description(load(manifest, base + manifest.name))
    for case in _entries(manifest, folder, base):
        entry = IRI(base + "manifest#" + case.name.rpartition("/")[2])
        (listed,) = about.all(about.one(entry, _MF + "action"), _SD + "entailmentRegime")
        regimes = [listed] if isinstance(listed, IRI) else about.list(listed)
        yield case, frozenset(_iri(one).rpartition("/")[2] for one in regimes)


def _entries(manifest: Path, folder: Path, base: str) -> Iterator[Case]:
    about = _Description(load(manifest, base + manifest.name))
    for listed in about.subjects(_MF + "entries"):
        for entry in about.list(about.one(listed, _MF + "entries")):
            action = about.one(entry, _MF + "action")
            queries = about.all(action, _QT + "query")
            kinds = [_KINDS[x] for x in about.all(entry, RDF + "type") if x in _KINDS]
            if not kinds:
                continue  # SPARQL Update and protocols
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
    """An index of a graph: the objects by subject and predicate."""

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
    """Load the triples of a file's default graph; the labels of blank nodes are scoped to the file."""
    return _load_graphs(path, iri).get(None, frozenset())


@cache
def _load_graphs(path: Path, iri: str) -> dict[IRI | None, frozenset[Triple]]:
    """Load the graphs of a file by name; None is the name of the default graph."""
    graphs: dict[IRI | None, set[Triple]] = {}
    for quad in ox.parse(path=path, base_iri=iri):
        terms = (quad.subject, quad.predicate, quad.object)
        name = IRI(quad.graph_name.value) if isinstance(quad.graph_name, ox.NamedNode) else None
        graphs.setdefault(name, set()).add(Triple(*(_term(x, f"{iri} ") for x in terms)))
    return {name: frozenset(triples) for name, triples in graphs.items()}


def _term(value: object, scope: str = "") -> Term:
    match value:
        case ox.NamedNode():
            return IRI(value.value)
        case ox.BlankNode():
            return BlankNode(scope + value.value)
        case ox.Literal():
            if value.language is not None:
                return Literal(value.value, language=value.language)
            return Literal(value.value, IRI(value.datatype.value))
    raise AssertionError(value)


def inputs(case: Case, query: Query) -> Inputs:
    """Return the dataset of a case.

    A query with FROM clauses defines its own dataset (SPARQL 1.1, 13.2), which has only the files
    that they name.
    """
    described = query.translation.dataset
    default, named = case.default, case.named
    if described.graphs is not None:
        default, named = (), tuple(iri.value for iri in (*described.static, *described.graphs))
    graphs = {IRI(iri): load(case.path(iri), iri) for iri in named}
    for iri in default:  # a TriG file has named graphs, too
        inside = _load_graphs(case.path(iri), iri).items()
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
    """An answer as rows: solutions, triples, or one boolean.

    A cell is a term, or None if a variable is unbound. If `ordered`, no other order of the rows is
    correct.
    """

    form: OneOf["solutions", "graph", "boolean"]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False

    def map(self, function: Callable[[Hashable], Hashable]) -> Answer:
        """Return the answer with a function applied to each cell."""
        return replace(self, rows=tuple(tuple(map(function, row)) for row in self.rows))

    def solutions(self) -> Iterator[dict[Variable, Term]]:
        """Yield the rows as solution mappings."""
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
    """Convert a snapshot of a query to an answer."""
    if query.form == "ask":
        (value,) = snapshot
        return _boolean(value_of(value) is True)
    if query.form == "select":
        rows = ({v.name: term for v, term in row.items()} for row in snapshot)
        return _table(query.variables, rows, ordered=False)
    return _graph(snapshot)


def expected(case: Case) -> Answer:
    """Read the answer from a case's result file."""
    path = case.path(case.result)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        cells = (line or [""] for line in lines)  # an empty line is one unbound column
        rows = (dict(zip(header, map(_from_csv, line), strict=True)) for line in cells)
        return _table(header, rows, ordered=False)
    if path.suffix in (".srx", ".srj", ".json", ".tsv"):
        results = ox.parse_query_results(path=path)
        if isinstance(results, ox.QueryBoolean):
            return _boolean(bool(results))
        names = [variable.value for variable in results.variables]
        solutions = [{n: _term(row[n]) for n in names if row[n] is not None} for row in results]
        return _table(names, solutions, ordered=False)
    triples = load(path, case.result)
    is_result_set = any(triple.object == IRI(_RS + "ResultSet") for triple in triples)
    return _result_set(triples) if is_result_set else _graph(triples)


def _result_set(triples: frozenset[Triple]) -> Answer:
    """Parse a result in the vocabulary of the SPARQL 1.0 suite."""
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
    """Describe how our answer differs from theirs; return "" if they are equal."""
    if (ours.form, ours.columns) != (theirs.form, theirs.columns):
        return f"{ours.form} {ours.columns} where {theirs.form} {theirs.columns} are expected"
    if case.result.endswith(".csv"):
        equal = agree(ours.map(_as_csv), theirs)
    else:
        equal = agree(ours, theirs, case.lax)
        if not equal and (_computes(query.logical) or case.result.endswith(".tsv")):
            equal = agree(ours.map(_comparable), theirs.map(_comparable), case.lax)
        if equal and _sequence(query, ours) != _sequence(query, theirs):
            if theirs.ordered or _is_sorted(query, theirs):
                return _report("the order differs", ours, theirs)
    return "" if equal else _report("the answers differ", ours, theirs)


def agree(ours: Answer, theirs: Answer, lax: bool = False) -> bool:
    """Check that a renaming of blank nodes maps our answer to theirs.

    If their rows are ordered, positions must be equal, else multiplicities. If `lax`, each of their
    rows must occur in ours at least once, and at most as often as in theirs.
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
    """Yield the renamings of blank nodes that map `one` to `other`.

    Blank nodes are coloured by the rows in which they occur; a node can be mapped only to a node of
    the same colour. While several nodes share a colour, one of them is mapped to each candidate in
    turn (individualisation and refinement). Each renaming is verified at the end.

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
        ours, theirs = _refine(one, before), _refine(other, before_there)
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


def _refine(rows: frozenset[Row], colours: Colours) -> Colours:
    """Refine colours until they distinguish nodes by their neighbours at any distance."""
    for _ in colours:
        seen: dict[BlankNode, Counter[Hashable]] = {node: Counter() for node in colours}
        for row in rows:
            for node in _blank_nodes([row]):
                seen[node][tuple(_appearance(x, node, colours) for x in row)] += 1
        colours = {node: hash((colours[node], frozenset(seen[node].items()))) for node in colours}
    return colours


def _appearance(cell: Hashable, node: BlankNode, colours: Colours) -> Hashable:
    return (cell == node, colours[cell]) if isinstance(cell, BlankNode) else cell


def _renamed(row: Row, renaming: Mapping[BlankNode, BlankNode]) -> Row:
    return tuple(renaming[x] if isinstance(x, BlankNode) else x for x in row)


def _computes(plan: Plan) -> bool:
    """Check whether the answer can have terms that are not in the data."""
    return any(isinstance(node, Extend | Aggregation) for node in plan.walk())


def _comparable(cell: Hashable) -> Hashable:
    """Return what a computed literal is compared by: its datatype and rounded value."""
    value = value_of(cell) if isinstance(cell, Literal) else None
    if not isinstance(cell, Literal) or value is None or isinstance(value, str):
        return cell
    if isinstance(value, Decimal):  # the number of decimal places of a quotient is not defined
        return cell.datatype, Context(prec=15).plus(value)
    if isinstance(value, float):  # the last digits depend on the order of additions
        return cell.datatype, f"{value:.{6 if isinstance(value, Single) else 12}g}"
    return cell.datatype, value


def _as_csv(cell: Hashable) -> Hashable:
    """Return a term as it is read back from CSV."""
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
    """Return the keys of the query's ORDER BY, each with whether it is descending."""
    plan = query.logical
    while isinstance(plan, Projection | Distinct | Reduced | Slice):
        plan = plan.input
    return plan.keys if isinstance(plan, OrderBy) else ()


def _sequence(query: Query, answer: Answer) -> list[list[Hashable]]:
    """Return the sort keys of each row by the query's ORDER BY; equal for answers in equal order."""
    keys = [expression for expression, _ in _order(query)]
    return [
        [_without_label(value_or_none(key, row, Run())) for key in keys]
        for row in answer.solutions()
        if keys
    ]


def _is_sorted(query: Query, answer: Answer) -> bool:
    """Check whether a file that does not number its rows has them in the query's order."""
    rows = list(answer.solutions())
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
    lines += ["ours:", *show(ours.rows), "expected:", *show(theirs.rows)]
    lines += ["only in ours:", *show((one - other).elements())]
    lines += ["missing in ours:", *show((other - one).elements())]
    return "\n".join(lines)
