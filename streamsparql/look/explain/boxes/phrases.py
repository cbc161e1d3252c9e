"""How a plan is put into words: times, hidden variables, what an operator means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from inspect import cleandoc

from streamsparql.algebra.expressions import OCCURRENCE
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.translator.sparql_text import Writer

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_HIDDEN = {"a": "aggregate", "e": "exists", "k": "key", "n": "row"}
_FUNCTIONS = {variable: f"get{name[3:]}()" for name, variable in OCCURRENCE.items()}


def duration(milliseconds: int) -> str:
    """A length of time for people.

    >>> duration(1_800_000), duration(90_500), duration(0)
    ('30 min', '1 min 30 s 500 ms', '0 ms')
    """
    parts = []
    left = milliseconds
    for name, unit in _UNITS:
        count, left = divmod(left, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 ms"


def with_prefixes(prefixes: Mapping[str, str]) -> Writer:
    """A writer of terms that shortens IRIs and says what hidden variables stand for.

    >>> write = with_prefixes({"ex": "http://example.org/"})
    >>> write.variables([Variable("x"), Variable(".b0"), Variable(".e1"), Variable(".t ?x")])
    '?x _:b0 exists#1 timestamp(?x)'
    """
    return Writer(prefixes, partial(_readable, iris=Writer(prefixes)))


def _readable(variable: Variable, iris: Writer) -> str:
    if variable.stamp:
        return f"timestamp({_stamped(variable.name[3:], iris)})"
    if variable in _FUNCTIONS:
        return _FUNCTIONS[variable]
    if found := re.fullmatch(r"\.([a-z])(\d+.*)", variable.name):
        kind, number = found.groups()
        return f"_:b{number}" if kind == "b" else f"{_HIDDEN.get(kind, kind)}#{number}"
    return str(variable)


def _stamped(places: str, iris: Writer) -> str:
    """What a stamp is of, from its name: a variable, one and a stream, or a triple pattern."""
    shown = []
    for place in places.split(" ", 2):
        if place.startswith("?."):
            place = _readable(Variable(place[1:]), iris)
        elif place.startswith("<") and "\\" not in place:
            place = iris.iri(IRI(place[1:-1]))
        shown.append(place)
    return ", ".join(shown)


def used(rules: Mapping[str, int]) -> str:
    """The rewriting rules that were used, with how often.

    >>> used({"fold_constants": 2, "order_joins": 1})
    'fold constants (2), order joins'
    """
    names = ((name.replace("_", " "), n) for name, n in rules.items())
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in names)


def meaning(kind: type) -> str:
    """What nodes of a class are, the first line of its docstring."""
    return (kind.__doc__ or "").partition("\n")[0]


def definition(kind: type) -> str:
    """What the docstring of a class says after its first line, up to its examples.

    >>> from streamsparql.algebra.window import SlidingTupleWindow
    >>> definition(SlidingTupleWindow).splitlines()[0]
    'omega^count_c(S, t) holds the elements with `max(m(t) - c + 1, 0) <= m(stamp) <= m(t)`, where'
    """
    _, _, rest = cleandoc(kind.__doc__ or "").partition("\n\n")
    return rest.partition(">>>")[0].strip()
