"""Hidden variables and their columns: names are formatted from fields and parsed back.

Plans print the names and batches are keyed by them, so their forms are tested, too.
"""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsparql
from streamsparql.algebra.hidden_variables import Hidden, HiddenKind, PlanKind
from streamsparql.algebra.shape import UNIT, Projection
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.physical.hidden import ColumnKind, in_solution, is_stamp, variable_of

X, S = Variable("x"), IRI("http://e/s")
KINDS: list[HiddenKind] = [*PlanKind, *ColumnKind]
words = st.text("abcxyz019_", min_size=1, max_size=4)
variables = st.builds(Variable, words)
texts = st.text('a0 <>"\\?.\n@^é_-', max_size=6)
terms = st.one_of(
    variables,
    st.builds(IRI, texts),
    st.builds(Literal, texts),
    st.builds(lambda text: Literal(text, language="en-GB"), texts),
    st.builds(lambda text, kind: Literal(text, IRI(XSD + kind)), texts, words),
)


@st.composite
def hidden(draw: st.DrawFn) -> Hidden:
    """Draw a hidden variable of any kind, with the fields that its name contains."""
    kind = draw(st.sampled_from(KINDS))
    number = draw(st.integers(0, 200)) if "{number}" in kind.value else 0
    if "{of}" in kind.value:
        return Hidden(kind, number, tuple(draw(st.lists(terms, min_size=1, max_size=3))))
    if "{name}" in kind.value:
        named = st.one_of(variables, st.builds(Hidden, st.just(PlanKind.BLANK), st.integers(0, 20)))
        of = draw(variables if kind is ColumnKind.PRIVATE else named)
        return Hidden(kind, number, (of,))
    return Hidden(kind, number, (draw(st.builds(IRI, texts)),) if "{iri}" in kind.value else ())


@given(hidden())
def test_a_name_is_parsed_to_its_variable(variable: Hidden) -> None:
    parsed = variable_of(variable.name)
    assert isinstance(parsed, Hidden)
    if variable.kind is ColumnKind.PRIVATE:  # its name may parse as another kind
        assert parsed.name == variable.name
    else:
        assert (parsed.kind, parsed.number, parsed.of) == (
            variable.kind,
            variable.number,
            variable.of,
        )
    assert parsed == variable
    assert hash(parsed) == hash(variable)


@given(hidden(), hidden())
def test_variables_are_equal_exactly_if_their_names_are(one: Hidden, other: Hidden) -> None:
    assert (one == other) == (one.name == other.name)
    assert one != Variable("b0")


@given(hidden())
def test_a_hidden_variable_survives_pickling(variable: Hidden) -> None:
    plan = Projection((X, variable), UNIT)
    restored = pickle.loads(pickle.dumps(plan))
    assert restored == plan
    assert restored.variables[1].of == variable.of
    assert repr(restored) == repr(plan)


@given(hidden())
def test_walking_a_hidden_variable_does_not_visit_its_fields(variable: Hidden) -> None:
    assert list(variable.walk()) == [variable]
    assert Projection((variable,), UNIT).parts() == (variable, UNIT)


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        (Hidden(PlanKind.BLANK, 0), ".b0"),
        (Hidden(PlanKind.LEFT_ROW, 3), ".n3 left"),
        (Hidden(PlanKind.STAMP, of=(X,)), ".t ?x"),
        (Hidden(PlanKind.STAMP, of=(X, S)), ".t ?x <http://e/s>"),
        (Hidden(PlanKind.STAMP, of=(X, S, Literal("a b"))), '.t ?x <http://e/s> "a b"'),
        (Hidden(PlanKind.DURATION), ".duration"),
        (Hidden(ColumnKind.ARRIVAL, of=(S,)), ".t of http://e/s"),
        (Hidden(ColumnKind.OUTER_ROW, 1), "..row 1"),
        (Hidden(ColumnKind.OUTER_VALUE, 1, (Hidden(PlanKind.BLANK, 2),)), "..row 1 .b2"),
    ],
)
def test_names_have_their_documented_form(variable: Hidden, name: str) -> None:
    assert variable.name == name
    assert str(variable) == f"?{name}"
    assert variable_of(name) == variable


def test_names_in_queries_are_not_names_of_hidden_variables() -> None:
    assert variable_of("x") == X
    assert not variable_of("b0").hidden
    with pytest.raises(AssertionError):
        Variable(".b0")


@pytest.mark.parametrize("kind", KINDS)
def test_stamps_are_not_part_of_solutions(kind: HiddenKind) -> None:
    column = Hidden(kind, 1, (S if "{iri}" in kind.value else X,)).name
    assert is_stamp(column) == (kind in (PlanKind.STAMP, ColumnKind.ARRIVAL))
    assert not (is_stamp(column) and in_solution(column))


QUERY = """PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
REGISTER QUERY q AS SELECT ?x (COUNT(*) + 1 AS ?n) (RAND() AS ?r)
FROM STREAM <s> [RANGE 10ms STEP 5ms]
WHERE { ?x <p> [ <q> ?y ] OPTIONAL { ?y <q> ?z FILTER(EXISTS { ?z <p> ?x } || RAND() < 1) }
        FILTER(timestamp(?x) < timestamp(?y, <s>) && f:timestamp(?y, <q>, ?z) > 1) }
GROUP BY ?x (STR(?y)) """


def test_the_hidden_variables_of_a_query_have_fields() -> None:
    plan = streamsparql.compile(QUERY).logical
    hidden_variables = {node for node in plan.walk() if isinstance(node, Hidden)}
    kinds = {variable.kind for variable in hidden_variables}
    others = {PlanKind.START, PlanKind.END, PlanKind.DURATION, PlanKind.PART, PlanKind.WHOLE}
    assert kinds == set(PlanKind) - others
    stamps = {variable.of for variable in hidden_variables if variable.kind is PlanKind.STAMP}
    y, z = Variable("y"), Variable("z")
    assert stamps == {(X,), (y, IRI("s")), (y, IRI("q"), z)}
