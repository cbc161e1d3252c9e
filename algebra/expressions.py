"""Expressions over the terms of a row, with SPARQL's three-valued logic (SPARQL 1.1 section 17).

An evaluation returns a term or raises `ExpressionError`, the third value: FILTER treats it as
false, BIND leaves its variable unbound, `||` and `&&` may still have a value. Strict functions are
in the table of `functions`; this module has the forms that do not evaluate all their arguments.

EXISTS is not an expression here: the translator puts a `Mark` below the operator that evaluates the
expression, which reads the mark's hidden variable. `timestamp(?x)` and `getDURATION()` are hidden
variables too, which matching and event operators bind.
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
"""The hidden variable that carries an event row's occurrence, by EP-SPARQL function."""


MAX_RECURSION = 100
"""The number of levels that are evaluated by recursion, at up to four frames each."""


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
    """Return the depth of an expression; a chain such as `?a + ?b + ..` is one level."""
    if isinstance(node, Call) and node.args and isinstance(node.args[0], Call):
        depths[0] -= 1
    return 1 + max(depths, default=0)


def _evaluate_bottom_up(expression: Expression, row: Bindings, run: Run) -> Term:
    """Evaluate a deep expression without recursion.

    Each part is replaced by its value, and a part that raises an error by COALESCE(), which always
    raises one. Parts that `||` or IF would skip are evaluated too, which changes no value.
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
    """Return whether a row satisfies a condition; an error counts as false."""
    try:
        return effective_boolean_value(evaluate(condition, row, run))
    except ExpressionError:
        return False


def value_or_none(expression: Expression, row: Bindings, run: Run) -> Term | None:
    """Return the value of an expression on a row; None if it is an error."""
    try:
        return evaluate(expression, row, run)
    except ExpressionError:
        return None


class Constant(Expression):
    """A constant term."""

    term: Term


class Call(Expression):
    """An operator or a function applied to the values of its arguments.

    `function` is a name of `functions.FUNCTIONS`, or the IRI of a cast.
    """

    function: str | IRI
    args: tuple[Expression, ...]
    _apply: ClassVar[Callable[..., Term]]

    def __post_init__(self) -> None:
        function = (
            FUNCTIONS.get(self.function)
            if isinstance(self.function, str)
            else cast_function(self.function)
        )
        assert function is not None, f"unknown function {self.function}"
        most = len(self.args) if function.most is None else function.most
        assert function.least <= len(self.args) <= most, f"{self.function}: wrong argument count"
        object.__setattr__(self, "_apply", function.apply)

    def value(self, row: Bindings, run: Run) -> Term:
        """Return the value on a row; a chain such as `?a + ?b + ..` is evaluated in a loop."""
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
    """RAND, UUID, STRUUID, BNODE: functions of the call site and the row (SEMANTICS.md R16).

    `columns` are the variables that identify a row, including the hidden one that numbers equal
    rows. BNODE("a") returns one node per row wherever it is called, so its call site is ignored.
    """

    function: str
    args: tuple[Expression, ...]
    columns: tuple[Variable, ...]
    site: int

    def value(self, row: Bindings, run: Run) -> Term:
        """Return the value for a seed that is derived from the call site and the row."""
        site = 0 if self.function == "BNODE" and self.args else self.site
        cells = (f"{v}={row[v]}" for v in self.columns if v in row)
        text = "\n".join([str(site), *cells])
        seed = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        values = (_evaluate(arg, row, run) for arg in self.args)
        return VOLATILE[self.function].apply(run, seed, *values)


class Or(Expression):
    """`||`: true if an operand is true, else an error if an operand is an error, else false."""

    args: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert len(self.args) > 1, "|| needs at least two operands"


class And(Expression):
    """`&&`: false if an operand is false, else an error if an operand is an error, else true."""

    args: tuple[Expression, ...]

    def __post_init__(self) -> None:
        assert len(self.args) > 1, "&& needs at least two operands"


class Not(Expression):
    """`!`: the negation of an effective boolean value."""

    arg: Expression


class Bound(Expression):
    """BOUND: whether a row binds a variable."""

    variable: Variable


class If(Expression):
    """IF: one of two values, chosen by a condition; only that one is evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Coalesce(Expression):
    """COALESCE: the first argument that has a value."""

    args: tuple[Expression, ...]


class In(Expression):
    """IN: equality with any of the options, as a chain of `=` and `||`."""

    arg: Expression
    options: tuple[Expression, ...]


class Aggregate(Expression):
    """An aggregate; `argument` is None for `*`. Its value belongs to a group, not to a row."""

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
        except ExpressionError as raised:
            error = raised
    if error is not None:
        raise error
    return boolean(not until)


def _first_value(args: tuple[Expression, ...], row: Bindings, run: Run) -> Term:
    for arg in args:
        try:
            return _evaluate(arg, row, run)
        except ExpressionError:
            continue
    raise ExpressionError("all arguments of COALESCE are errors")


def _is_in(value: Term, options: tuple[Expression, ...], row: Bindings, run: Run) -> Literal:
    error: ExpressionError | None = None
    for option in options:
        try:
            if equal(value, _evaluate(option, row, run)):
                return boolean(True)
        except ExpressionError as raised:
            error = raised
    if error is not None:
        raise error
    return boolean(False)
