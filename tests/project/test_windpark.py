"""The wind park: what is true of every park, and that its queries answer by the definitions."""

from __future__ import annotations

import configparser
import hashlib
import re
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamsparql
from streamsparql import SourceError, wind_park
from streamsparql.rdflib_terms import term
from streamsparql.windpark import MAST, WindPark, iri
from streamsparql.windpark.folder import commands, written

parks = st.builds(
    wind_park,
    turbines=st.integers(1, 80),
    minutes=st.integers(1, 90),
    seed=st.integers(0, 2**40),
    start=st.integers(0, 2**42),
)
MINUTE = 60_000


def value(text: str) -> float:
    """The number in a literal."""
    return float(text.split('"')[1])


def told(park: WindPark, predicate: str) -> dict[str, list[tuple[int, str]]]:
    """By turbine, what it tells with that predicate and when."""
    found: dict[str, list[tuple[int, str]]] = {}
    for subject, name, text, t in park.items:
        if name == iri(predicate):
            found.setdefault(subject, []).append((t, text))
    return found


@settings(max_examples=30)
@given(parks)
def test_every_park_is_plausible(park):
    stamps = [t for *_, t in park.items]
    assert stamps == sorted(stamps)
    assert park.start <= stamps[0] <= stamps[-1] < park.end
    speeds, powers = told(park, "wnac:WdSpd"), told(park, "wtur:W")
    assert len(speeds) == len(powers) == park.turbines
    for name, speed in speeds.items():
        assert [t for t, _ in speed] == [t for t, _ in powers[name]]
        assert [(t - park.start) // MINUTE for t, _ in speed] == list(range(park.minutes))
        assert all(0 <= value(v) < 60 for _, v in speed)
        assert all(0 <= value(v) <= 3_200 for _, v in powers[name])


@settings(max_examples=30)
@given(parks)
def test_starts_and_stops_alternate_and_their_counters_go_up_by_one(park):
    starts, stops = told(park, "wtur:StrCnt"), told(park, "wtur:StopCnt")
    reasons, powers = told(park, ":stopReason"), told(park, "wtur:W")
    for name, power in powers.items():
        events = sorted(
            [(t, "start", value(v)) for t, v in starts.get(name, [])]
            + [(t, "stop", value(v)) for t, v in stops.get(name, [])]
        )
        for (_, one, before), (_, other, after) in pairwise(events):
            assert one != other
            assert after - before == (other == "start")  # the n-th stop ends what the n-th began
        assert [t for t, _ in reasons.get(name, [])] == [t for t, _ in stops.get(name, [])]
        stands = bool(events) and events[0][1] == "start"
        changes = {t: kind == "stop" for t, kind, _ in events}
        for t, kilowatts in power:
            stands = changes.get(t, stands)
            assert not stands or value(kilowatts) == 0


@settings(max_examples=20)
@given(parks, st.integers(0, 400))
def test_a_live_park_begins_as_its_history_does(park, more):
    ahead = list(islice(park.live(), len(park.items) + more))
    assert ahead[: len(park.items)] == park.items
    assert [t for *_, t in ahead] == sorted(t for *_, t in ahead)


@settings(max_examples=10)
@given(parks)
def test_arrow_has_the_same_items(park):
    table = park.to_arrow()
    assert table.column_names == ["subject", "predicate", "object", "timestamp"]
    assert list(zip(*(column.to_pylist() for column in table), strict=True)) == park.items


@settings(max_examples=20)
@given(parks)
def test_the_graph_knows_every_turbine_and_nothing_else(park):
    graph = set(park.graph)
    assert len(graph) == len(park.graph)
    fields = {s: o for s, p, o in graph if p == iri(":field")}
    models = {s: o for s, p, o in graph if p == iri(":model")}
    assert fields.keys() == models.keys() == {subject for subject, *_ in park.items}
    assert {iri(f":{name}") for name in park.fields} == set(fields.values())
    assert all(
        (model, iri(":ratedPower")) in {(s, p) for s, p, _ in graph} for model in models.values()
    )
    labelled = {s for s, p, _ in graph if p == iri("rdfs:label")}
    assert {
        reason for found in told(park, ":stopReason").values() for _, reason in found
    } <= labelled


def test_all_that_is_made_is_rdf():
    park = wind_park()
    for triple in [*(item[:3] for item in park.items), *park.graph]:
        for text in set(triple):
            assert str(term(text)) == text


def test_a_seed_gives_the_same_bytes_everywhere():
    """These digests were taken once; a park that is not this one is a mistake of this machine."""
    found = {
        name: hashlib.sha256("".join(content()).encode()).hexdigest()[:16]
        for name, content in written(wind_park()).items()
        if name in ("wind.nq", "turbines.ttl", "mast.csv")
    }
    assert found == {
        "wind.nq": "89142a171e5f6497",
        "turbines.ttl": "a7edfd8ca7ed64b1",
        "mast.csv": "3186acf3e65846df",
    }
    assert wind_park(seed=8).items != wind_park(seed=7).items


def test_a_park_of_many_turbines_and_one_of_many_minutes():
    wide, long = wind_park(70_000, 2), wind_park(1, 10_000)
    for park in (wide, long):
        assert len(park.items) >= 2 * park.turbines * park.minutes
        stamps = [t for *_, t in park.items]
        assert stamps == sorted(stamps)
    assert len(set(stamps)) == 10_000
    assert wide.fields == ("north", "south", "east", "west")
    reasons = {reason for found in told(long, ":stopReason").values() for _, reason in found}
    assert reasons == {iri(f":{name}") for name in ("Storm", "Calm", "Fault", "Service")}


def test_there_is_more_wind_in_the_afternoon():
    park = wind_park(turbines=20, minutes=2 * 1440)
    by_hour: dict[int, list[float]] = {}
    for speeds in told(park, "wnac:WdSpd").values():
        for t, text in speeds:
            by_hour.setdefault(datetime.fromtimestamp(t / 1000, UTC).hour, []).append(value(text))
    night, day = ([v for h in hours for v in by_hour[h]] for hours in ((2, 3, 4), (14, 15, 16)))
    assert sum(day) / len(day) > sum(night) / len(night) + 2


def test_a_start_may_be_a_datetime():
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert wind_park(start=noon).start == wind_park(start=noon.replace(tzinfo=None)).start
    assert wind_park(start=noon + timedelta(milliseconds=7)).start % 1000 == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"turbines": 0},
        {"minutes": 0},
        {"seed": -1},
        {"start": -1},
        {"turbines": 2.5},
        {"seed": True},
    ],
)
def test_what_is_no_park_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is a whole number from"):
        wind_park(**wrong)


