"""Length and depth: chains of any length work, nesting works up to a limit and is refused above."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.deep_queries import (
    ANSWERED,
    CHAINS,
    DEEP,
    EVENTS,
    FIVE_THOUSAND,
    LONG,
    MIXED_EVENTS,
    NESTED,
)

import streamsparql
from streamsparql.algebra import traversal
from streamsparql.algebra.event import SeqJoin
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.terms import IRI, Triple
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.errors import EngineError, QueryError, StreamSparqlError, UnsupportedFeature
from streamsparql.translator.lalr_parser import MAX_NESTING
from streamsparql.translator.unparse import unparse

ROOT = Path(__file__).parents[2]
FORMATS = ("text", "json", "dot", "svg", "html", "mermaid")
GRAPH = [("<s>", "<p>", "<o>")]


@pytest.fixture
def no_headroom(monkeypatch):
    """Passes that recurse along a chain run out of frames."""
    monkeypatch.setattr(traversal, "HEADROOM", 0)


@pytest.mark.parametrize("name", FIVE_THOUSAND)
def test_a_chain_of_five_thousand_does_all_that_a_query_does(name):
    query = streamsparql.compile("ASK " + FIVE_THOUSAND[name])
    query.check()
    assert query.explain("physical")
    assert query.run(graph=GRAPH).snapshot(0)
    assert unparse(query.logical)  # compiles again and compares


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_compiles_and_comes_back(name, no_headroom):
    query = streamsparql.compile("SELECT * " + CHAINS[name])
    assert repr(query.logical)
    query.check()
    assert query.explain("all")
    assert query.physical.names
    assert unparse(query.logical)  # compiles again and compares


@pytest.mark.parametrize("name", ["optionals", "sums"])
def test_a_chain_goes_to_other_processes(name):
    query = streamsparql.compile("SELECT * " + CHAINS[name])
    assert pickle.loads(pickle.dumps(query)).logical == query.logical


def test_a_chain_is_explained_in_each_format(no_headroom):
    query = streamsparql.compile("SELECT * " + CHAINS["optionals"])
    for form in FORMATS:
        assert query.explain("all", form)


@pytest.mark.parametrize("name", ANSWERED)
def test_a_chain_runs(name, no_headroom):
    query = streamsparql.compile("ASK " + CHAINS[name])
    assert query.run(graph=GRAPH).snapshot(0)


@pytest.mark.parametrize("text", [EVENTS, MIXED_EVENTS])
def test_a_chain_of_events_compiles_and_comes_back(text, no_headroom):
    query = streamsparql.compile("SELECT ?s " + text)
    assert query.dialect == "epsparql"
    assert sum(isinstance(node, SeqJoin) for node in query.logical.walk()) in (LONG - 1, LONG // 2)
    assert unparse(query.logical, "epsparql")


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_query_compiles_and_is_explained(name):
    query = streamsparql.compile("SELECT * " + DEEP[name])
    assert repr(query.logical)
    query.check()
    assert query.explain("all")
    assert pickle.loads(pickle.dumps(query)).logical == query.logical


@pytest.mark.parametrize("name", NESTED)
def test_a_deep_query_comes_back(name):
    """Its text has brackets that the query has not: a few, or one more for each operator."""
    doubled = name in ("sums", "memberships", "optionals of exists")
    levels = MAX_NESTING // 2 - 4 if doubled else MAX_NESTING - 6
    assert unparse(streamsparql.compile("SELECT * " + NESTED[name](levels)).logical)


def test_a_text_that_nests_deeper_than_its_query_is_refused():
    with pytest.raises(UnsupportedFeature, match="brackets nest deeper"):
        unparse(streamsparql.compile("SELECT * " + DEEP["memberships"]).logical)


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_query_runs(name):
    query = streamsparql.compile("ASK " + DEEP[name])
    graphs = {"g": GRAPH} if name.startswith("graph") else None
    empty = name in ("minus", "not exists", "blank nodes", "lists")
    assert query.run(graph=GRAPH, graphs=graphs).snapshot(0) is not empty


@pytest.mark.parametrize("name", NESTED)
def test_a_query_that_nests_deeper_is_refused_where_it_does(name):
    with pytest.raises(QueryError, match=f"nest deeper than {MAX_NESTING} levels") as refused:
        streamsparql.compile("SELECT * " + NESTED[name](MAX_NESTING + 2))
    assert refused.value.line == 1
    assert refused.value.column > MAX_NESTING
    assert "chains" in refused.value.hint
    assert "^" in str(refused.value)


@pytest.mark.parametrize("bracket", ["(", "{", "[ <p> "])
def test_a_hundred_thousand_brackets_are_refused_at_once(bracket):
    before = {"(": "SELECT * { FILTER", "{": "SELECT * ", "[ <p> ": "SELECT * { ?s ?p "}[bracket]
    with pytest.raises(QueryError, match="nest deeper") as refused:
        streamsparql.compile(before + bracket * 100_000)
    assert refused.value.column < 5_000


def test_a_deep_expression_is_evaluated_by_its_definition():
    data = Inputs(graph=frozenset([Triple(IRI("s"), IRI("p"), IRI("o"))]))
    for name in ("negations", "functions", "coalesce", "conditions", "sums", "memberships"):
        assert len(streamsparql.compile("ASK " + DEEP[name]).logical.at(0, data)) == 1


@pytest.mark.parametrize("name", ["groups", "optionals", "unions", "disjunctions"])
def test_a_deep_query_is_answered_by_its_definition(name):
    data = Inputs(graph=frozenset([Triple(IRI("s"), IRI("p"), IRI("o"))]))
    for text in (DEEP[name], CHAINS.get(name, DEEP[name])):
        assert len(streamsparql.compile("ASK " + text).logical.at(0, data)) == 1


def test_five_hundred_patterns_are_one_plan():
    triples = " . ".join(f"?x{k} <p> ?x{k + 1}" for k in range(500))
    text = f"SELECT * FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S {{ {triples} }}"
    query = streamsparql.compile(text)
    assert len(query.variables) == 501
    sources = {id(node.input) for node in query.logical.input.matchings}
    assert len(sources) == 1  # they share what they read


# -- Python's stack --------------------------------------------------------------------------------

SMALL_STACK = """
import sys, threading
sys.path[:0] = [{root!r}, {tests!r}]
from support.deep_queries import CHAINS, DEEP
import streamsparql
from streamsparql.translator.unparse import unparse

