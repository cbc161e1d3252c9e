"""The constructor functions of XSD's datatypes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import any_terms, numbers, result

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.terms import IRI, XSD, Literal, Term
from streamsparql.algebra.xsd.casts import CAST_TARGETS, cast
from streamsparql.algebra.xsd.values import literal_of


@pytest.mark.parametrize(
    ("target", "text", "lexical"),
    [
        ("boolean", '"1"', "true"),
        ("boolean", '"1.0"', None),
        ("boolean", '"NaN"^^xsd:float', "false"),
        ("boolean", "0.5", "true"),
        ("integer", "-2.9", "-2"),
        ("integer", "1e20", "100000000000000000000"),
        ("integer", '"1.0"', None),
        ("integer", '"INF"^^xsd:double', None),
        ("integer", "true", "1"),
        ("byte", "127.9", "127"),
        ("byte", "128", None),
        ("unsignedInt", '"-1"', None),
        ("decimal", '" 33.30\\n"', "33.3"),
        ("decimal", "0.5e0", "0.5"),
        ("decimal", '"NaN"^^xsd:float', None),
        ("float", "0.1", "0.1"),
        ("double", '"0.1"^^xsd:float', "0.10000000149011612"),
        ("double", "true", "1"),
        ("string", "<x:a>", "x:a"),
        ("string", "1.0", "1"),
        ("string", "1e6", "1.0E6"),
        ("string", '"lex"^^<x:t>', "lex"),
        ("string", "_:a", None),
        ("dateTime", '"2020-01-01Z"^^xsd:date', "2020-01-01T00:00:00Z"),
        ("dateTime", "0", None),
        ("date", '"2020-01-01T23:00:00-08:00"^^xsd:dateTime', "2020-01-01-08:00"),
        ("time", '"2020-01-01T23:00:00.5"^^xsd:dateTime', "23:00:00.5"),
        ("time", '"2020-01-01"^^xsd:date', None),
        ("duration", '"PT24H"^^xsd:dayTimeDuration', "P1D"),
        ("dayTimeDuration", '"P1Y2DT3H"^^xsd:duration', "P2DT3H"),
        ("yearMonthDuration", '"P1Y2DT3H"^^xsd:duration', "P1Y"),
        ("yearMonthDuration", '"P2D"^^xsd:dayTimeDuration', "P0M"),
        ("integer", '"1"@en', None),
        ("integer", '"1"^^<x:t>', None),
        ("anyURI", '"x:a"', None),
    ],
)
def test_casts(target: str, text: str, lexical: str | None) -> None:
    datatype = IRI(XSD + target)
    literal = result(lambda source: cast(source, datatype), text)
    assert literal == (None if lexical is None else Literal(lexical, datatype))


@given(st.sampled_from(sorted(CAST_TARGETS, key=str)), any_terms)
def test_a_cast_returns_a_canonical_literal_of_its_datatype_or_raises(
    datatype: IRI, source: Term
) -> None:
    try:
        literal = cast(source, datatype)
    except ExpressionError:
        return
    assert literal.datatype == datatype
    assert cast(literal, datatype) == literal


@given(numbers)
def test_casting_to_string_and_back_keeps_the_value(number: int | Decimal | float) -> None:
    written = literal_of(number)
    assert cast(cast(written, IRI(XSD + "string")), written.datatype) == written
