"""A live query: when rows are emitted, which items are late, which mistakes are errors.

test_engine_definitions.py and test_reports.py check that the rows are right, in whatever order the
calls are made; this file checks when rows are emitted, and all that those tests do not check.
"""

from __future__ import annotations

import io
import time
from random import Random
from typing import Any

import pytest
import rdflib

import streamsparql
from streamsparql.algebra.terms import integer
from streamsparql.errors import EngineError, SourceError
from streamsparql.physical.operator import INFINITY
from streamsparql.run.input import RunInput
from streamsparql.run.replay import Replay
from streamsparql.sources import Accounting

PREFIX = "PREFIX : <http://e/>\n"
S, T = "http://e/s", "http://e/t"
ONE = PREFIX + "SELECT ?n FROM STREAM :s WINDOW RANGE 10 FIXED { ?x :p ?n }"
TWO = PREFIX + (
    "SELECT ?n ?m FROM NAMED STREAM :s WINDOW RANGE 10 FIXED FROM NAMED STREAM :t WINDOW"
    " RANGE 10 FIXED { GRAPH :s { ?x :p ?n } OPTIONAL { GRAPH :t { ?x :p ?m } } }"
)


def item(n: int, subject: str = "a") -> tuple[str, str, str]:
    return f"<http://e/{subject}>", "<http://e/p>", str(integer(n))


