"""Length and depth: chains of any length compile; nesting compiles up to a limit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.deep_queries import (
    CHAINS,
    DEEP,
    EVENTS,
    FIVE_THOUSAND,
    LONG,
    MIXED_EVENTS,
    NESTED,
    SATISFIED,
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
    """Remove the recursion headroom, so that recursion along a chain fails."""
    monkeypatch.setattr(traversal, "HEADROOM", 0)


@pytest.mark.parametrize("name", FIVE_THOUSAND)
def test_a_chain_of_five_thousand_supports_all_operations_of_a_query(name):
    query = streamsparql.compile("ASK " + FIVE_THOUSAND[name])
    query.check()
    assert query.explain("physical")
    assert query.run(graph=GRAPH).snapshot(0)
    assert unparse(query.logical)  # compiles again and compares


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_compiles_and_round_trips(name, no_headroom):
    query = streamsparql.compile("SELECT * " + CHAINS[name])
    assert repr(query.logical)
    query.check()
    assert query.explain("all")
    assert query.physical.names
    assert unparse(query.logical)  # compiles again and compares


@pytest.mark.parametrize("name", ["optionals", "sums"])
def test_a_chain_can_be_pickled(name):
    query = streamsparql.compile("SELECT * " + CHAINS[name])
    assert pickle.loads(pickle.dumps(query)).logical == query.logical


def test_a_chain_is_explained_in_each_format(no_headroom):
    query = streamsparql.compile("SELECT * " + CHAINS["optionals"])
    for form in FORMATS:
        assert query.explain("all", form)


@pytest.mark.parametrize("name", SATISFIED)
def test_a_chain_runs(name, no_headroom):
    query = streamsparql.compile("ASK " + CHAINS[name])
    assert query.run(graph=GRAPH).snapshot(0)


@pytest.mark.parametrize("text", [EVENTS, MIXED_EVENTS])
def test_a_chain_of_events_compiles_and_round_trips(text, no_headroom):
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
def test_a_deep_query_round_trips(name):
    """The text from `unparse` has more brackets: a few, or one more for each operator."""
    doubled = name in ("sums", "memberships", "optionals of exists")
    levels = MAX_NESTING // 2 - 4 if doubled else MAX_NESTING - 6
    assert unparse(streamsparql.compile("SELECT * " + NESTED[name](levels)).logical)


def test_unparse_refuses_a_text_that_nests_too_deeply():
    with pytest.raises(UnsupportedFeature, match="brackets nest deeper"):
        unparse(streamsparql.compile("SELECT * " + DEEP["memberships"]).logical)


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_query_runs(name):
    query = streamsparql.compile("ASK " + DEEP[name])
    graphs = {"g": GRAPH} if name.startswith("graph") else None
    empty = name in ("minus", "not exists", "blank nodes", "lists")
    assert query.run(graph=GRAPH, graphs=graphs).snapshot(0) is not empty


@pytest.mark.parametrize("name", NESTED)
def test_a_query_that_nests_too_deeply_is_refused_with_its_position(name):
    with pytest.raises(QueryError, match=f"nest deeper than {MAX_NESTING} levels") as raised:
        streamsparql.compile("SELECT * " + NESTED[name](MAX_NESTING + 2))
    assert raised.value.line == 1
    assert raised.value.column > MAX_NESTING
    assert "chains" in raised.value.hint
    assert "^" in str(raised.value)


@pytest.mark.parametrize("bracket", ["(", "{", "[ <p> "])
def test_a_hundred_thousand_brackets_are_refused_at_once(bracket):
    before = {"(": "SELECT * { FILTER", "{": "SELECT * ", "[ <p> ": "SELECT * { ?s ?p "}[bracket]
    with pytest.raises(QueryError, match="nest deeper") as raised:
        streamsparql.compile(before + bracket * 100_000)
    assert raised.value.column < 5_000


def test_the_definition_evaluates_a_deep_expression():
    data = Inputs(graph=frozenset([Triple(IRI("s"), IRI("p"), IRI("o"))]))
    for name in ("negations", "functions", "coalesce", "conditions", "sums", "memberships"):
        assert len(streamsparql.compile("ASK " + DEEP[name]).logical.at(0, data)) == 1


@pytest.mark.parametrize("name", ["groups", "optionals", "unions", "disjunctions"])
def test_the_definition_evaluates_a_deep_query(name):
    data = Inputs(graph=frozenset([Triple(IRI("s"), IRI("p"), IRI("o"))]))
    for text in (DEEP[name], CHAINS.get(name, DEEP[name])):
        assert len(streamsparql.compile("ASK " + text).logical.at(0, data)) == 1


def test_five_hundred_patterns_share_one_source():
    triples = " . ".join(f"?x{k} <p> ?x{k + 1}" for k in range(500))
    text = f"SELECT * FROM STREAM <s> WINDOW RANGE 10 S SLIDE 1 S {{ {triples} }}"
    query = streamsparql.compile(text)
    assert len(query.variables) == 501
    sources = {id(node.input) for node in query.logical.input.matchings}
    assert len(sources) == 1  # all matchings share the window


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
        except streamsparql.UnsupportedFeature as error:  # the text has too many brackets
            assert "nest deeper" in str(error)
    finished.append(True)

finished = []
streamsparql.compile("SELECT * {{ ?s ?p 'é' }}").physical  # load modules and patterns first
# CPython 3.13 needs up to 1.5 MB of stack to free deep structures, even nested lists
threading.stack_size(2**21 if sys.version_info >= (3, 13) else 2**18)
thread = threading.Thread(target=work)
thread.start(); thread.join()
assert finished and sys.getrecursionlimit() == 1000
"""


def test_nesting_needs_no_space_on_the_stack_of_a_thread():
    """A stack overflow would end the process, so this runs in a subprocess."""
    code = SMALL_STACK.format(root=str(ROOT), tests=str(ROOT / "tests"))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def _call_at_depth(levels, action):
    return action() if levels == 0 else _call_at_depth(levels - 1, action)


def test_a_query_compiles_from_a_deep_stack():
    free = sys.getrecursionlimit() - len(_current_frames()) - 40
    query = _call_at_depth(free, lambda: streamsparql.compile("SELECT * " + DEEP["optionals"]))
    assert query.variables == ("s", "p", "o")


def _current_frames():
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_a_stack_without_space_raises_a_clean_error():
    def compiled():
        return streamsparql.compile("SELECT * " + DEEP["optionals"])

    limit = sys.getrecursionlimit()
    for free in range(1, 40, 3):
        try:
            _call_at_depth(limit - len(_current_frames()) - free, compiled)
        except (RecursionError, StreamSparqlError):
            continue
        finally:
            assert sys.getrecursionlimit() == limit


def test_threads_compile_deep_queries_concurrently():
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


def test_recursion_beyond_the_headroom_raises_an_engine_error():
    def endless():
        return endless()

    limit = sys.getrecursionlimit()
    with pytest.raises(EngineError, match="nests too deep"), recursion_headroom():
        endless()
    assert sys.getrecursionlimit() == limit


def test_a_recursion_limit_that_the_caller_sets_is_kept():
    limit = sys.getrecursionlimit()
    try:
        with recursion_headroom():
            sys.setrecursionlimit(limit + 7)
        assert sys.getrecursionlimit() == limit + 7
    finally:
        sys.setrecursionlimit(limit)
