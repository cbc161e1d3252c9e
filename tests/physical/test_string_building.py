"""Strings that are concatenated as arrays, compared with the definition of each function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsparql.algebra.expressions import Call, Constant, value_or_none
from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import Expression, Solution, Variable
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Literal, Term, integer
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.expressions.string_building import string_template

X, Y = Variable("x"), Variable("y")
A, E = Constant(Literal("http://e/")), Constant(Literal("é\n"))
TERMS = [
    *(Literal(text) for text in ("", "a", "a b", 'q"', "l\\", "\n", "é", "007", "7", "-0", "1.50")),
    *(
        Literal(text)
        for text in ("true", "2020-02-30T00:00:00", "2020-02-29T00:00:00Z", "http://x")
    ),
    *(Literal(text) for text in ("0000-01-01T00:00:00", "9" * 19, " 7", "\u2028", "<a>", "\x00")),
    *(Literal("chat", language="fr"), Literal("a", IRI("http://t"))),
    *(integer(5), Literal("05", IRI(XSD + "integer")), Literal('"^^<x>', IRI("http://t"))),
    *(IRI("http://e/x"), IRI("rel"), IRI("http://e/a b"), BlankNode("b")),
    *(
        Literal("2020-12-31T23:59:59"),
        Literal("2021-02-29T00:00:00"),
        Literal("2021-04-31T00:00:00"),
    ),
]


def call(name: str | IRI, *args: Expression) -> Call:
    return Call(name, args)


def concat(*args: Expression) -> Call:
    return call("CONCAT", *args)


EXPRESSIONS = [
    concat(X, Y),
    concat(A, X, concat(Y, E)),
    concat(call("STR", X), A, call("STR", Y)),
    call("STR", X),
    call("IRI", X),
    call("IRI", concat(A, call("STR", X))),
    call("IRI", concat(A, X), Constant(Literal("http://base/p"))),
    call("IRI", X, Constant(Literal("http://base/p"))),
    call("STRDT", concat(X, Y), Constant(IRI("http://t/t"))),
    call("STRDT", X, Constant(IRI(XSD + "integer"))),
    call("STRDT", X, Constant(IRI(XSD + "string"))),
    *(call(IRI(XSD + name), X) for name in ("integer", "double", "boolean", "dateTime", "string")),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=repr)
@settings(max_examples=30)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.sampled_from(TERMS))] * 2), min_size=1, max_size=30
    )
)
def test_array_expressions_agree_with_their_definition(
    expression: Expression, rows: list[tuple[Term | None, Term | None]]
) -> None:
    terms = TermDictionary()
    columns = {name: terms.ids_of(row[k] for row in rows) for k, name in enumerate("xy")}
    count = len(rows)
    batch = Batch(columns, np.zeros(count, np.int64), np.ones(count, np.int64))
    values = terms.terms_of(compile_expression(expression, terms, Run()).values(batch))
    for (x, y), term in zip(rows, values, strict=True):
        row = Solution({v: t for v, t in ((X, x), (Y, y)) if t is not None})
        assert term == value_or_none(expression, row, Run())


def test_string_templates_are_recognised() -> None:
    assert string_template(concat(A, X)) is not None
    assert string_template(call("UCASE", X)) is None
    assert string_template(call("STRDT", X, Y)) is None
