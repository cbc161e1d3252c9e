"""Words for plans: durations, hidden variables, rules, and the meaning of operators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import cleandoc

from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, Term
from streamsparql.translator.names import WELL_KNOWN
from streamsparql.translator.sparql_text import DisplayWriter, Writer

MAX_VALUES_ROWS = 5
"""The number of rows of a VALUES that a title shows."""

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_HIDDEN = {
    PlanKind.BLANK: "_:b{}",
    PlanKind.AGGREGATE: "aggregate#{}",
    PlanKind.PART: "part#{}",
    PlanKind.WHOLE: "whole#{}",
    PlanKind.EXISTS: "exists#{}",
    PlanKind.KEY: "key#{}",
    PlanKind.ROW: "row#{}",
    PlanKind.LEFT_ROW: "row#{} left",
    PlanKind.RIGHT_ROW: "row#{} right",
}
_FUNCTIONS = {
    PlanKind.START: "getSTARTTIME()",
    PlanKind.END: "getENDTIME()",
    PlanKind.DURATION: "getDURATION()",
}


def with_units(milliseconds: int) -> str:
    """Return a duration with units.

    >>> with_units(1_800_000), with_units(90_500), with_units(0)
    ('30 min', '1 min 30 s 500 ms', '0 ms')
    """
    parts = []
    rest = milliseconds
    for name, unit in _UNITS:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 ms"


def plan_writer(prefixes: Mapping[str, str]) -> Writer:
    """Return a writer of terms that shortens IRIs and names hidden variables by their purpose.

    >>> write = plan_writer({"ex": "http://example.org/"})
    >>> x, mark = Variable("x"), Hidden(PlanKind.EXISTS, 1)
    >>> write.variables([x, Hidden(PlanKind.BLANK), mark, Hidden(PlanKind.STAMP, of=(x,))])
    '?x _:b0 exists#1 timestamp(?x)'
    """
    return DisplayWriter(prefixes, partial(_variable_text, iris=DisplayWriter(prefixes)))


def with_well_known(prefixes: Mapping[str, str]) -> Mapping[str, str]:
    """Return prefixes of a query, and the well-known ones whose names it leaves free.

    >>> shown = with_well_known({"sosa": "http://example.org/"})
    >>> shown["sosa"], shown["xsd"]
    ('http://example.org/', 'http://www.w3.org/2001/XMLSchema#')
    """
    return {**prefixes, **{name: WELL_KNOWN[name] for name in WELL_KNOWN.keys() - prefixes.keys()}}


def _variable_text(variable: Variable, iris: Writer) -> str:
    if not isinstance(variable, Hidden):
        return str(variable)
    if variable.kind is PlanKind.STAMP:
        return f"timestamp({', '.join(_stamped_text(place, iris) for place in variable.of)})"
    if variable.kind in _FUNCTIONS:
        return _FUNCTIONS[variable.kind]
    if variable.kind in _HIDDEN:
        return _HIDDEN[variable.kind].format(variable.number)
    return str(variable)


def _stamped_text(place: Variable | Term, iris: Writer) -> str:
    if isinstance(place, Variable):
        return _variable_text(place, iris)
    return iris.iri(place) if isinstance(place, IRI) else str(place)


def applied_rules(rules: Mapping[str, int]) -> str:
    """Return the names of the rules that were applied, with their counts.

    >>> applied_rules({"fold_constants": 2, "order_joins": 1})
    'fold constants (2), order joins'
    """
    names = ((name.replace("_", " "), n) for name, n in rules.items())
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in names)


def meaning(kind: type) -> str:
    """Return the meaning of a class of nodes: the first line of its docstring."""
    return (kind.__doc__ or "").partition("\n")[0]


def definition(kind: type) -> str:
    """Return the docstring of a class after its first line, up to its examples.

    >>> from streamsparql.algebra.window import SlidingTupleWindow
    >>> definition(SlidingTupleWindow).splitlines()[0]
    'omega^count_c(S, t) contains the elements with `max(m(t) - c + 1, 0) <= m(stamp) <= m(t)`, the'
    """
    _, _, rest = cleandoc(kind.__doc__ or "").partition("\n\n")
    return rest.partition(">>>")[0].strip()
