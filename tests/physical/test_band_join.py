"""Rows joined with queries by range conditions, compared with the condition on each pair.

Values and borders are of all kinds: doubles, integers beyond 2**53, decimals, NaN, strings, instants,
IRIs, unbound. Rows and queries arrive in random steps, as in test_joins.py.
"""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.steps import Bag, Case, cases, check_snapshots, drive, rows_over

from streamsparql.algebra.expressions import And, Call, passes
from streamsparql.algebra.functions import Run
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import XSD
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.expressions.compiler import compile_expression
from streamsparql.physical.kernels import segment_tree
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.band_join import BandCondition, BandJoin
from streamsparql.physical.state import sweep_area
from streamsparql.physical.state.band_area import Border, Borders

TERMS = TermDictionary()
NUMBERS = [
    *(f'"{x}"^^<{XSD}integer>' for x in (-1, 0, 1, 2, 3, 2**53, 2**53 + 1, -(2**60))),
    *(
        f'"{x}"^^<{XSD}double>'
        for x in ("1", "1.5", "2", "3", "-0.0", "INF", "-INF", "NaN", "1e300")
    ),
    *(f'"{x}"^^<{XSD}decimal>' for x in ("1.5", "2.0", "0.1", "9007199254740993.5")),
    f'"1.5"^^<{XSD}float>',
]
OTHERS = [
    "<http://e/a>",
    "<http://e/b>",
    '"x"',
    '"y"',
    '"x"@en',
    f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"2026-01-01T01:00:00+01:00"^^<{XSD}dateTime>',
    f'"2026-02-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"true"^^<{XSD}boolean>',
]
numbers = [int(n) for n in TERMS.encode(NUMBERS)]
few = [int(n) for n in TERMS.encode(NUMBERS[:5])]
others = [int(n) for n in TERMS.encode(OTHERS)]

V, P, R, Q = (Variable(name) for name in "vprq")
CONDITIONS: dict[str, tuple[Expression, Borders | None, bool]] = {
    "greater": (Call(">", (V, P)), Borders("v", [Border("p", True)], [], TERMS), True),
    "at most": (Call("<=", (V, P)), Borders("v", [], [Border("p", False)], TERMS), True),
    "between": (
        And((Call(">=", (V, P)), Call("<", (V, R)))),
        Borders("v", [Border("p", False)], [Border("r", True)], TERMS),
        True,
    ),
    "above both": (
        And((Call(">", (V, P)), Call(">=", (V, R)))),
        Borders("v", [Border("p", True), Border("r", False)], [], TERMS),
        True,
    ),
    "equal": (
        Call("=", (V, P)),
        Borders("v", [Border("p", False)], [Border("p", False)], TERMS),
        True,
    ),
    "equal and less": (
        And((Call("=", (V, P)), Call("<", (V, R)))),
        Borders("v", [Border("p", False)], [Border("p", False), Border("r", True)], TERMS),
        True,
    ),
    "between and more": (
        And((Call(">", (V, P)), Call("!=", (Variable("x"), R)))),
        Borders("v", [Border("p", True)], [], TERMS),
        False,
    ),
    "without borders": (Call("!=", (V, P)), None, False),
}

value = st.sampled_from([0, *numbers, *few * 4, *others])
border = st.sampled_from([*numbers, *few * 4, *others])
rows, queries = rows_over([st.sampled_from(few), value]), rows_over([border, border, border])
plain = st.sampled_from(few)
inputs = st.one_of(
    cases(rows, queries), cases(rows_over([plain, plain]), rows_over([plain, plain, plain]))
)


def definition(condition: Expression, left: Bag, right: Bag) -> Bag:
    """Return the pairs that satisfy the condition, as rows `(x, v, q)`."""
    pairs: Bag = Counter()
    for (x, v), n in left.items():
        for (q, p, r), m in right.items():
            ids = {Variable("x"): x, V: v, Q: q, P: p, R: r}
            terms = ((name, TERMS.term_of(number)) for name, number in ids.items())
            row = {name: term for name, term in terms if term is not None}
            if passes(condition, row, Run()):
                pairs[x, v, q] += n * m
    return pairs


def check(name: str, case: Case) -> None:
    condition, borders, complete = CONDITIONS[name]

    def make(left: Operator, right: Operator) -> Operator:
        compiled = compile_expression(condition, TERMS, Run())
        known = BandCondition(condition, compiled, borders, complete)
        return BandJoin(left, right, ["q"], known, TERMS)

    output = drive(make, [("x", "v"), ("q", "p", "r")], case)
    check_snapshots(output, case, lambda *bags: definition(condition, *bags))


@pytest.mark.parametrize("name", CONDITIONS)
def test_the_pairs_are_those_for_which_the_condition_is_true(name: str) -> None:
    @settings(max_examples=60)
    @given(inputs, st.booleans())
    def agree(case: Case, short: bool) -> None:
        with (
            mock.patch.object(segment_tree, "_SHORT", 10**6 if short else 0),
            mock.patch.object(sweep_area, "_SMALL", 0),
        ):
            check(name, case)

    agree()


@pytest.mark.long
@pytest.mark.parametrize("name", CONDITIONS)
def test_the_pairs_of_many_cases_are_those_for_which_the_condition_is_true(name: str) -> None:
    @settings(max_examples=3000)
    @given(inputs)
    def agree(case: Case) -> None:
        check(name, case)

    agree()
