"""Solution mappings, partial functions from variables to terms: compatibility and merging.

Besides the variables of a query there are hidden ones (`hidden_variables`). Some of them are
*stamps*, the time of the stream element that bound a variable (SEMANTICS.md section 8):
compatibility ignores stamps, and they merge by `max`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamsparql.algebra.node import Node
from streamsparql.algebra.terms import Literal, Term


class Expression(Node):
    """The base of expressions; the module `expressions` has the other kinds."""


class Variable(Expression):
    """A variable: a place in a pattern, a column of a solution, an expression that reads it.

    >>> Variable("x"), Variable("x").hidden
    (?x, False)
    """

    name: str

    def __post_init__(self) -> None:
        assert not self.name.startswith("."), "names with a leading dot belong to hidden variables"

    @property
    def hidden(self) -> bool:
        """Whether a query cannot name the variable; see `Hidden`."""
        return False

    @property
    def stamp(self) -> bool:
        """Whether the variable is the time of a stream element."""
        return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.name == other.name

    def __repr__(self) -> str:
        return f"?{self.name}"

    __str__ = __repr__


class Solution(Mapping[Variable, Term]):
    """An immutable solution mapping mu; a variable that it does not contain is unbound.

    >>> from streamsparql.algebra.terms import IRI
    >>> x, y = Variable("x"), Variable("y")
    >>> merge_solutions(Solution({x: IRI("a")}), Solution({y: IRI("b")}))
    {?x: <a>, ?y: <b>}
    """

    __slots__ = ("_bindings", "_hash")

    def __init__(self, bindings: Mapping[Variable, Term] | Iterable[tuple[Variable, Term]] = ()):
        self._bindings = dict(bindings)
        self._hash: int | None = None

    def __getitem__(self, variable: Variable) -> Term:
        return self._bindings[variable]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._bindings)

    def __len__(self) -> int:
        return len(self._bindings)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._bindings.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Solution) and self._bindings == other._bindings

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{v}: {term}" for v, term in self._bindings.items()) + "}"

    @property
    def domain(self) -> frozenset[Variable]:
        """The bound variables except stamps."""
        return frozenset(variable for variable in self._bindings if not variable.stamp)

    def project(self, variables: Iterable[Variable]) -> Solution:
        """Return the mapping restricted to these variables."""
        return Solution({v: self._bindings[v] for v in variables if v in self._bindings})

    def extend(self, variable: Variable, term: Term) -> Solution:
        """Return the mapping with one more binding."""
        return Solution({**self._bindings, variable: term})


EMPTY = Solution()


def compatible(one: Solution, other: Solution) -> bool:
    """Return whether mu1 ~ mu2: they agree on each variable that both bind, except stamps.

    This is the condition of ESWC 2008, Definition 10.
    """
    smaller, larger = (one, other) if len(one) <= len(other) else (other, one)
    return all(
        variable.stamp or variable not in larger or larger[variable] == term
        for variable, term in smaller.items()
    )


def merge_solutions(one: Solution, other: Solution) -> Solution:
    """Return `merge(mu1, mu2)`, the union of two compatible mappings, with the later stamps.

    ESWC 2008, Definition 10.
    """
    bindings = {**one, **other}
    for variable in bindings:
        if variable.stamp and variable in one and variable in other:
            bindings[variable] = later_stamp(one[variable], other[variable])
    return Solution(bindings)


def later_stamp(one: Term, other: Term) -> Term:
    """Return the greater of two stamps, which are xsd:integer literals."""
    assert isinstance(one, Literal)
    assert isinstance(other, Literal)
    return max(one, other, key=lambda stamp: int(stamp.lexical))


def number_equal_rows(rows: Iterable[tuple[Solution, int]]) -> Iterator[tuple[Solution, int]]:
    """Yield each row once per multiplicity, with its number among rows equal up to stamps.

    The number distinguishes equal rows (R16). It ignores stamps so that a row keeps its number when
    the stream repeats a triple and the row continues with a later stamp.

    >>> x = Solution({Variable("x"): Literal("a")})
    >>> [number for _, number in number_equal_rows([(x, 2)])]
    [1, 2]
    """
    seen: dict[Solution, int] = {}
    for row, n in sorted(rows, key=lambda entry: _stamps(entry[0])):
        bare = row.project(v for v in row if not v.stamp)
        for _ in range(n):
            seen[bare] = seen.get(bare, 0) + 1
            yield row, seen[bare]


def _stamps(row: Solution) -> list[tuple[str, int]]:
    stamps = ((v.name, term) for v, term in row.items() if v.stamp)
    return sorted((name, int(x.lexical)) for name, x in stamps if isinstance(x, Literal))