def shown(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows as plain values: the numbers, the start, the end."""
    numbers = [[None if x is None else int(x) for x in row.values()] for row in rows]
    return [(*ns, row.start, row.end) for ns, row in zip(numbers, rows, strict=True)]


def reported(reports: list[Any]) -> list[tuple[int, list[int]]]:
    return [(instant, sorted(int(row["n"]) for row in rows)) for instant, rows in reports]


# -- when -----------------------------------------------------------------------------------------


def test_row_is_emitted_when_it_has_ended_or_if_eager_when_it_holds() -> None:
    final, eager = streamsparql.compile(ONE).open(), streamsparql.compile(ONE).open(emit="eager")
    for live in (final, eager):
        live.push(S, item(1), 3)
        live.advance(7)
    assert shown(final.rows()) == []
    assert shown(eager.rows()) == [(1, 3, 7)]
    for live in (final, eager):
        live.advance(11)  # at 10 an equal row could still begin where this one ends
    assert shown(final.rows()) == [(1, 3, 10)]
    assert shown(eager.rows()) == [(1, 7, 10)]


GROUPS = "FROM STREAM :s WINDOW RANGE 40 SLIDE 5 WHERE { ?x :p ?n } GROUP BY ?x"
DELAYING = {
    "average": "SELECT (AVG(?n) AS ?v) FROM STREAM :s WINDOW RANGE 10000 FIXED { ?x :p ?n }",
    "groups": f"SELECT ?x (SUM(?n) AS ?v) {GROUPS}",
    "groups with a condition": f"SELECT ?x (MAX(?n) AS ?v) {GROUPS} HAVING(MAX(?n) > 3)",
    "groups without keys": f"SELECT (COUNT(?n) AS ?v) {GROUPS}",
    "values of values": f"SELECT ?x (SUM(?n) * 0 AS ?v) {GROUPS}",
    "left join": "SELECT ?x ?n ?m FROM STREAM :s WINDOW RANGE 40"
    " { ?x :p ?n OPTIONAL { ?y :p ?m FILTER(?m = ?n + 1) } }",
    "group of a left join": "SELECT ?n (COUNT(?m) AS ?v) FROM STREAM :s WINDOW RANGE 40"
    " { ?x :p ?n OPTIONAL { ?y :p ?m FILTER(?m = ?n + 1) } } GROUP BY ?n",
    "slice": "SELECT ?n FROM STREAM :s WINDOW RANGE 40 { ?x :p ?n } ORDER BY ?n LIMIT 2",
    "distinct": "SELECT DISTINCT ?n FROM STREAM :s WINDOW RANGE 40 { ?x :p ?n }",
    "bag": "SELECT ?n FROM STREAM :s WINDOW RANGE 40 { ?x :p ?n }",
}


@pytest.mark.parametrize("name", DELAYING)
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_rows_are_emitted_as_soon_as_the_watermark_makes_them_final(name: str) -> None:
    """A row that ends before the watermark is final: later items change later instants only."""
    random = Random(3)
    query = streamsparql.compile(PREFIX + DELAYING[name])
    live, called, calls = query.open(), [], []
    other = query.open(on_row=called.append)
    items: list[Any] = []
    now = 0
    for _ in range(30):
        if random.random() < 0.3:
            watermark = now = now + random.choice([1, 30])
            live.advance(watermark)
            other.advance(watermark)
        else:
            now += random.choice([0, 0, 1, 4, 15])
            triple = item(random.randrange(6), random.choice("abc"))
            items.append((*triple, now))
            live.push(S, triple, now)
            other.push(S, triple, now)
        calls += live.rows()
        final = [row for row in query.run({S: items}) if row.end < live.watermark]
        assert sorted(map(str, calls)) == sorted(map(str, final))
        assert sorted(map(str, called)) == sorted(map(str, final))


class Lines(io.RawIOBase):
    """A pipe from which each read returns one line."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.lines.pop(0).encode() if self.lines else b""
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
@pytest.mark.parametrize("name", DELAYING)
def test_run_over_a_pipe_emits_rows_as_soon_as_they_are_final(name: str) -> None:
    random, now = Random(4), 0
    query = streamsparql.compile(PREFIX + DELAYING[name])
    items: list[Any] = []
    for _ in range(40):
        now += random.choice([0, 0, 1, 4, 15, 40])
        items.append((*item(random.randrange(6), random.choice("abc")), now))
    lines = [f"{s} {p} {o} <t/{t}> .\n" for s, p, o, t in items]
    pipe = io.BufferedReader(Lines(lines))
    replay = Replay(query, RunInput({S: pipe}), ordered=False, endless=True)
    emitted: list[Any] = []
    steps = 0
    for table in replay.tables():
        emitted += table.to_pylist()
        ended = replay.watermark == INFINITY
        whole = query.run({S: items[: replay.accounting.read]}).to_arrow().to_pylist()
        final = [row for row in whole if ended or row["end"] < replay.watermark]
        assert sorted(map(str, emitted)) == sorted(map(str, final))
        steps += 1
    assert steps > 20


@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_value_of_a_group_is_emitted_when_the_next_one_is_known() -> None:
    live = streamsparql.compile(PREFIX + DELAYING["average"]).open()
    for n, t in ((1, 1000), (3, 3000), (9, 9000)):
        live.push(S, item(n), t)
    assert [(row.start, row.end) for row in live.rows()] == [(1000, 3000)]


def test_rows_are_returned_once() -> None:
    live = streamsparql.compile(ONE).open()
    live.push(S, item(1), 3)
    live.advance(50)
    assert len(live.rows()) == 1
    assert live.rows() == []


def test_close_emits_all_rows_and_can_be_repeated() -> None:
    with streamsparql.compile(ONE).open() as live:
        live.push(S, item(1), 3)
        live.push(S, item(2), 13)
    assert shown(live.rows()) == [(1, 3, 10), (2, 13, 20)]
    live.close()
    assert live.rows() == []
    for call in (lambda: live.push(S, item(1), 30), lambda: live.advance(30)):
        with pytest.raises(EngineError, match="closed"):
            call()


def test_on_row_is_called_once_a_row_is_final() -> None:
    emitted: list[Any] = []
    live = streamsparql.compile(ONE).open(on_row=emitted.append)
    live.push(S, item(1), 3)
    live.push(S, item(2), 9)
    assert emitted == []
    live.push(S, item(3), 21)
    assert shown(emitted) == [(1, 3, 10), (2, 9, 10)]
    live.close()
    assert shown(emitted)[2:] == [(3, 21, 30)]


def test_rows_of_one_stream_wait_for_the_other() -> None:
    live = streamsparql.compile(TWO).open()
    live.push(S, item(1), 3)
    live.push(S, item(2), 33)
    assert live.rows() == []
    live.push(T, item(7), 5)
    live.advance(12, stream=T)
    rows = shown(live.rows())
    assert sorted(rows, key=str) == [(1, 7, 5, 10), (1, None, 3, 5)]


def test_idle_stream_delays_no_rows() -> None:
    live = streamsparql.compile(TWO).open(idle=20)
    live.push(S, item(1), 3)
    live.push(S, item(2), 22)
    assert live.rows() == []
    live.push(S, item(3), 44)
    assert shown(live.rows()) == [(1, None, 3, 10), (2, None, 22, 30)]
    live.push(T, item(7), 5)
    assert live.rows() == []
    assert [reject.reason for reject in live.late] == ["late by 39 ms"]
    live.close()
    assert shown(live.rows()) == [(3, None, 44, 50)]


# -- reports --------------------------------------------------------------------------------------


def test_every_window_is_reported_even_in_a_gap() -> None:
    live = streamsparql.compile(ONE).open(report="rstream")
    live.push(S, item(1), 3)
    assert live.rows() == []
    live.push(S, item(2), 44)
    assert reported(live.rows()) == [(10, [1]), (20, []), (30, []), (40, [])]
    live.close()
    assert reported(live.rows()) == [(50, [2]), (60, [])]  # the last shows that it has ended


def test_event_on_a_border_is_in_the_window_that_begins_there() -> None:
    items = [(item(n), t) for n, t in enumerate([0, 9, 10, 20])]
    reports = [(10, [0, 1]), (20, [2]), (30, [3]), (40, [])]
    query = streamsparql.compile(ONE)
    assert reported(list(query.run({S: items}).report("rstream"))) == reports
    live = query.open(report="rstream")
    for triple, t in items:
        live.push(S, triple, t)
    live.close()
    assert reported(live.rows()) == reports


def test_event_on_a_border_of_c_sparql_is_in_the_window_that_ends_there() -> None:
    text = PREFIX + "SELECT ?n FROM STREAM :s [RANGE 10ms STEP 10ms] WHERE { ?x :p ?n }"
    items = [(item(n), t) for n, t in enumerate([0, 9, 10, 20])]
    reports = reported(list(streamsparql.compile(text).run({S: items}).report()))
    assert reports == [(0, [0]), (10, [1, 2]), (20, [3]), (30, [])]


def test_report_is_emitted_when_nothing_can_change_it() -> None:
    live = streamsparql.compile(ONE).open(report="rstream", max_delay=5)
    live.push(S, item(1), 3)
    live.push(S, item(2), 14)
    assert live.rows() == []
    live.push(S, item(3), 9)
    live.push(S, item(4), 15)
    live.push(S, item(5), 16)
    assert reported(live.rows()) == [(10, [1, 3])]


def test_on_row_is_called_with_each_report() -> None:
    emitted: list[Any] = []
    live = streamsparql.compile(ONE).open(report="istream", every=5, on_row=emitted.append)
    live.push(S, item(1), 3)
    live.push(S, item(2), 12)
    assert reported(emitted) == [(5, [1]), (10, [])]


# -- late, rejected and implausible items ---------------------------------------------------------


def test_late_items_are_returned_and_change_no_row() -> None:
    items = [(item(1), 3), (item(2), 12), (item(3), 4), (item(4), 13)]
    query = streamsparql.compile(ONE)
    live = query.open()
    for triple, t in items:
        live.push(S, triple, t)
    live.close()
    result = query.run({S: items})
    for rows in (live.rows(), list(result)):
        assert shown(rows) == [(1, 3, 10), (2, 12, 20), (4, 13, 20)]
    for late in (live.late, result.late):
        (reject,) = late
        assert (reject.reason, S in reject.source) == ("late by 8 ms", True)
    assert live.stats().late == 1


def test_last_rejects_are_retained_and_all_are_counted() -> None:
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s ?p ?o }")
    live = query.open(graph=[("<a>", '"no predicate"', "<b>")])
    assert (len(live.late), len(live.rejected)) == (0, 1)
    stats = live.stats()
    assert (stats.rejected, stats.graph_rejects, stats.items.rejected) == (1, 1, 0)
    live.push("s", ("<a>", "<p>", "<b>"), 5_000)
    live.push_many("s", [("<a>", "<p>", "<b>" if t % 3 else "<b", t) for t in range(3_000)])
    stats = live.stats()
    assert (stats.items.accepted, stats.late, stats.items.rejected) == (1, 2_000, 1_000)
    assert (len(live.late), live.late[-1].position) == (1_000, 3_001)
    assert (len(live.rejected), live.rejected[-1].position) == (1_000, 2_999)


