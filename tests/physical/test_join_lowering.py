"""Chains of joins: which are computed together, which in pairs, and how the plan shows it.

Not covered: the estimates by which a way is chosen (tests/algebra/test_join_cost.py), and the
operator itself (test_multi_join.py).
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from support.generate import PREFIX

import streamsparql
from streamsparql.algebra.functions import Run
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering import lower_joins
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operator import Operator, inputs_first
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.join import Join
from streamsparql.physical.operators.multi_join import MultiJoin

WINDOW = "FROM STREAM :s WINDOW RANGE 1 SECOND SLIDE "


def plan_of(query: str, optimize: bool = True) -> Plan:
    compiled = streamsparql.compile(PREFIX + query, optimize=optimize)
    return compiled.optimized


def operators_of(
    query: str, mode: str = "together", catalog: Catalog | None = None, optimize: bool = True
) -> list[Operator]:
    with patch.object(lower_joins, "MODE", mode):
        catalog = catalog or Catalog(known=False)
        lowered = lower(plan_of(query, optimize), TermDictionary(), Run(), catalog)
    return inputs_first(lowered.operator)


def multi_joins(operators: list[Operator]) -> list[MultiJoin]:
    return [operator for operator in operators if isinstance(operator, MultiJoin)]


def reasons(operators: list[Operator]) -> list[str]:
    return [operator.reason for operator in operators if operator.reason]


CHAIN = f"SELECT * {WINDOW} {{ ?x :p ?y . ?y :q ?z . ?z :r ?w }}"


def test_a_chain_is_one_operator_or_a_tree() -> None:
    (together,) = multi_joins(operators_of(CHAIN))
    assert [each.names for each in together.inputs] == [("x", "y"), ("y", "z"), ("z", "w")]
    assert set(together.names) == {"x", "y", "z", "w"}
    in_pairs = operators_of(CHAIN, "in pairs")
    assert not multi_joins(in_pairs)
    assert sum(isinstance(operator, Join) for operator in in_pairs) == 2


def test_a_join_of_two_inputs_is_a_binary_join() -> None:
    operators = operators_of(f"SELECT * {WINDOW} {{ ?x :p ?y . ?y :q ?z }}")
    assert not multi_joins(operators)
    assert reasons(operators) == []


def test_projections_between_joins_are_part_of_the_chain() -> None:
    query = f"SELECT ?w {WINDOW} {{ ?x :p ?y . ?y :q ?z . ?z :r ?w }}"
    (together,) = multi_joins(operators_of(query))
    assert [each.names for each in together.inputs] == [("y",), ("y", "z"), ("z", "w")]
    assert together.names == ("z", "w")


def test_a_variable_of_a_subquery_is_not_joined_with_one_of_the_same_name() -> None:
    query = f"SELECT * {WINDOW} {{ {{ SELECT ?x {{ ?x :p ?y . ?x :q ?z }} }} ?x :r ?y }}"
    assert not multi_joins(operators_of(query, optimize=False))
    query = query.replace("?x :r ?y", "?x :r ?w")
    (together,) = multi_joins(operators_of(query, optimize=False))
    assert together.names == ("x", "w")


def test_a_filter_between_joins_ends_the_chain() -> None:
    query = f"SELECT * {WINDOW} {{ ?x :p ?y . ?y :q ?z . ?z :r ?w . ?w :t ?v FILTER(?x < ?z) }}"
    (together,) = multi_joins(operators_of(query))
    assert len(together.inputs) == 3, "the filter of the first two is an input"


def test_at_most_eight_inputs_are_joined_together() -> None:
    def star(patterns: int) -> list[Operator]:
        where = " . ".join(f"?x :p{k} ?y{k}" for k in range(patterns))
        return operators_of(f"SELECT * {WINDOW} {{ {where} }}")

    assert [len(each.inputs) for each in multi_joins(star(8))] == [8]
    assert sorted(len(each.inputs) for each in multi_joins(star(9))) == []
    assert sum(isinstance(operator, Join) for operator in star(9)) == 8


def test_static_chains_are_computed_in_pairs() -> None:
    operators = operators_of("SELECT * { ?x :p ?y . ?y :q ?z . ?z :r ?w }")
    assert not multi_joins(operators)
    assert reasons(operators) == []


# -- static inputs ---------------------------------------------------------------------------------


def catalog_of(terms: TermDictionary, triples: dict[str, list[tuple[int, int]]]) -> Catalog:
    """Return a catalog whose named graph has these pairs of subject and object by predicate."""
    rows = [(s, f"<http://e/{p}>", o) for p, pairs in triples.items() for s, o in pairs]
    columns = zip(*((f"<http://e/{s}>", p, f"<http://e/{o}>") for s, p, o in rows), strict=True)
    ids = dict(zip(TRIPLE, (terms.encode(list(column)) for column in columns), strict=True))
    always = np.zeros(len(rows), np.int64), np.full(len(rows), 2**63 - 1)
    return Catalog(named={IRI("http://e/g"): Batch(ids, *always)})


STATIC = f"""SELECT ?a ?d FROM NAMED :g {WINDOW} {{
    ?a :now ?x . ?d :then ?x GRAPH :g {{ ?a :wrote ?b . ?c :cites ?b . ?c :by ?d }} }}"""


def lowered(triples: dict[str, list[tuple[int, int]]], mode: str = "by cost") -> list[Operator]:
    terms = TermDictionary()
    with patch.object(lower_joins, "MODE", mode):
        root = lower(plan_of(STATIC), terms, Run(), catalog_of(terms, triples)).operator
    return inputs_first(root)


FEW = {"wrote": [(1, 2)], "cites": [(3, 2)], "by": [(3, 4)]}
MANY = {
    "wrote": [(k, 1000 + k) for k in range(100)],
    "cites": [(2000 + k, 1000 + k) for k in range(100)],
    "by": [(2000 + k, 7 * n + k) for k in range(100) for n in range(20)],
}


def test_a_static_part_is_one_input_that_is_computed_before() -> None:
    (together,) = multi_joins(lowered(FEW, "together"))
    static = [each for each in together.inputs if isinstance(each, Always)]
    assert [(each.facts(), len(each.rows)) for each in static] == [("precomputed, one row", 1)]


def test_the_sizes_of_static_parts_decide() -> None:
    assert not multi_joins(lowered(FEW))
    (together,) = multi_joins(lowered(MANY))
    assert together.reason.startswith("together, as a fixed order may make many rows: about ")
    assert sum(isinstance(each, Join) for each in lowered(FEW)) == 2


# -- in the pattern of an EXISTS -------------------------------------------------------------------


def test_rows_of_an_exists_are_joined_in_pairs() -> None:
    query = f"""SELECT * {WINDOW} {{ ?x :p ?v FILTER EXISTS {{
        ?x :p ?y . ?y :q ?z . ?z :r ?w OPTIONAL {{ ?w :t ?v }} }} }}"""
    operators = operators_of(query, "by cost")
    assert "in pairs, as the rows are those of an EXISTS" in reasons(operators)
    assert multi_joins(operators_of(query, "together"))


# -- explain ---------------------------------------------------------------------------------------


def test_explain_says_which_way_and_why() -> None:
    text = streamsparql.compile(PREFIX + CHAIN).explain("physical")
    assert "joins  in pairs, as no order makes many rows: about 1 per new row (Join on z)" in text
    with patch.object(lower_joins, "MODE", "together"):
        text = streamsparql.compile(PREFIX + CHAIN).explain("physical")
    assert "joins  together, whatever it costs (MultiJoin on y, z)" in text


def items(many: int) -> list[tuple[str, str, str, int]]:
    def name(text: str) -> str:
        return f"<http://e/{text}>"

    links = [("p", "x", "y"), ("q", "y", "z"), ("r", "z", "w")]
    return [
        (name(f"{one}{k % 7}"), name(link), name(f"{other}{k % 5}"), k)
        for k in range(many)
        for link, one, other in links
    ]


def test_analyze_shows_the_orders_taken() -> None:
    query = streamsparql.compile(PREFIX + CHAIN)
    with patch.object(lower_joins, "MODE", "together"):
        analysis = query.analyze({"http://e/s": items(300)})
    (measured,) = (each for each in analysis.operators if each.kind == "MultiJoin")
    assert {taken.order for taken in measured.orders} <= {
        (0, 1, 2),
        (1, 0, 2),
        (1, 2, 0),
        (2, 1, 0),
    }
    assert sum(taken.rows for taken in measured.orders) >= 300
    orders = "orders  3 → 2 → 1: 300 rows (MultiJoin BasicGraphPattern: on y, z)"
    assert orders in str(analysis).splitlines()
    assert '"orders": [' in analysis.explain("json")


@pytest.mark.parametrize("mode", ["together", "in pairs"])
def test_both_ways_have_the_same_rows(mode: str) -> None:
    query = streamsparql.compile(PREFIX + CHAIN)
    with patch.object(lower_joins, "MODE", mode):
        rows = query.run({"http://e/s": items(60)}).to_arrow()
    assert rows.num_rows == len(query.run({"http://e/s": items(60)}).to_arrow())