def work():
    for text in [*DEEP.values(), *map(CHAINS.get, ["unions", "optionals", "sums"])]:
        query = streamsparql.compile("SELECT * " + text)
        query.check(), query.optimized, query.physical
        try:
            unparse(query.logical)
        except streamsparql.UnsupportedFeature as error:  # a text with too many brackets
            assert "nest deeper" in str(error)
    done.append(True)

done = []
streamsparql.compile("SELECT * {{ ?s ?p 'é' }}").physical  # modules and patterns are ready
# CPython 3.13 frees deep structures, lists in lists too, with up to 1.5 MB of stack
threading.stack_size(2**21 if sys.version_info >= (3, 13) else 2**18)
thread = threading.Thread(target=work)
thread.start(); thread.join()
assert done and sys.getrecursionlimit() == 1000
"""


def test_no_level_takes_space_on_the_stack_of_a_thread():
    """In a process of its own, which would end if the stack overflowed."""
    code = SMALL_STACK.format(root=str(ROOT), tests=str(ROOT / "tests"))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def _deep_call(levels, action):
    return action() if levels == 0 else _deep_call(levels - 1, action)


def test_a_query_compiles_from_a_deep_stack():
    free = sys.getrecursionlimit() - len(_frames()) - 40
    query = _deep_call(free, lambda: streamsparql.compile("SELECT * " + DEEP["optionals"]))
    assert query.variables == ("s", "p", "o")


def _frames():
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_a_stack_without_room_is_a_clean_error():
    def compiled():
        return streamsparql.compile("SELECT * " + DEEP["optionals"])

    limit = sys.getrecursionlimit()
    for free in range(1, 40, 3):
        try:
            _deep_call(limit - len(_frames()) - free, compiled)
        except (RecursionError, StreamSparqlError):
            continue
        finally:
            assert sys.getrecursionlimit() == limit


def test_threads_compile_deep_queries_side_by_side():
    limit, errors = sys.getrecursionlimit(), []

    def work(name):
        try:
            for _ in range(3):
                assert streamsparql.compile("SELECT * " + DEEP[name]).physical
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in list(DEEP)[:12]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sys.getrecursionlimit() == limit


def test_a_plan_that_is_not_from_a_text_may_nest_too_deep():
    def endless():
        return endless()

    limit = sys.getrecursionlimit()
    with pytest.raises(EngineError, match="nests too deep"), recursion_headroom():
        endless()
    assert sys.getrecursionlimit() == limit


def test_a_limit_that_the_caller_sets_meanwhile_is_kept():
    limit = sys.getrecursionlimit()
    try:
        with recursion_headroom():
            sys.setrecursionlimit(limit + 7)
        assert sys.getrecursionlimit() == limit + 7
    finally:
        sys.setrecursionlimit(limit)