def test_stats_analysis_and_trace_count_the_same_items() -> None:
    """Of five items two match, one is unmatched, one is late, one is malformed."""
    query = streamsparql.compile("SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }")
    items = [
        ("<a>", "<p>", "<b>", 20),
        ("<a>", "<q>", "<b>", 21),
        ("<a>", "<p>", "<b", 22),
        ("<a>", "<p>", "<c>", 5),
        ("<a>", "<p>", "<d>", 23),
    ]
    live = query.open()
    live.push_many("s", items)
    live.close()
    result, trace, stats = query.run(items), query.trace(items), live.stats()
    expected = Accounting(read=5, accepted=3, late=1, rejected=1, unmatched=1)
    assert stats.items == query.analyze(items).items == trace.accounting == expected
    for run in (live, result, trace):
        assert (len(run.late), len(run.rejected)) == (stats.late, stats.rejected) == (1, 1)
    measured = [(o.kind, sum(o.rows_in), o.rows_out) for o in query.analyze(items).operators]
    assert [(o.operator, o.rows_in, o.rows_out) for o in stats.operators] == measured


def test_items_within_max_delay_are_not_late() -> None:
    items = [(item(1), 3), (item(2), 12), (item(3), 4), (item(4), 13)]
    result = streamsparql.compile(ONE).run({S: items}, max_delay=8)
    assert shown(list(result)) == [(1, 3, 10), (3, 4, 10), (2, 12, 20), (4, 13, 20)]
    assert result.late == []


