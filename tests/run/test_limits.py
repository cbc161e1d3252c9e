"""Limits: each kind of hostile query meets them in the middle of a step, and no answer is partial.

Time is a clock that each look at it moves by a second: an operator that checks its limits in the
middle of a step looks at it often.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from typing import Any

import pytest
from support.command_line import ENVIRONMENT
from support.operator_queries import OPERATORS, PREFIX

import streamsparql
from streamsparql import LimitExceeded, Limits
from streamsparql.errors import EngineError
from streamsparql.limits import active_meter, check_string
from streamsparql.run.live import Live

# Hostile queries deserve the warnings that they get.
pytestmark = pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")

S = "http://e/s"
COUNT = 400


def over(where: str, select: str = "*", window: str = "RANGE 1 DAY SLIDE") -> Any:
    text = f"{PREFIX}SELECT {select} FROM STREAM :s WINDOW {window} {{ {where} }}"
    return streamsparql.compile(text)


def items(size: int = COUNT) -> list[tuple[str, str, str, int]]:
    return [(f"<http://e/{n}>", "<http://e/p>", f"<http://e/{n + 1}>", n) for n in range(size)]


DOUBLED = " ".join(f"BIND(CONCAT(?v{k}, ?v{k}) AS ?v{k + 1})" for k in range(40))

HOSTILE = {
    "cross product": (over("?x :p ?y . ?a :p ?b"), "Join on no column: a Cartesian product"),
    "counted product": (over("?x :p ?y . ?a :p ?b", "(COUNT(*) AS ?n)"), "Join on no column"),
    "left join": (over("?x :p ?y OPTIONAL { ?a :p ?b }"), "LeftJoin on no column"),
    "left join with a condition": (
        over("?x :p ?y OPTIONAL { ?a :p ?b FILTER(?a != ?y && ?x = :none) }"),
        "LeftJoin on no column",
    ),
    "exists": (over("?x :p ?y FILTER EXISTS { ?a :p ?b }"), "SemiJoin on no column"),
    "not exists": (over("?x :p ?y FILTER NOT EXISTS { ?a :p ?b }"), "AntiJoin on no column"),
    "closure": (over("?x :p+ ?y"), "TransitiveClosure"),
    "negated paths": (over("?x (:p|!:q)+ ?y"), "TransitiveClosure"),
}
"""Queries that produce many rows, or try many pairs, from few items; and the operator."""


@pytest.mark.parametrize("limits", [Limits(rows=5_000), Limits(state=5_000), Limits(time=60.0)])
@pytest.mark.parametrize("name", HOSTILE)
def test_many_rows_of_one_step_meet_any_limit(name, limits, monkeypatch):
    query, operator = HOSTILE[name]
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    monkeypatch.setattr("streamsparql.physical.kernels.intervals.BLOCK", 500)
    result = query.run(items(), limits=limits)
    for _ in range(2):  # the same error again
        with pytest.raises(LimitExceeded) as raised:
            result.to_arrow()
        error = raised.value
        (limit,) = {"rows", "state", "time"} & {n for n in vars(limits) if getattr(limits, n)}
        assert (error.limit, error.value) == (limit, getattr(limits, limit))
        assert error.operator.startswith(operator)
        assert str(error).endswith(
            f", in {error.operator}; raise the limit with Limits({limit}=..), on the command line"
            f" with --{limit.removesuffix('s')}-limit"
        )


def test_a_product_of_three_inputs_meets_the_limit_of_rows_in_its_step():
    query = over("?x :p ?y . ?a :p ?b . ?c :p ?d")
    with pytest.raises(LimitExceeded, match="more than 5,000 rows") as caught:
        query.run(items(), limits=Limits(rows=5_000)).to_arrow()
    assert caught.value.operator.startswith("MultiJoin on no column")


@pytest.mark.parametrize("name", HOSTILE)
def test_many_rows_of_one_step_meet_the_limit_of_memory(name):
    query, _ = HOSTILE[name]
    with pytest.raises(LimitExceeded, match=r"more than 1,000,000 bytes of rows and terms, in "):
        query.run(items(), limits=Limits(memory=1_000_000)).to_arrow()
    query.run(items(20), limits=Limits(memory=1_000_000)).to_arrow()


STRINGS = {
    "CONCAT": over(f"?v0 :p ?y {DOUBLED.replace('?v0', 'STR(?v0)')}", "?v40"),
    "CONCAT of constants": over(f"?x :p ?y BIND('a' AS ?v0) {DOUBLED}", "?v40"),
    "REPLACE": over("?x :p ?y BIND(REPLACE(?a, 'a', ?a) AS ?b)".replace("?a", f"'{'a' * 200}'")),
    "REPLACE by the automaton": over(
        f"?x :p ?y BIND(REPLACE(CONCAT(STR(?x), '{'a' * 2_000}'), '(a|ab)(c|bcd)*', 'xx$1$1') AS ?b)"
    ),
    "ENCODE_FOR_URI": over(f"?x :p ?y BIND(ENCODE_FOR_URI(CONCAT(STR(?x), '{'é' * 500}')) AS ?b)"),
    "UCASE": over(f"?x :p ?y BIND(UCASE(CONCAT(STR(?x), '{'ß' * 1500}')) AS ?b)"),
    "GROUP_CONCAT": over("?x :p ?y", "(GROUP_CONCAT(CONCAT(STR(?y), STR(?y))) AS ?g)"),
    "decimals": over(
        "?x :p ?y BIND(STRLEN(STR(?x)) + 0.1 AS ?v0)"
        + " ".join(f"BIND(?v{k} * ?v{k} AS ?v{k + 1})" for k in range(40)),
        "?v40",
    ),
}


@pytest.mark.parametrize("name", STRINGS)
def test_long_strings_are_not_built(name):
    with pytest.raises(LimitExceeded, match=r"more than 2,000 characters in a term, in ") as raised:
        STRINGS[name].run(items(150), limits=Limits(string=2_000)).to_arrow()
    assert raised.value.limit == "string"


@pytest.mark.parametrize("name", ["CONCAT", "CONCAT of constants"])
def test_strings_have_a_limit_by_default(name, monkeypatch):
    monkeypatch.setattr("streamsparql.limits.LONGEST_STRING", 10_000)
    with pytest.raises(LimitExceeded, match=r"more than 10,000 characters in a term, in \w+"):
        STRINGS[name].run(items(6)).to_arrow()
    monkeypatch.undo()
    with pytest.raises(LimitExceeded, match="16,777,216"):
        check_string(1 << 40)


def test_strings_have_no_limit_if_it_is_none():
    rows = over("?x :p ?y BIND(CONCAT(STR(?x), 'b') AS ?z)").run(
        items(8), limits=Limits(string=None)
    )
    assert len(rows.to_arrow()) == 8


def test_many_strings_of_one_step_meet_the_limit_of_memory():
    query = over(f"?x :p ?y BIND(CONCAT(STR(?x), '{'a' * 10_000}') AS ?z)")
    with pytest.raises(LimitExceeded, match=r"2,000,000 bytes of rows and terms, in Extend \?z"):
        query.run(items(), limits=Limits(memory=2_000_000)).to_arrow()


LOOPS = {
    "regular expression": over(f"?x :p ?y FILTER(REGEX(CONCAT(STR(?x), '{'a' * 99}'), '(a+)+$'))"),
    "groups": over("?x :p ?y", "(GROUP_CONCAT(?y) AS ?g)"),
    "slice": over("?x :p ?y", "?x").text + " ORDER BY ?x LIMIT 3",
    "blank nodes": over("?x :p ?y", "?x").text.replace("SELECT ?x", "CONSTRUCT { _:b :q ?x }"),
    "numbers of equal rows": over("?x :p ?y BIND(UUID() AS ?u)"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_rows_meet_the_limit_of_time(name, monkeypatch):
    query = LOOPS[name]
    query = streamsparql.compile(query) if isinstance(query, str) else query
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    steps = len(query.run(items()).computation._execution.pipeline.operators)
    with pytest.raises(LimitExceeded, match="more than 200 s, in"):
        query.run(items(), limits=Limits(time=200)).to_arrow()
    assert 4 * steps < 200  # the operators alone look at the clock less
    query.run(items(3), limits=Limits(time=200)).to_arrow()


def test_long_texts_meet_the_limit_of_time_in_the_middle_of_a_regular_expression(monkeypatch):
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    monkeypatch.setattr("streamsparql.algebra.xsd.regex_automaton._PIECE", 10)
    text = "ab" * 5_000
    for condition in ("REGEX(?t, '(a|b|ab)*c(a|b)*$')", "REPLACE(?t, '(a|b|ab)*c', 'x') = 'x'"):
        query = streamsparql.compile(f"ASK {{ VALUES ?t {{ '{text}' }} FILTER({condition}) }}")
        with pytest.raises(LimitExceeded, match="more than 300 s"):
            query.run(limits=Limits(time=300)).to_arrow()


def test_reports_meet_the_limit_of_rows():
    query = over("?x :p ?y")
    for kind in ("rstream", "istream"):
        result = query.run(items(), limits=Limits(rows=10_000))
        with pytest.raises(
            LimitExceeded, match=f"10,000 rows in one step, in Reports {kind} every"
        ):
            result.to_arrow(report=kind, every=1)


def test_an_operator_may_pass_on_what_it_consumes():
    table = over("?x :p ?y FILTER(?x != :none)").run(items(), limits=Limits(rows=1)).to_arrow()
    assert len(table) == COUNT


def test_the_operator_that_retains_most_is_named():
    query = over("?x :p ?y . ?y :q ?z")
    with pytest.raises(LimitExceeded, match="more than 50 rows in the state, in Join on y;"):
        query.run(items(), limits=Limits(state=50)).to_arrow()


@pytest.mark.parametrize("source", ["graph", "stream", "file"])
def test_terms_that_are_read_count_as_memory(source, tmp_path):
    triples = [(f"<http://e/{n}>", "<http://e/p>", f'"{"x" * 500}{n}"') for n in range(2_000)]
    (tmp_path / "g.nt").write_text("".join(f"{' '.join(t)} .\n" for t in triples))
    name = "<http://e/s>" if source == "stream" else "the default graph"
    stream = [(*t, 5) for t in triples] if source == "stream" else []
    graph = {"graph": triples, "file": str(tmp_path / "g.nt")}.get(source)
    with pytest.raises(LimitExceeded, match=f"500,000 bytes of rows and terms, in reading {name};"):
        over("?x :p ?y").run(stream, graph, limits=Limits(memory=500_000)).to_arrow()


def test_results_that_are_retained_count_as_memory():
    query = over("?x :p ?y", window="RANGE 1 MS FIXED")

    def push(read: bool) -> None:
        with query.open(limits=Limits(memory=300_000)) as live:
            for k in range(100):
                live.push_many(S, [(s, p, o, 100 * k + t) for s, p, o, t in items(100)])
                assert len(live.rows()) > 90 if read else live.watermark

    with pytest.raises(LimitExceeded, match="300,000 bytes"):
        push(read=False)
    push(read=True)


# -- where limits are set -------------------------------------------------------------------------


CALLS = {
    "run": lambda query, **options: query.run(items(), **options).to_arrow(),
    "rows": lambda query, **options: list(query.run(items(), **options)),
    "write": lambda query, **options: query.run(items(), **options).write("/dev/null", "csv"),
    "report": lambda query, **options: query.run(items(), **options).to_arrow(report="rstream"),
    "analyze": lambda query, **options: query.analyze(items(), **options),
    "trace": lambda query, **options: list(query.trace(items(), **options)),
    "open": lambda query, **options: pushed(query.open(**options)),
}


def pushed(live: Live) -> list[Any]:
    with live:
        live.push_many(S, items())
    return live.rows()


@pytest.mark.parametrize("call", CALLS)
def test_every_way_to_run_a_query_has_limits(call):
    text = HOSTILE["cross product"][0].text.replace("1 DAY", "60 MS")
    rows = 30 if call == "trace" else 10_000  # a trace has a step for each instant
    with pytest.raises(LimitExceeded):
        CALLS[call](streamsparql.compile(text), limits=Limits(rows=rows))
    CALLS[call](streamsparql.compile(text), limits=Limits(rows=10_000_000))
    with pytest.raises(LimitExceeded):
        CALLS[call](streamsparql.compile(text, limits=Limits(rows=rows)))
    own = Limits(rows=10_000_000)
    CALLS[call](streamsparql.compile(text, limits=Limits(rows=rows)), limits=own)


def test_open_query_is_unusable_after_it_exceeded_a_limit():
    live = HOSTILE["cross product"][0].open(limits=Limits(rows=1_000))
    live.push_many(S, items())
    with pytest.raises(LimitExceeded):
        live.rows()
    for later in (live.rows, live.close, live.stats, lambda: live.push(S, items(1)[0][:3], 900)):
        with pytest.raises(EngineError, match=r"unusable: LimitExceeded \(more than 1,000 rows in"):
            later()


def test_each_step_of_an_open_query_has_the_whole_time(monkeypatch):
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    live = over("?x :p ?y").open(limits=Limits(time=100.0))
    for s, p, o, t in items():
        live.push(S, (s, p, o), t)
        live.rows()
    live.close()
    assert next(clock) > 1_000


def test_time_between_two_requests_is_not_counted(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: now[0])
    rows = iter(over("?x :p ?y", window="RANGE 1 MS FIXED").run(items(), limits=Limits(time=1.0)))
    for _ in range(COUNT):
        next(rows)
        now[0] += 10.0
    assert list(rows) == []


def test_compile_has_limits_of_text_and_time(monkeypatch):
    text = f"ASK {{ {'?x :p ?y . ' * 100} }}"
    with pytest.raises(LimitExceeded, match="more than 99 characters in the text of the query, in"):
        streamsparql.compile(text, limits=Limits(text=99))
    clock = count()
    monkeypatch.setattr("streamsparql.limits.perf_counter", lambda: next(clock))
    with pytest.raises(LimitExceeded, match="more than 99 s, in the compilation; raise"):
        streamsparql.compile(PREFIX + text, limits=Limits(time=99, text=9_999))
    where = " ".join(f"?x :p{k} ?y FILTER(?y != {k})" for k in range(60))
    query = streamsparql.compile(f"{PREFIX} ASK {{ {where} }}", limits=Limits(time=9_999))
    object.__setattr__(query.recipe.limits, "time", 99)
    with pytest.raises(LimitExceeded, match="more than 99 s, in the rewriting of the plan; raise"):
        query.optimized  # noqa: B018 -- it is computed on first use


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"rows": 0}, "rows must be a positive whole number, not 0"),
        ({"state": 1.5}, "state must be a positive whole number, not 1.5"),
        ({"memory": "2GB"}, "memory must be a positive whole number, not '2GB'"),
        ({"time": -1}, "time must be a positive number of seconds, not -1"),
        ({"time": float("nan")}, "time must be a positive number of seconds, not nan"),
        ({"text": True}, "text must be a positive whole number, not True"),
    ],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(EngineError, match=f"^limits: {message}$"):
        Limits(**limits)


def test_limits_of_another_type_are_an_error():
    query = over("?x :p ?y")
    for call in (query.run, query.open, query.trace, query.analyze):
        with pytest.raises(
            EngineError, match=r"limits must be a streamsparql.Limits, not \{'rows'"
        ):
            call(limits={"rows": 5}) if call == query.open else call(items(), limits={"rows": 5})
    with pytest.raises(EngineError, match=r"limits must be a streamsparql.Limits, not 5; write"):
        streamsparql.compile(query.text, limits=5)


def test_queries_in_callbacks_and_sources_have_their_own_limits():
    inner = over("?x :p ?y . ?a :p ?b")

    def source() -> Any:
        assert len(inner.run(items(50)).to_arrow()) == 2_500
        yield from items(50)

    def on_row(row: Any) -> None:
        assert active_meter() is None

    with over("?x :p ?y").open(on_row=on_row, limits=Limits(rows=100, string=50)) as live:
        live.push_many(S, source())
    assert active_meter() is None


# -- answers --------------------------------------------------------------------------------------

ITEMS = [
    (f"<http://e/{'abcd'[n % 4]}>", f"<http://e/{'pv'[n % 2]}>", *rest, 3 * n)
    for n in range(120)
    for rest in [(f"<http://e/{'bcda'[n % 3]}>",) if n % 2 == 0 else (f'"{n % 5}"',)]
]


@pytest.mark.parametrize("name", OPERATORS)
def test_an_answer_within_limits_is_whole(name):
    """The greater a limit the longer a run goes; it ends with the answer or with an error."""
    text = PREFIX + OPERATORS[name].replace("FROM", "FROM STREAM :s WINDOW RANGE 90 SLIDE 5 WHERE")
    query = streamsparql.compile(text)
    wanted = query.run(ITEMS).to_arrow()
    for limit in ("rows", "state", "memory"):
        outcomes = []
        for size in (1, 10, 100, 1_000, 10_000, 10**9):
            try:
                table = query.run(ITEMS, limits=Limits(**{limit: size})).to_arrow()
            except LimitExceeded as error:
                assert (error.limit, bool(error.operator)) == (limit, True)
                outcomes.append(False)
            else:
                assert table.equals(wanted)
                outcomes.append(True)
        assert outcomes == sorted(outcomes)
        assert outcomes[-1]


# -- in a process of its own ----------------------------------------------------------------------

PROGRAM = """
import resource, sys
import streamsparql
from streamsparql import LimitExceeded, Limits
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
items = [(f"<http://e/{n}>", "<p>", f"<http://e/{n + 1}>", n) for n in range(65_000)]
query = streamsparql.compile(
    "SELECT * FROM STREAM <s> WINDOW RANGE 1 DAY SLIDE { %s }",
    limits=Limits(memory=int(sys.argv[1])))
try:
    query.run(items).to_arrow()
except LimitExceeded as error:
    print(error.limit, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size of the process is in kilobytes")
@pytest.mark.parametrize(
    ("where", "memory"),
    [
        ("?x <p> ?y . ?a <p> ?b", 300_000_000),
        ("?x <p>+ ?y", 300_000_000),
        (f"?x <p> ?y BIND(STR(?x) AS ?v0) {DOUBLED}", 300_000_000),
        ("?x <p> ?y { SELECT (GROUP_CONCAT(?z) AS ?all) { ?a <p> ?z } }", 40_000_000),
    ],
    ids=["product", "closure", "strings", "groups"],
)
def test_memory_stays_near_its_limit(where, memory):
    program = [sys.executable, "-c", PROGRAM % where, str(memory)]
    done = subprocess.run(program, capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.stdout.split(), done.returncode) == (["memory", "True"], 0), done.stderr[-2000:]
