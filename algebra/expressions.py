"""Expressions over the terms of a row, with SPARQL's three-valued logic (SPARQL 1.1 section 17).

An evaluation gives a term or raises `ExpressionError`, which is the third value: FILTER takes it
for false, BIND leaves its variable unbound, `||` and `&&` can still decide. Strict functions are in
the table of `functions`; here are the forms that do not just evaluate all their arguments.

EXISTS is not among them: the translator puts a `Mark` below the operator that asks, and the
expression reads the mark's hidden variable. Nor are `timestamp(?x)` and `getDURATION()`: they are
hidden variables that matching and event operators bind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import ClassVar

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import FUNCTIONS, VOLATILE, Run, cast_function
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.node import Node
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Literal, Term, boolean
from streamsparql.algebra.xsd.literal_operators import effective_boolean_value, equal

Bindings = Mapping[Variable, Term]

OCCURRENCE: dict[str, Variable] = {
    "GETSTARTTIME": Hidden(PlanKind.START),
    "GETENDTIME": Hidden(PlanKind.END),
    "GETDURATION": Hidden(PlanKind.DURATION),
}
"""EP-SPARQL's functions, as the hidden variables that hold an event row's occurrence."""


MAX_RECURSION = 100
"""How many levels of an expression are evaluated by recursion, at up to four frames each."""


def evaluate(expression: Expression, row: Bindings, run: Run) -> Term:
    """Return the value of an expression on a row, or raise `ExpressionError`.

    >>> sum_ = Call("+", (Constant(Literal("1")), Variable("x")))
    >>> evaluate(sum_, {}, Run())
    Traceback (most recent call last):
        ...
    streamsparql.algebra.expression_error.ExpressionError: ?x is unbound
    """
    if expression.fold(_depth, keep="_depth") > MAX_RECURSION:
        return _evaluate_bottom_up(expression, row, run)
    return _evaluate(expression, row, run)


def _depth(node: Node, depths: list[int]) -> int:
    """Return how deep an expression nests; a chain such as `?a + ?b + ..` is one level."""
    if isinstance(node, Call) and node.args and isinstance(node.args[0], Call):
        depths[0] -= 1
    return 1 + max(depths, default=0)


def _evaluate_bottom_up(expression: Expression, row: Bindings, run: Run) -> Term:
    """Evaluate a deep expression without recursion.

    Each part is replaced by its value, and a part that is an error by COALESCE(), which is one.
    So the parts that `||` or IF would skip are evaluated too, which changes no value.
    """

    def replaced(node: Node, parts: list[Node]) -> Node:
        if not parts:
            return node
        shallow = node.with_parts(tuple(parts))
        assert isinstance(shallow, Expression)
        try:
            return Constant(_evaluate(shallow, row, run))
        except ExpressionError:
            return Coalesce(())

    value = expression.fold(replaced)
    if not isinstance(value, Constant):
        raise ExpressionError("a part of the expression is an error")
    return value.term


def _evaluate(expression: Expression, row: Bindings, run: Run) -> Term:
    match expression:
        case Variable():
            if expression not in row:
                raise ExpressionError(f"{expression} is unbound")
            return row[expression]
        case Constant(term):
            return term
        case Call():
            return expression.value(row, run)
        case Or(args):
            return _decide(args, row, run, until=True)
        case And(args):
            return _decide(args, row, run, until=False)
        case Not(arg):
            return boolean(not effective_boolean_value(_evaluate(arg, row, run)))
        case Bound(variable):
            return boolean(variable in row)
        case If(condition, then, otherwise):
            chosen = effective_boolean_value(_evaluate(condition, row, run))
            return _evaluate(then if chosen else otherwise, row, run)
        case Coalesce(args):
            return _first_value(args, row, run)
        case In(arg, options):
            return _is_in(_evaluate(arg, row, run), options, row, run)
        case Volatile():
            return expression.value(row, run)
    raise ExpressionError(f"{type(expression).__name__} has no value on a row")


def passes(condition: Expression, row: Bindings, run: Run) -> bool:
    """Whether a row passes: an error does not."""
    try:
        return effective_boolean_value(evaluate(condition, row, run))
    except ExpressionError:
        return False


def value_or_none(expression: Expression, row: Bindings, run: Run) -> Term | None:
    """The value, or None where the evaluation is an error."""
    try:
        return evaluate(expression, row, run)
    except ExpressionError:
        return None


class Constant(Expression):
    """A term as it stands."""

    term: Term


class Call(Expression):
    """An operator or a function applied to the values of its arguments.

    `function` is a name of `functions.FUNCTIONS`, or the IRI of a cast.
    """

    function: str | IRI
    args: tuple[Expression, ...]
    _apply: ClassVar[Callable[..., Term]]

    def __post_init__(self) -> None:
        found = (
            FUNCTIONS.get(self.function)
            if isinstance(self.function, str)
            else cast_function(self.function)
        )
        assert found is not None, f"there is no function {self.function}"
        most = len(self.args) if found.most is None else found.most
        assert found.least <= len(self.args) <= most, f"{self.function}: too few or many arguments"
        object.__setattr__(self, "_apply", found.apply)

    def value(self, row: Bindings, run: Run) -> Term:
        """The function's value. A chain such as `?a + ?b + ..` is worked off without recursion."""
        chain = [self]
        while chain[-1].args and isinstance(first := chain[-1].args[0], Call):
            chain.append(first)
        call = chain.pop()
        result = call._apply(run, *(_evaluate(arg, row, run) for arg in call.args))
        while chain:
            call = chain.pop()
            rest = (_evaluate(arg, row, run) for arg in call.args[1:])
            result = call._apply(run, result, *rest)
        return result


