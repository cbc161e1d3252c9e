"""Checkpoints: what was saved and restored at any moment continues as what was not."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from support.engine import Data
from support.events import PREFIX, SOURCES, EventWriter, random_events
from support.families import FAMILIES, of_family
from support.generate import DIALECTS, EVERYTHING, queries
from support.histories import dense, short_histories
from support.networks import producers, reading
from support.rule_writers import RecursiveWriter, RuleWriter
from support.sessions import compiles, variants
from support.twins import LiveTwins, run_twin_instances, run_twins

import streamsparql
from streamsparql import EngineError
from streamsparql.run.checkpoint.file import read_checkpoint, write_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

seeds = st.integers(0, 2**32)
UNSHRUNK = (Phase.explicit, Phase.generate)
"""The phases of these tests: to shrink a script of calls over whole queries takes minutes."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.ckpt"


# -- Sessions --------------------------------------------------------------------------------------


def check_sessions(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples, phases=UNSHRUNK)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], data: Data, seed: int) -> None:
        random = Random(seed)
        several = [text for each in texts for text in variants(each, random, random.randint(1, 4))]
        random.shuffle(several)
        run_twins(several, data, seed, file)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_session_goes_on_as_an_undisturbed_one(family: str, file: Path) -> None:
    check_sessions(family, file, 3)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_sessions_go_on_as_undisturbed_ones(family: str, file: Path) -> None:
    check_sessions(family, file, 300)


def check_instances(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples, phases=UNSHRUNK)
    @given(of_family(family), dense, seeds)
    def agree(text: str, data: Data, seed: int) -> None:
        text = re.sub(r":a\b", "$who", text)
        assume("$who" in text and compiles(text))
        run_twin_instances(text, data, seed, file)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_instances_of_a_restored_session_go_on(family: str, file: Path) -> None:
    check_instances(family, file, 2)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_instances_of_many_restored_sessions_go_on(family: str, file: Path) -> None:
    check_instances(family, file, 200)


def check_networks(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples, phases=UNSHRUNK)
    @given(st.lists(of_family(family), min_size=1, max_size=3), dense, seeds)
    def agree(texts: list[str], data: Data, seed: int) -> None:
        random = Random(seed)
        feeding = producers(random)
        counts = re.compile("ELEMS|TRIPLES")  # the order of the triples of a report is not defined
        texts = [reading(text, [*feeding.values()], random) for text in texts]
        texts = [text for text in texts if compiles(text) and not counts.search(text)]
        texts += feeding
        random.shuffle(texts)
        run_twins(texts, data, seed, file, feeding)

    agree()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_network_goes_on_as_an_undisturbed_one(family: str, file: Path) -> None:
    check_networks(family, file, 2)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_networks_go_on_as_undisturbed_ones(family: str, file: Path) -> None:
    check_networks(family, file, 200)


# -- One query -------------------------------------------------------------------------------------


def check_query(text: str, data: Data, seed: int, file: Path, dialect: str, **how: Any) -> None:
    query = streamsparql.compile(text, dialect, **how)
    random = Random(seed)
    options: dict[str, Any] = {}
    match random.randrange(4):
        case 0:
            options["report"] = random.choice(["rstream", "istream", "dstream"])
            if random.random() < 0.5 and dialect != "epsparql":
                options["every"] = random.randint(1, 7)
        case 1:
            options["emit"] = "eager"
    if len(data.streams) > 1 and random.random() < 0.3:
        options["idle"] = 4
    LiveTwins(query, data.of(query), seed, file, **options).run()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_restored_query_goes_on_as_an_undisturbed_one(dialect: str, file: Path) -> None:
    @settings(max_examples=6, phases=UNSHRUNK)
    @given(queries(replace(EVERYTHING, dialect=dialect)), short_histories(), seeds)
    def agree(text: str, data: Data, seed: int) -> None:
        check_query(text, data, seed, file, dialect)

    agree()


