"""Terms and expressions for tests: parsed from text, as samples, and evaluated by pyoxigraph.

Terms are written as in Turtle: `1`, `1.5`, `1e0`, `true`, `"1"^^xsd:byte`, `"chat"@fr`; calls as in
SPARQL. pyoxigraph is an independent oracle.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache

import pyoxigraph as ox
from hypothesis import strategies as st

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.functions import FUNCTIONS, Run, cast_function
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term
from streamsparql.algebra.xsd.durations import XsdDuration
from streamsparql.algebra.xsd.moments import Date, DateTime, Time
from streamsparql.algebra.xsd.numeric import Single
from streamsparql.algebra.xsd.values import date_time_literal, literal_of

RUN = Run(now=date_time_literal(1_600_000_000_000))


def from_oxigraph(value: object) -> Term:
    """Convert a term of pyoxigraph to one of ours."""
    match value:
        case ox.NamedNode():
            return IRI(value.value)
        case ox.BlankNode():
            return BlankNode(value.value)
        case ox.Literal() if value.language:
            return Literal(value.value, language=value.language)
        case ox.Literal():
            return Literal(value.value, IRI(value.datatype.value))
    raise AssertionError(f"not a term: {value}")


@cache
def term(text: str) -> Term:
    """Parse a term in Turtle syntax."""
    turtle = f"@prefix xsd: <{XSD}> . <x:s> <x:p> {text} ."
    (triple,) = ox.parse(turtle, format=ox.RdfFormat.TURTLE)
    return from_oxigraph(triple.object)


def typed(lexical: str, name: str) -> Literal:
    """Return a literal with a datatype of XML Schema."""
    return Literal(lexical, IRI(XSD + name))


def result(operator: Callable[..., Term | bool], *operands: str) -> Term | bool | None:
    """Apply an operator to operands in Turtle syntax; return None for an error."""
    try:
        return operator(*map(term, operands))
    except ExpressionError:
        return None


def ours(operator: str, *operands: Term) -> Term | None:
    """Apply a function or an operator to terms; return None for an error."""
    try:
        return FUNCTIONS[operator].apply(Run(), *operands)
    except ExpressionError:
        return None


def call_value(expression: str) -> Term | None:
    """Evaluate a call of one function on constants; return None for an error."""
    call = re.fullmatch(r"([\w:]+)\((.*)\)", expression, re.DOTALL)
    assert call is not None, expression
    name, arguments = call[1], objects(call[2])
    function = FUNCTIONS.get(name) or cast_function(IRI(name.replace("xsd:", XSD)))
    assert function is not None, f"unknown function {name}"
    assert function.least <= len(arguments) <= (function.most or math.inf)
    try:
        return function.apply(RUN, *arguments)
    except ExpressionError:
        return None


def objects(text: str) -> list[Term]:
    """Parse terms that are separated by commas, as in the object position of Turtle."""
    if not text:
        return []
    turtle = f"@prefix xsd: <{XSD}> . <x:s> <x:p> {text} ."
    triples = ox.parse(turtle, format=ox.RdfFormat.TURTLE)
    return [from_oxigraph(triple.object) for triple in triples]


# -- Samples ------------------------------------------------------------------------------------

SAMPLES = [  # one value space per line
    *(
        "1",
        "01",
        "2",
        "0",
        "-7",
        '"1"^^xsd:byte',
        '"300"^^xsd:byte',
        "16777217",
        "9007199254740993",
    ),
    *("1.0", "2.5", "0.1", "1e0", "0.1e0", "-0e0", "1e300", "9007199254740992e0"),
    *('"1"^^xsd:float', '"0.1"^^xsd:float', '"16777216"^^xsd:float', '"-INF"^^xsd:float'),
    *('"INF"^^xsd:double', '"NaN"^^xsd:double', '"NaN"^^xsd:float'),
    *('""', '"a"', '"b"', '"1"', '"a"@en', '"a"@fr', '"b"@en'),
    *("true", "false", '"1"^^xsd:boolean'),
    *('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T01:00:00+01:00"^^xsd:dateTime'),
    *('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-02T00:00:00"^^xsd:dateTime'),
    *('"2020-01-01"^^xsd:date', '"2020-01-01Z"^^xsd:date', '"2020-01-03"^^xsd:date'),
    *('"00:00:00"^^xsd:time', '"01:00:00Z"^^xsd:time'),
    *('"2020"^^xsd:gYear', '"2021"^^xsd:gYear', '"2020Z"^^xsd:gYear', '"2020-02"^^xsd:gYearMonth'),
    *('"--02"^^xsd:gMonth', '"--02-28"^^xsd:gMonthDay', '"---02"^^xsd:gDay'),
    *('"P1M"^^xsd:duration', '"P30D"^^xsd:duration', '"P27D"^^xsd:duration', '"P1Y"^^xsd:duration'),
    *('"P1M"^^xsd:yearMonthDuration', '"P30D"^^xsd:dayTimeDuration', '"-P1D"^^xsd:duration'),
    *('"x"^^xsd:integer', '"y"^^xsd:integer', '"yes"^^xsd:boolean', '"2020-02-30"^^xsd:date'),
    *('"a"^^<x:t>', '"b"^^<x:t>', "<x:a>", "<x:b>", "_:a"),
]

numbers = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(),
    st.decimals(-(10**6), 10**6, places=6),
    st.floats(),
    st.floats(width=32).map(Single),
)
moments = st.builds(
    lambda kind, local, offset: kind.at(local, offset),
    st.sampled_from([DateTime, Date, Time]),
    st.decimals(-(10**12), 10**12, places=3),
    st.none() | st.integers(-840, 840),
)
durations = st.builds(
    lambda sign, months, seconds: XsdDuration(sign * months, sign * seconds),
    st.sampled_from([1, -1]),
    st.integers(0, 30),
    st.decimals(0, 10**8, places=3),
)
any_terms = st.one_of(
    st.sampled_from(SAMPLES).map(term),
    st.one_of(numbers, moments, durations, st.text(max_size=3)).map(literal_of),
)
moderate_exact = st.one_of(  # pyoxigraph's integers have 64 bits, its decimals 18 places in 128
    st.integers(-(10**6), 10**6),
    st.decimals(-(10**6), 10**6, places=6),
)


# -- pyoxigraph ---------------------------------------------------------------------------------

STORE = ox.Store()


def oxigraph(*expressions: str) -> list[Term | None]:
    """Evaluate expressions with pyoxigraph; return None for each error."""
    columns = " ".join(f"({text} AS ?x{i})" for i, text in enumerate(expressions))
    solutions = STORE.query(f"PREFIX xsd: <{XSD}> SELECT {columns} {{}}")
    assert isinstance(solutions, ox.QuerySolutions)
    (row,) = solutions
    values = [row[i] for i in range(len(expressions))]
    return [None if value is None else from_oxigraph(value) for value in values]