class Volatile(Expression):
    """RAND, UUID, STRUUID, BNODE: functions of the call's site and the row (SEMANTICS.md R16).

    `columns` are the variables that make up the row's identity; among them is the hidden one that
    numbers equal rows. BNODE("a") gives one node per row wherever it is called, so it has no site.
    """

    function: str
    args: tuple[Expression, ...]
    columns: tuple[Variable, ...]
    site: int

    def value(self, row: Bindings, run: Run) -> Term:
        """The function of the row's fingerprint."""
        site = 0 if self.function == "BNODE" and self.args else self.site
        cells = (f"{v}={row[v]}" for v in self.columns if v in row)
        text = "\n".join([str(site), *cells])
        seed = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        values = (_evaluate(arg, row, run) for arg in self.args)
        return VOLATILE[self.function].apply(run, seed, *values)


class Or(Expression):
    """`||`: true if one is true, else an error if one is an error, else false."""

    args: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert len(self.args) > 1, "|| joins two conditions or more"


class And(Expression):
    """`&&`: false if one is false, else an error if one is an error, else true."""

    args: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert len(self.args) > 1, "&& joins two conditions or more"


class Not(Expression):
    """`!`."""

    arg: Expression


class Bound(Expression):
    """BOUND."""

    variable: Variable


class If(Expression):
    """IF."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Coalesce(Expression):
    """COALESCE: the first argument that is no error."""

    args: tuple[Expression, ...]


class In(Expression):
    """IN: a chain of `=` joined by `||`."""

    arg: Expression
    options: tuple[Expression, ...]


class Aggregate(Expression):
    """An aggregate; `argument` is None for `*`. It has a value on a group, not on a row."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None


def _decide(args: tuple[Expression, ...], row: Bindings, run: Run, *, until: bool) -> Literal:
    error: ExpressionError | None = None
    for arg in args:
        try:
            if effective_boolean_value(_evaluate(arg, row, run)) is until:
                return boolean(until)
        except ExpressionError as found:
            error = found
    if error is not None:
        raise error
    return boolean(not until)


def _first_value(args: tuple[Expression, ...], row: Bindings, run: Run) -> Term:
    for arg in args:
        try:
            return _evaluate(arg, row, run)
        except ExpressionError:
            continue
    raise ExpressionError("COALESCE has no argument with a value")


def _is_in(value: Term, options: tuple[Expression, ...], row: Bindings, run: Run) -> Literal:
    error: ExpressionError | None = None
    for option in options:
        try:
            if equal(value, _evaluate(option, row, run)):
                return boolean(True)
        except ExpressionError as found:
            error = found
    if error is not None:
        raise error
    return boolean(False)
