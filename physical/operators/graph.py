"""CONSTRUCT: triples from rows (twin of algebra.graph)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from streamsparql.algebra import graph
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Solution, Variable
from streamsparql.algebra.terms import BlankNode, Term
from streamsparql.limits import checked
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, Batch, IntArray
from streamsparql.physical.dictionary.term_dictionary import BLANK_SORT, IRI_SORT, TermDictionary
from streamsparql.physical.hidden import SINCE, is_carried, variable_of
from streamsparql.physical.kernels.keys import grouped
from streamsparql.physical.operator import Operator, Stateless


class Construct(Stateless):
    """The triples of one pattern of a template, instantiated with rows (section 4, R16).

    Invalid triples are left out. `number` is the column that distinguishes equal rows; a blank node
    of the template is a function of its label, the row and that number. The distinct union over the
    patterns of the template is the constructed graph. The triples have the columns `kept`, and
    the starts of events; `parameters` are the columns of the template's parameters.

    >>> from streamsparql.physical.operators.access import Always
    >>> terms, x = TermDictionary(), Variable("x")
    >>> rows = Always.of({"x": terms.encode(["<a>", '"not a subject"'])}, 2)
    >>> from streamsparql.algebra.terms import IRI
    >>> triples = Construct(rows, TriplePattern(x, IRI("p"), x), terms).apply(rows.rows)
    >>> terms.texts(triples.columns[".s"]).to_pylist()
    ['<a>']
    """

    implements: ClassVar[tuple[type[Plan], ...]] = (graph.Construct,)

    def __init__(
        self,
        input: Operator,  # noqa: A002 -- the role
        pattern: TriplePattern,
        terms: TermDictionary,
        number: str | None = None,
        kept: Sequence[str] = (),
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        kept = (*kept, *(name for name in input.names if name == SINCE))
        super().__init__((*TRIPLE, *kept), input)
        self.pattern = pattern
        self.number = number
        self._terms = terms
        self._kept, self._parameters = kept, parameters or {}
        self._fixed = {
            place: terms.id_of(place, keep=True)
            for place in pattern
            if not isinstance(place, Variable | BlankNode | Parameter)
        }

    @override
    def apply(self, batch: Batch) -> Batch:
        columns = [self._column(place, batch) for place in self.pattern]
        kept = {name: batch.columns[name] for name in self._kept}
        triples = Batch(
            {**dict(zip(TRIPLE, columns, strict=True)), **kept},
            batch.start,
            batch.end,
            batch.count,
        )
        subjects, predicates = self._terms.sorts(columns[0]), self._terms.sorts(columns[1])
        valid = (subjects == IRI_SORT) | (subjects == BLANK_SORT)
        return triples.where(valid & (predicates == IRI_SORT) & (columns[2] != 0))

    def _column(self, place: Term | Variable | Parameter, batch: Batch) -> IntArray:
        if isinstance(place, Variable):
            return batch.column(place.name)
        if isinstance(place, Parameter):
            return batch.columns[self._parameters[place.name]]
        if isinstance(place, BlankNode):
            return self._blank_nodes(place, batch)
        return np.full(len(batch), self._fixed[place], np.int64)

    def _blank_nodes(self, place: BlankNode, batch: Batch) -> IntArray:
        """Return a node per distinct row: a hash of the terms of the row, computed row by row."""
        assert self.number is not None
        named = {
            n: c
            for n, c in batch.columns.items()
            if n not in (self.number, SINCE) and not is_carried(n)
        }
        columns = [*named.values(), batch.columns[self.number]]
        order, heads = grouped(columns, len(batch))
        first = order[heads]
        numbers = self._terms.integers_of(batch.columns[self.number][first]).tolist()
        rows = zip(*(c[first].tolist() for c in named.values()), strict=True) if named else None
        variables = [variable_of(name) for name in named]
        nodes = []
        for number in checked(numbers):
            terms = () if rows is None else next(rows)
            pairs = ((v, self._terms.term_of(t)) for v, t in zip(variables, terms, strict=True))
            row = Solution({v: term for v, term in pairs if term is not None})
            nodes.append(self._terms.id_of(graph.template_node(place, row, number)))
        ids = np.empty(len(batch), np.int64)
        ids[order] = np.repeat(nodes, np.diff(np.append(heads, len(batch))))
        return ids

    @override
    def facts(self) -> str:
        return " ".join(map(str, self.pattern))


class SelectSort(Stateless):
    """The rows whose column has a term of a certain sort: an IRI, a blank node, a literal.

    >>> from streamsparql.physical.operators.access import Always
    >>> terms = TermDictionary()
    >>> rows = Always.of({"x": terms.encode(["_:n", "<a>", "1"])}, 3)
    >>> blank = SelectSort(rows, "x", BLANK_SORT, terms).apply(rows.rows)
    >>> terms.texts(blank.columns["x"]).to_pylist()
    ['_:n']
    """

    family = "graph"

    def __init__(self, input: Operator, column: str, sort: int, terms: TermDictionary) -> None:  # noqa: A002
        super().__init__(input.names, input)
        self.column, self.sort = column, sort
        self._terms = terms

    @override
    def apply(self, batch: Batch) -> Batch:
        return batch.where(self._terms.sorts(batch.columns[self.column]) == self.sort)
