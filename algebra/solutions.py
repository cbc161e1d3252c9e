"""Solution mappings: partial functions from variables to terms, and what joins them.

Beside the variables that a query names there are hidden ones (hidden.py). Among these are *stamps*,
the time of the stream element that bound something (SEMANTICS.md section 8): they do not count for
compatibility, and merge by `max`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamsparql.algebra.node import Node
from streamsparql.algebra.terms import Literal, Term


class Expression(Node):
    """The base of expressions; `expressions` has the other kinds."""


class Variable(Expression):
    """A variable: a place in a pattern, a column of a solution, an expression that reads it.

    >>> Variable("x"), Variable("x").hidden
    (?x, False)
    """

    name: str

    def __post_init__(self) -> None:
        assert not self.name.startswith("."), "such names are those of Hidden variables"

    @property
    def hidden(self) -> bool:
        """Whether no query can name it: see `Hidden`."""
        return False

    @property
    def stamp(self) -> bool:
        """Whether it holds the time of a stream element."""
        return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.name == other.name

    def __repr__(self) -> str:
        return f"?{self.name}"

    __str__ = __repr__


class Solution(Mapping[Variable, Term]):
    """A solution mapping mu, immutable. A variable that is not in it is unbound.

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
        """The bound variables, stamps left out."""
        return frozenset(variable for variable in self._bindings if not variable.stamp)

    def project(self, variables: Iterable[Variable]) -> Solution:
        """The part of the mapping on these variables."""
        return Solution({v: self._bindings[v] for v in variables if v in self._bindings})

    def extend(self, variable: Variable, term: Term) -> Solution:
        """The mapping with one more binding."""
        return Solution({**self._bindings, variable: term})


EMPTY = Solution()


def compatible(one: Solution, other: Solution) -> bool:
    """Return whether mu1 ~ mu2: they agree where both are bound (ESWC 2008, Definition 10)."""
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    return all(
        variable.stamp or variable not in many or many[variable] == term
        for variable, term in few.items()
    )


def merge_solutions(one: Solution, other: Solution) -> Solution:
    """Return `merge(mu1, mu2)`: the union of two compatible mappings; of two stamps the later.

    `merge` is that of ESWC 2008, Definition 10.
    """
    bindings = {**one, **other}
    for variable in bindings:
        if variable.stamp and variable in one and variable in other:
            bindings[variable] = later_stamp(one[variable], other[variable])
    return Solution(bindings)


def later_stamp(one: Term, other: Term) -> Term:
    """The greater of two stamps, which are xsd:integer literals."""
    assert isinstance(one, Literal)
    assert isinstance(other, Literal)
    return max(one, other, key=lambda stamp: int(stamp.lexical))


def number_equal_rows(rows: Iterable[tuple[Solution, int]]) -> Iterator[tuple[Solution, int]]:
    """Each row as often as it comes, with its number among those that are the same but for stamps.

    It is what tells equal rows apart (R16). Stamps do not count: where a stream repeats itself, a
    row goes on with another stamp, and is the first of its kind as before.

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
    held = ((v.name, term) for v, term in row.items() if v.stamp)
    return sorted((name, int(x.lexical)) for name, x in held if isinstance(x, Literal))