def check_families(family: str, file: Path, examples: int) -> None:
    @settings(max_examples=examples, phases=UNSHRUNK)
    @given(of_family(family), dense, seeds)
    def agree(text: str, data: Data, seed: int) -> None:
        check_query(text, data, seed, file, "auto")

    agree()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_many_restored_queries_go_on_as_undisturbed_ones(family: str, file: Path) -> None:
    check_families(family, file, 300)


def check_events(file: Path, examples: int) -> None:
    @settings(max_examples=examples, phases=UNSHRUNK)
    @given(st.integers(0, 2**32))
    def agree(seed: int) -> None:
        random = Random(seed)
        rules: list[str] = []
        if random.random() < 0.5:
            writer: Any = random.choice([RuleWriter, RecursiveWriter])(random)
            rules = [PREFIX + writer.rule() for _ in range(random.randint(1, 3))]
            where = writer.pick("{ ?x ?l ?y }", "{ ?x :r ?y }", writer.chain())
            text = f"{PREFIX}SELECT * {SOURCES}{where}"
        else:
            text = PREFIX + EventWriter(random).query()
        drawn = random_events(random)
        streams: Any = {
            name: sorted(
                [(tuple(f"<{w}>" for w in text.split()), a, b) for text, a, b in items],
                key=lambda item: item[2],
            )
            for name, items in drawn.streams.items()
        }
        static = [tuple(f"<{word}>" for word in text.split()) for text in drawn.static]
        data = Data(streams, static, {})
        try:
            streamsparql.compile(text, "epsparql", rules=rules)
        except streamsparql.StreamSparqlError:
            assume(False)
        check_query(text, data, seed, file, "epsparql", rules=rules)

    agree()


def test_a_restored_query_about_events_goes_on(file: Path) -> None:
    check_events(file, 30)


@pytest.mark.long
def test_many_restored_queries_about_events_go_on(file: Path) -> None:
    check_events(file, 4_000)


def test_a_mapping_that_was_guessed_from_the_first_record_is_kept(file: Path) -> None:
    text = "SELECT ?p ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"
    live = streamsparql.compile(text).open(mapping="auto")
    live.push_record("s", {"v": 5, "t": 3})
    live.save(file)
    again = streamsparql.restore(file)
    for each in (live, again):
        each.push_record("s", {"v": 6, "t": 25})
        with pytest.raises(streamsparql.SourceError, match="unknown key 'w'"):
            each.push_record("s", {"w": "x", "t": 26})
        each.close()
    assert live.rows() == again.rows() != []


# -- Files that are not what is expected -----------------------------------------------------------

TEXT = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }"


@pytest.fixture
def saved(file: Path) -> Path:
    session = streamsparql.Session(graph=[("<a>", "<p>", "<b>")])
    session.register(TEXT, "rows")
    session.push_many("s", [("<a>", "<p>", f"<o{k}>", k) for k in range(20)])
    session.save(file)
    return file


def test_a_damaged_file_is_an_error_that_names_the_part(saved: Path) -> None:
    data = saved.read_bytes()
    header = data.index(b"\n", data.index(b"\n") + 1) + 1
    for at in range(0, len(data), 7):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]):
            saved.write_bytes(damaged)
            with pytest.raises(EngineError) as error:
                streamsparql.restore(saved)
            text = str(error.value)
            assert "its part '" in text if at > header + 6_000 else str(saved) in text
    saved.write_bytes(data + b"x")
    with pytest.raises(EngineError, match="unexpected bytes at its end"):
        streamsparql.restore(saved)


def test_a_content_that_cannot_be_true_is_an_error(saved: Path) -> None:
    read, random = read_checkpoint(saved), Random(3)
    for _ in range(150):
        content = json.loads(json.dumps(read.content))
        _change(content, random)
        write_checkpoint(saved, read._replace(content=content))
        with suppress(streamsparql.StreamSparqlError):
            streamsparql.Session.restore(saved)


