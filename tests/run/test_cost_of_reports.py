"""Changes that no report shows, or that lie before the horizon, are not computed one by one."""

from __future__ import annotations

import pytest

import streamsparql
from streamsparql.algebra.terms import XSD
from streamsparql.physical.aggregation import aggregators

COUNT = 200
ITEMS = [("<s>", "<p>", f'"{k}"^^<{XSD}integer>', 10 * k) for k in range(COUNT)]
LAST = ITEMS[-1][3]


@pytest.fixture
def concatenations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the size of the bag with each GROUP_CONCAT."""
    sizes: list[int] = []
    real = aggregators.aggregate_id

    def counted(call, bag, terms):  # type: ignore[no-untyped-def]
        sizes.append(len(bag))
        return real(call, bag, terms)

    monkeypatch.setattr(aggregators, "aggregate_id", counted)
    return sizes


def query(window: str) -> streamsparql.CompiledQuery:
    return streamsparql.compile(
        f"SELECT (GROUP_CONCAT(STR(?o)) AS ?x) FROM STREAM <s> {window} {{ ?s <p> ?o }}"
    )


WINDOWS = ["[ALL]", "[TRIPLES 50]", "[RANGE 1d STEP 1ms]", "[NOW]"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["rstream", "istream", "dstream"])
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_reports_with_a_period_compute_no_other_changes(
    window: str, kind: str, concatenations: list[int]
) -> None:
    every = 500
    reports = list(query(window).run(streams=ITEMS, end=LAST + 1).report(kind, every))
    assert len(concatenations) <= 2 * len(reports) + 2
    unaligned = query(window).run(streams=ITEMS, end=LAST + 1)
    unaligned.to_arrow()  # reports are then computed from the rows
    assert list(unaligned.report(kind, every)) == reports


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.filterwarnings("ignore::streamsparql.LintWarning")
def test_changes_before_the_start_are_not_computed(window: str, concatenations: list[int]) -> None:
    late = query(window).run(streams=ITEMS, start=LAST - 5, end=LAST + 1).to_arrow()
    assert len(concatenations) <= 4
    whole = query(window).run(streams=ITEMS, end=LAST + 1).to_arrow().to_pylist()
    held = [{**row, "start": max(row["start"], LAST - 5)} for row in whole if row["end"] > LAST - 5]
    assert late.to_pylist() == held