@pytest.mark.parametrize("bad", [("a", "b", "c", 5), ("<a>", "<b>", '"1"'), (*item(1), "soon")])
def test_malformed_item_is_rejected(bad: Any) -> None:
    result = streamsparql.compile(ONE).run({S: [(*item(1), 3), bad, (*item(2), 5)]})
    assert shown(list(result)) == [(1, 3, 10), (2, 5, 10)]
    (reject,) = result.rejected
    assert (reject.position, result.late) == (2, [])


def test_bad_and_late_items_are_errors_of_a_strict_run() -> None:
    query = streamsparql.compile(ONE)
    for items in ([(item(1), 9), (item(2), 3), (item(3), 12)], [(("a", "b", "c"), 3)]):
        with pytest.raises(SourceError):
            list(query.run({S: items}, strict=True))
        live = query.open(strict=True)
        with pytest.raises(SourceError):
            live.push_many(S, items)


def test_one_stamp_in_the_future_makes_no_item_late() -> None:
    future = 4_000_000_000_000
    items = [(item(1), 3), (item(2), future), (item(3), 12), (item(4), 13)]
    query = streamsparql.compile(ONE)
    live = query.open()
    for triple, t in items:
        live.push(S, triple, t)
        live.rows() if t == future else None
    live.close()
    result = query.run({S: items})
    for rows in (live.rows(), list(result)):
        assert shown(rows)[-2:] == [(3, 12, 20), (4, 13, 20)]
    for rejected in (live.rejected, result.rejected):
        assert [("4000000000000" in reject.reason) for reject in rejected] == [True]


def test_without_the_guard_a_stamp_in_the_future_is_accepted() -> None:
    items = [(item(1), 3), (item(2), 4_000_000_000_000), (item(3), 12)]
    result = streamsparql.compile(ONE).run({S: items}, max_jump=None)
    assert [row.start for row in result] == [3, 4_000_000_000_000]
    assert len(result.late) == 1


# -- arguments ------------------------------------------------------------------------------------


def test_streams_and_graphs_must_be_those_that_the_query_reads() -> None:
    query = streamsparql.compile(TWO)
    with pytest.raises(SourceError, match="http://e/t"):
        query.run({S: []})
    with pytest.raises(SourceError, match="http://e/u"):
        query.run({S: [], T: [], "http://e/u": []})
    with pytest.raises(SourceError, match="http://e/g"):
        query.run({S: [], T: []}, graphs={"http://e/g": []})
    with pytest.raises(SourceError, match="http://e/g"):
        query.open(graphs={"http://e/g": []})
    with pytest.raises(SourceError, match="by IRI"):
        query.run([])


def test_unknown_stream_is_an_error() -> None:
    live = streamsparql.compile(ONE).open()
    for call in (
        lambda: live.push("http://e/u", item(1), 3),
        lambda: live.push_many("http://e/u", []),
        lambda: live.advance(3, stream="http://e/u"),
    ):
        with pytest.raises(EngineError, match=r"http://e/u.*http://e/s"):
            call()


def test_invalid_options_are_errors() -> None:
    query = streamsparql.compile(ONE)
    for options in ({"emit": "sometimes"}, {"report": "xstream"}, {"every": 0}):
        with pytest.raises(EngineError):
            query.open(**options)
    with pytest.raises(EngineError):
        query.run({S: []}, engine="abacus")


# -- the horizon, state ---------------------------------------------------------------------------


def test_results_are_cut_at_the_horizon() -> None:
    items = [(item(1), 3), (item(2), 12), (item(3), 21)]
    query = streamsparql.compile(ONE)
    assert shown(list(query.run({S: items}, start=5, end=15))) == [(1, 5, 10), (2, 12, 15)]
    with query.open(start=5, end=15) as live:
        for triple, t in items:
            live.push(S, triple, t)
    assert shown(live.rows()) == [(1, 5, 10), (2, 12, 15)]


