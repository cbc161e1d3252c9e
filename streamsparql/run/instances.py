"""The instances of a query with parameters: a key, and a term for each parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from streamsparql.algebra.graph import Construct
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.errors import EngineError
from streamsparql.physical.batch import IntArray
from streamsparql.physical.dictionary.term_dictionary import (
    BLANK_SORT,
    LITERAL_SORT,
    UNBOUND_SORT,
    TermDictionary,
)
from streamsparql.sources.tables import arrow_batches, with_term_texts
from streamsparql.sources.term_texts import ntriples_texts


class Instances:
    """Instances by number, with the term ids of their parameters.

    >>> terms = TermDictionary()
    >>> instances = Instances(("who",), (), terms)
    >>> values = instances.encode([{"who": "<ann>"}, {"who": "<bob>"}])
    >>> instances.add(np.array([1, 2]), values, [None, 7])
    >>> instances.remove([1])
    >>> len(instances), terms.texts(instances.values_of(np.array([1, 2]))[0]).to_pylist()
    (1, ['<ann>', '<bob>'])
    """

    def __init__(
        self, parameters: Sequence[str], subjects: Iterable[str], terms: TermDictionary
    ) -> None:
        self.parameters = tuple(parameters)
        self._subjects = frozenset(subjects)
        self._terms = terms
        self._numbers: IntArray = np.empty(0, np.int64)
        self._values: list[IntArray] = [self._numbers for _ in self.parameters]
        self._starts: IntArray = self._numbers
        self._removed: set[int] = set()

    def __len__(self) -> int:
        return len(self._numbers) - len(self._removed)

    @property
    def numbers(self) -> IntArray:
        """The numbers, in ascending order."""
        if not self._removed:
            return self._numbers
        return self._numbers[~np.isin(self._numbers, np.fromiter(self._removed, np.int64))]

    def retained_ids(self) -> Iterator[IntArray]:
        """Yield the term ids of the parameters."""
        yield from self._values

    def save(self) -> pa.Table:
        """Return the instances as a table: number, start, and the ids of the parameters."""
        removed = np.isin(self._numbers, np.fromiter(self._removed, np.int64))
        columns = {"number": self._numbers, "start": self._starts, "removed": removed}
        values = {f"${n}": ids for n, ids in zip(self.parameters, self._values, strict=True)}
        return pa.table({**columns, **values})

    def load(self, table: pa.Table) -> None:
        """Restore instances that `save` returned."""
        self._numbers, self._starts = (_ids_of(table[name]) for name in ("number", "start"))
        self._values = [_ids_of(table[f"${name}"]) for name in self.parameters]
        self._removed = set(self._numbers[np.array(table["removed"].to_pylist(), bool)].tolist())

    def encode(self, rows: Sequence[Mapping[str, Any]] | pa.Table) -> list[IntArray]:
        """Return the term ids of the parameters of new instances; raise if one is invalid."""
        if isinstance(rows, pa.Table):
            self._check_names(rows.column_names)
            columns = {name: rows[name].to_pylist() for name in self.parameters}
        else:
            for row in rows:
                self._check_names(row)
            columns = {name: [row[name] for row in rows] for name in self.parameters}
        return [self._ids(name, values) for name, values in columns.items()]

    def _check_names(self, names: Iterable[str]) -> None:
        known = {str(name).removeprefix("$") for name in names}
        for name in self.parameters:
            if name not in known:
                raise EngineError(f"missing parameter ${name}; the query has {self._listed()}")
        for name in known:
            if name not in self.parameters:
                raise EngineError(f"unknown parameter ${name}; the query has {self._listed()}")

    def _listed(self) -> str:
        return ", ".join(f"${name}" for name in self.parameters) or "no parameter"

    def _ids(self, name: str, values: list[Any]) -> IntArray:
        ids = self._terms.encode(values, "", ntriples_texts)
        sorts = self._terms.sorts(ids)
        for wrong, why in (
            (sorts == UNBOUND_SORT, "not an RDF term; write <iri> or a literal as in N-Triples"),
            (sorts == BLANK_SORT, "a blank node, which has no meaning outside of its source"),
            (
                (sorts == LITERAL_SORT) & (name in self._subjects),
                "a literal, which cannot be a subject or a predicate",
            ),
        ):
            if wrong.any():
                raise EngineError(f"${name}: {values[int(wrong.argmax())]!r} is {why}")
        return ids

    def add(
        self, numbers: IntArray, values: Sequence[IntArray], starts: Sequence[int | None]
    ) -> None:
        """Add instances with these starts; their numbers are greater than those so far."""
        known = np.array([-1 if start is None else start for start in starts], np.int64)
        self._starts = np.concatenate([self._starts, known])
        self._numbers = np.concatenate([self._numbers, numbers])
        pairs = zip(self._values, values, strict=True)
        self._values = [np.concatenate(pair) for pair in pairs]

    def check(self, numbers: Collection[int]) -> None:
        """Raise an error if an instance does not exist."""
        for number in sorted(set(numbers) - set(self.numbers.tolist())):
            raise EngineError(f"unknown instance {number}")

    def remove(self, numbers: Collection[int]) -> None:
        """Remove instances; their terms are known until `forget` is called."""
        self._removed.update(numbers)

    def forget(self) -> None:
        """Forget the terms of the instances that were removed."""
        if self._removed:
            kept = ~np.isin(self._numbers, np.fromiter(self._removed, np.int64))
            self._numbers = self._numbers[kept]
            self._values = [values[kept] for values in self._values]
            self._starts = self._starts[kept]
            self._removed.clear()

    def start_of(self, number: int) -> int | None:
        """Return the start of an instance; None if that is the first item of its streams."""
        start = int(self._starts[np.searchsorted(self._numbers, number)])
        return None if start < 0 else start

    def values_of_one(self, number: int) -> list[int]:
        """Return the ids of the parameters of one instance."""
        return [int(values[0]) for values in self.values_of(np.array([number]))]

    def values_of(self, numbers: IntArray) -> list[IntArray]:
        """Return the ids of the parameters of instances."""
        known = self._numbers
        if len(known) and known[-1] - known[0] == len(known) - 1:  # none was removed
            places = numbers - known[0]
        else:
            places = np.searchsorted(known, numbers)
        return [values[places] for values in self._values]


def _ids_of(column: pa.ChunkedArray) -> IntArray:
    return np.array(column.to_numpy(), np.int64)


def subjects_of(plan: Plan) -> frozenset[str]:
    """Return the parameters that stand where no literal may stand.

    >>> from streamsparql.algebra.rules.sketch import triples
    >>> from streamsparql.algebra.sharing import with_parameters
    >>> sorted(subjects_of(with_parameters(triples("?x ?p ?y"), ["x", "p", "y"])))
    ['p', 'x']
    """
    places: list[object] = []
    for node in plan.operators():
        match node:
            case TriplePatternMatching(pattern):
                places += pattern[:2]
            case Path(subject):
                places.append(subject)
            case Construct(template):
                places += (place for pattern in template for place in pattern[:2])
    return frozenset(place.name for place in places if isinstance(place, Parameter))


def rows_of_table(source: Any) -> list[Mapping[str, Any]] | pa.Table:
    """Return the rows of a table, or an iterable of mappings, as they are encoded."""
    batches = arrow_batches(with_term_texts(source))
    if batches is not None:
        return pa.Table.from_batches(list(batches))
    rows = list(source)
    for row in rows:
        if not isinstance(row, Mapping):
            raise EngineError(f"an instance is a mapping of parameters to terms, not {row!r}")
    return rows
