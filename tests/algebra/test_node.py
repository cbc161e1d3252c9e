"""Nodes are frozen dataclasses, however deep their trees are."""

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


def test_nothing_of_a_node_can_be_changed():
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
def test_a_node_gets_each_field_once_and_no_other(values, named):
    with pytest.raises(TypeError, match="Projection takes variables, input"):
        Projection(*values, **named)


def test_fields_that_are_named_are_not_given_by_position():
    assert SlidingDeltaWindow(ONE, 10, 5, name="w", origin=3).origin == 3
    with pytest.raises(TypeError):
        SlidingDeltaWindow(ONE, 10, 5, "w")


def test_nodes_compare_by_what_they_are_made_of():
    assert Join(ONE, matching("?x q ?y")) == Join(matching("?x p ?y"), matching("?x q ?y"))
    assert Join(ONE, matching("?x q ?y")) != Join(matching("?x q ?y"), ONE)
    assert len({Join(ONE, ONE), Join(ONE, ONE)}) == 1


def test_a_plan_survives_pickling_and_leaves_behind_what_was_worked_out():
    found = plan("SELECT ?x (RAND() AS ?r) { ?x <p> ?y FILTER(?y + 1 > 2 && REGEX(?x, 'a')) }")
    hash(found)
    again = pickle.loads(pickle.dumps(found))
    assert not any(name.startswith("_hash") for name in vars(again))
    assert again == found
    assert isinstance(again, Node)


def test_a_node_can_be_taken_apart_and_put_together():
    found = plan("SELECT ?x { ?x <p> ?y VALUES (?x ?y) { (1 UNDEF) } OPTIONAL { ?y <q> ?z } }")
    for node in found.walk():
        assert node.with_parts(node.parts()) == node
