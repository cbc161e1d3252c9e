"""Nodes are frozen dataclasses."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest
from support.plans import X, matching, plan

from streamsparql.algebra.join import Join
from streamsparql.algebra.node import Node
from streamsparql.algebra.shape import Projection
from streamsparql.algebra.window import SlidingDeltaWindow

ONE = matching("?x p ?y")


def test_a_node_is_a_dataclass():
    assert is_dataclass(Projection)
    assert [field.name for field in fields(Projection)] == ["variables", "input"]
    assert replace(Projection((), ONE), variables=(X,)) == Projection((X,), ONE)


def test_a_node_is_immutable():
    node = Projection((X,), ONE)
    with pytest.raises(FrozenInstanceError):
        node.variables = ()
    with pytest.raises(FrozenInstanceError):
        del node.variables


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        (((X,),), {}),
        (((X,), ONE, ONE), {}),
        (((X,), ONE), {"input": ONE}),
        (((X,),), {"imput": ONE}),
        (((X,), ONE), {"name": "w"}),
    ],
)
def test_a_node_needs_each_field_once_and_no_other(values, named):
    with pytest.raises(TypeError, match="Projection takes variables, input"):
        Projection(*values, **named)


def test_keyword_only_fields_are_not_positional():
    assert SlidingDeltaWindow(ONE, 10, 5, name="w", origin=3).origin == 3
    with pytest.raises(TypeError):
        SlidingDeltaWindow(ONE, 10, 5, "w")


def test_nodes_compare_by_value():
    assert Join(ONE, matching("?x q ?y")) == Join(matching("?x p ?y"), matching("?x q ?y"))
    assert Join(ONE, matching("?x q ?y")) != Join(matching("?x q ?y"), ONE)
    assert len({Join(ONE, ONE), Join(ONE, ONE)}) == 1


def test_pickling_keeps_a_plan_without_memoised_values():
    query = plan("SELECT ?x (RAND() AS ?r) { ?x <p> ?y FILTER(?y + 1 > 2 && REGEX(?x, 'a')) }")
    hash(query)
    copy = pickle.loads(pickle.dumps(query))
    assert not any(name.startswith("_hash") for name in vars(copy))
    assert copy == query
    assert isinstance(copy, Node)


def test_a_node_is_equal_to_a_copy_with_its_own_parts():
    query = plan("SELECT ?x { ?x <p> ?y VALUES (?x ?y) { (1 UNDEF) } OPTIONAL { ?y <q> ?z } }")
    for node in query.walk():
        assert node.with_parts(node.parts()) == node