def test_horizon_includes_times_without_items() -> None:
    text = PREFIX + "SELECT (COUNT(*) AS ?n) FROM STREAM :s WINDOW RANGE 10 FIXED { ?x :p ?y }"
    result = streamsparql.compile(text).run({S: [(item(1), 13)]}, start=5, end=30)
    assert shown(list(result)) == [(0, 5, 13), (1, 13, 20), (0, 20, 30)]


def test_state_expires_with_the_windows() -> None:
    live = streamsparql.compile(TWO).open()
    for k in range(300):
        live.push(S, item(k, f"s{k}"), k)
        live.push(T, item(k, f"s{k}"), k)
    during = live.stats()
    assert during.items.accepted == 600
    assert 0 < during.state < 100
    live.advance(1000)
    after = live.stats()
    assert (after.state, after.watermark, after.late) == (0, 1000, 0)
    assert len(live.rows()) == 300
    assert {o.operator for o in after.operators} >= {"StreamAccess", "LeftJoin"}


def test_unused_terms_are_purged() -> None:
    live = streamsparql.compile(ONE).open()
    most = 0
    for k in range(16):
        new = [(item(n, f"s{n}"), n) for n in range(k * 5000, (k + 1) * 5000)]
        live.push_many(S, new)
        most = max(most, live.stats().terms, len(live.rows()))
    assert most < 70_000
    assert live.stats().items.accepted == 80_000


def test_item_without_a_timestamp_gets_the_present_time() -> None:
    before = time.time_ns() // 1_000_000
    with streamsparql.compile(ONE).open() as live:
        live.push(S, item(1))
    (row,) = live.rows()
    assert before <= row.start <= time.time_ns() // 1_000_000


def test_snapshot_during_iteration_loses_no_row() -> None:
    items = [(*item(k % 7), 3 * k) for k in range(200_000)]
    result = streamsparql.compile(ONE).run(items)
    seen = 0
    for row in result:
        if not seen:
            assert result.snapshot(row.start)
        seen += 1
    assert seen == len(list(result)) > 65_536


def test_graphs_may_be_named_by_rdflib_terms() -> None:
    query = streamsparql.compile("SELECT ?o { GRAPH <http://e/g> { ?s ?p ?o } }")
    graphs = {rdflib.URIRef("http://e/g"): [("<a>", "<p>", '"1"')]}
    assert [str(row["o"]) for row in query.run(graphs=graphs)] == ["1"]


def test_position_of_a_reject_counts_all_pushed_items():
    with streamsparql.compile(ONE).open() as live:
        for t in (1, 2, 3):
            live.push("http://e/s", ("<a>", "<p>", '"1"'), t)
            live.rows()
        live.push_many("http://e/s", [("<a>", '"p"', '"1"', 4)])
        assert [(reject.position, reject.unit) for reject in live.rejected] == [(4, "item")]


@pytest.mark.parametrize("t", [None, 1.5, 2**70, -1, "soon", True])
def test_advance_to_what_is_no_instant_is_an_error_that_changes_nothing(t: Any) -> None:
    live = streamsparql.compile(ONE).open()
    live.push(S, item(1), 3)
    with pytest.raises(EngineError, match=r"^t(:| must not be before 1970)"):
        live.advance(t)
    live.advance(50)
    assert len(live.rows()) == 1
    with pytest.raises(EngineError, match="on_row must be a function of a row, not 5"):
        streamsparql.compile(ONE).open(on_row=5)


@pytest.mark.parametrize("t", [1.5, "x", True, -1, 2**70])
def test_snapshot_at_what_is_no_instant_is_an_error(t: Any) -> None:
    result = streamsparql.compile(ONE).run([(*item(1), 3)])
    with pytest.raises(EngineError, match=r"^t(:| must) "):
        result.snapshot(t)
    assert (len(result.snapshot(3)), len(result.snapshot("3")), result.snapshot(0)) == (1, 1, [])


@pytest.mark.parametrize("options", [{"strict": 5}, {"strict": None}, {"idle": 2**80}])
def test_options_of_the_wrong_type_are_errors(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(EngineError, match=f"{name}(:| must be) "):
        streamsparql.compile(ONE).open(**options)


def test_closed_file_is_an_error_of_this_package() -> None:
    file = io.BytesIO(b"")
    file.close()
    with pytest.raises(SourceError, match="<http://e/s>: the file is closed"):
        streamsparql.compile(ONE).open().push_many(S, file)