def _change(content: Any, random: Random) -> None:
    """Change a value somewhere in JSON."""
    while True:
        keys = [*content] if isinstance(content, dict) else [*range(len(content))]
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(content[key], dict | list) and content[key] and random.random() < 0.9:
            content = content[key]
            continue
        if isinstance(content, dict) and random.random() < 0.3:
            del content[key]
        else:
            content[key] = random.choice([None, "x", -1, {}, []])
        return


def test_a_missing_part_is_named(saved: Path) -> None:
    read = read_checkpoint(saved)
    for name in read.tables:
        tables = {other: table for other, table in read.tables.items() if other != name}
        write_checkpoint(saved, read._replace(tables=tables))
        with pytest.raises(EngineError, match=r"missing|not a state"):
            streamsparql.restore(saved)


def test_a_file_of_another_format_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes().replace(b"checkpoint 1\n", b"checkpoint 2\n", 1))
    with pytest.raises(EngineError, match=r"has format 2 of checkpoints; this version .* format 1"):
        streamsparql.restore(saved)
    saved.write_bytes(b"something else")
    with pytest.raises(EngineError, match="is not a checkpoint of streamsparql"):
        streamsparql.restore(saved)
    with pytest.raises(EngineError, match="No such file"):
        streamsparql.restore(saved.with_name("nothing"))


def test_a_checkpoint_of_another_query_is_refused(file: Path) -> None:
    streamsparql.compile(TEXT).open().save(file)
    assert streamsparql.restore(file, query=TEXT).watermark == 0
    with pytest.raises(EngineError, match=r"of another query: line 1 is SELECT \?o .* there, and"):
        streamsparql.restore(file, query=TEXT.replace("10", "20"))
    with pytest.raises(EngineError, match=r"one query: use streamsparql.restore"):
        streamsparql.Session.restore(file)


def test_an_error_while_writing_leaves_the_old_file_and_the_session(saved: Path) -> None:
    session = streamsparql.Session.restore(saved)
    before = saved.read_bytes()
    with (
        patch("os.replace", side_effect=OSError(28, "No space left on device")),
        pytest.raises(EngineError, match="No space left on device"),
    ):
        session.save(saved)
    assert saved.read_bytes() == before
    assert [*saved.parent.iterdir()] == [saved]
    session.close()
    assert len(session.queries["rows"].rows()) == 21


def test_rows_that_wait_for_on_row_are_not_saved(file: Path) -> None:
    session = streamsparql.Session()

    def save(row: Any) -> None:
        session.save(file)

    session.register(TEXT, on_row=save)
    session.push_many("s", [("<a>", "<p>", f"<o{k}>", k) for k in range(3)])
    with pytest.raises(EngineError, match="rows wait for on_row: save outside of it"):
        session.close()
    assert not file.exists()


def test_unread_rows_and_static_graphs_are_saved(file: Path) -> None:
    session = streamsparql.Session(graph=[("<a>", "<p>", "<b>")], max_jump=None)
    query = session.register("SELECT ?o FROM STREAM <s> WINDOW RANGE 5 MS FIXED { ?s <p> ?o }")
    session.push_many("s", [("<a>", "<p>", "<c>", 1), ("<a>", "<p>", "<c>", 40)])
    session.advance(50)
    session.save(file)
    again = streamsparql.Session.restore(file)
    assert again.queries[query.name].rows() == query.rows() != []
    assert again.stats()._replace(terms=0) == session.stats()._replace(terms=0)


def test_only_terms_in_use_are_saved(file: Path) -> None:
    live = streamsparql.compile(TEXT).open()
    live.push_many("s", [("<a>", "<p>", f'"{k}-{k}"', k) for k in range(5_000)])
    live.rows()
    live.save(file)
    assert read_checkpoint(file).tables["terms"].num_rows < 50