# -- queries ---------------------------------------------------------------------------------------


def test_every_query_says_what_it_asks_and_is_without_doubt():
    for name, text in wind_park().queries.items():
        assert re.match(r"# [A-Z].*[.?]\n", text), name
        assert all(len(line) < 100 for line in text.splitlines())
        query = streamsparql.compile(text)
        assert query.check() == (), name
        assert set(query.streams) <= {wind_park().stream, MAST}


@pytest.mark.parametrize("name", ["listing-1.1", "stops", "power", "now", "storm"])
def test_a_query_answers_as_its_definition_says(name):
    park = wind_park(minutes=60)
    query = streamsparql.compile(park.queries[name])
    data = streamsparql.inputs({park.stream: park.items}, graph=park.graph)
    result = query.run(park.items, graph=park.graph)
    found = 0
    for minute in (1, 12, 31, 47, 59):
        t = park.start + minute * MINUTE + 59_000
        expected = query.logical.at(t, data)
        snapshot = result.snapshot(t)
        if query.form == "construct":
            assert {tuple(map(term, triple)) for triple in snapshot} == set(expected)
        else:
            rows = [
                tuple(None if row[v] is None else str(term(row[v])) for v in query.variables)
                for row in snapshot
            ]
            assert sorted(rows, key=str) == sorted(
                expected_rows(expected, query.variables), key=str
            )
        found += len(snapshot)
    assert found


def expected_rows(snapshot, variables):
    """The rows of a definition's snapshot, as often as they are in it."""
    for solution in snapshot:
        bound = {variable.name: str(value) for variable, value in solution.items()}
        yield tuple(bound.get(name) for name in variables)


def test_a_window_of_c_sparql_is_a_set():
    """The same windows in both dialects; where all readings differ, the same means."""
    park = wind_park()
    seen, items = set(), []
    for item in park.items:  # each reading of a turbine once
        if item[:3] not in seen:
            seen.add(item[:3])
            items.append(item)
    same, equal = ([reported(park, data, name) for name in POWERS] for data in (items, park.items))
    assert len(same[0]) == 12
    assert same[0] == same[1]
    assert equal[0] != equal[1]


POWERS = ("power", "power-csparql")


def reported(park, items, name):
    """The reports of a query that have rows."""
    query = streamsparql.compile(park.queries[name])
    made = query.run(items, graph=park.graph).report("rstream", every=10 * MINUTE)
    return [(t, rows) for t, rows in made if rows]


# -- files -----------------------------------------------------------------------------------------


def test_the_files_are_the_park(tmp_path: Path):
    park = wind_park(turbines=12, minutes=40)
    paths = park.write(tmp_path / "made" / "park")
    assert sorted(path.name for path in paths) == sorted(
        p.name for p in (tmp_path / "made/park").iterdir()
    )
    folder = paths[0].parent
    query = streamsparql.compile(park.queries["power"])
    from_files = query.run(folder / "wind.nq", graph=folder / "turbines.ttl")
    assert list(from_files) == list(query.run(park.to_arrow(), graph=park.graph))
    assert from_files.late == []
    assert "12 turbines over 40 minutes" in (folder / "README.txt").read_text("utf-8")


def test_what_is_not_the_parks_is_left_alone(tmp_path: Path):
    park = wind_park(minutes=3)
    park.write(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    park.write(tmp_path)
    mine = tmp_path / "stops.rq"
    mine.write_text(mine.read_text("utf-8") + "LIMIT 1", "utf-8")
    (tmp_path / "wind.nq").unlink()
    with pytest.raises(
        SourceError, match=r"stops\.rq is there and is something else: name another"
    ):
        park.write(tmp_path)
    assert mine.read_text("utf-8").endswith("}\nLIMIT 1")
    assert not (tmp_path / "wind.nq").exists()
    mine.unlink()
    park.write(str(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=r"file.* cannot be written: "):
        wind_park(minutes=1).write(tmp_path / "file")


def test_commands_quote_what_a_shell_would_split():
    assert all("'my park/" in command for command in commands("my park").values())
    assert all("/" not in command for command in commands().values())


def test_the_queries_are_package_data():
    root = Path(__file__).parents[2]
    found = configparser.ConfigParser()
    found.read(root / "setup.cfg")
    patterns = found["options.package_data"]["streamsparql.windpark"].split(", ")
    listed = {
        path for pattern in patterns for path in (root / "streamsparql/windpark").glob(pattern)
    }
    assert listed == set((root / "streamsparql/windpark").rglob("*.rq"))
