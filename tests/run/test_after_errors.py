"""After an exception a run says so, or its answer is right: it is never partial without an error.

The random test raises an exception at the n-th line of the package, as a Ctrl-C could, in each kind
of call, and then asks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.spark_in_process import Session

import streamsparql
from streamsparql.errors import EngineError, SourceError

S = "http://e/s"
TEXT = (
    "SELECT ?x (SUM(?n) AS ?sum) FROM STREAM <http://e/s> WINDOW RANGE 10 SLIDE 5"
    " WHERE { ?x <http://e/p> ?n } GROUP BY ?x"
)
QUERY = streamsparql.compile(TEXT)
CHUNK = 65_536


def item(n: int) -> tuple[str, str, str, int]:
    number = f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{n % 3}>", "<http://e/p>", number, n


class FailsOnce:
    """Items that can be read again; the first reading fails in the middle."""

    def __init__(self, items: list[Any], error: BaseException, at: int) -> None:
        self.items, self.error, self.at = items, error, at
        self.readings = 0

    def __iter__(self) -> Iterator[Any]:
        self.readings += 1
        for k, one in enumerate(self.items):
            if self.readings == 1 and k == self.at:
                raise self.error
            yield one


def raising(items: list[Any], error: BaseException) -> Iterator[Any]:
    yield from items
    raise error


# -- results --------------------------------------------------------------------------------------

REQUESTS = {
    "table": lambda result: result.to_arrow().to_pydict(),
    "rows": lambda result: [(dict(row), row.start, row.end) for row in result],
    "snapshot": lambda result: sorted(map(str, result.snapshot(7))),
    "rejects": lambda result: (result.late, result.rejected),
    "reports": lambda result: result.to_arrow(report="rstream").to_pydict(),
    "pairs": lambda result: [(t, sorted(map(str, rows))) for t, rows in result.report(every=5)],
}


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("error", [ValueError("no more"), KeyboardInterrupt()])
def test_result_that_failed_is_computed_again_from_sources_that_can_be_read_again(request_, error):
    items = [item(n) for n in range(40)]
    wanted = REQUESTS[request_](QUERY.run({S: items}))
    for first in REQUESTS.values():
        source = FailsOnce(items, error, 20)
        result = QUERY.run({S: source})
        with pytest.raises(type(error)):
            first(result)
        assert REQUESTS[request_](result) == wanted
        assert source.readings == 2


@pytest.mark.parametrize("request_", REQUESTS)
def test_result_that_failed_raises_its_error_again_if_a_source_is_read_once(request_):
    items = [item(n) for n in range(40)]
    result = QUERY.run({S: raising(items, ValueError("no more"))})
    for _ in range(2):
        with pytest.raises(ValueError, match="no more"):
            REQUESTS[request_](result)
    result = QUERY.run({S: raising(items, KeyboardInterrupt())})
    with pytest.raises(KeyboardInterrupt):
        REQUESTS[request_](result)
    for later in REQUESTS.values():
        with pytest.raises(EngineError, match=r"incomplete: KeyboardInterrupt .* only once"):
            later(result)


def test_result_of_spark_that_failed_is_computed_again_or_raises_its_error_again():
    items = [item(n) for n in range(40)]
    wanted = QUERY.run({S: items}, engine="spark", spark=Session()).to_arrow()
    source = FailsOnce(items, KeyboardInterrupt(), 20)
    result = QUERY.run({S: source}, engine="spark", spark=Session())
    with pytest.raises(KeyboardInterrupt):
        result.to_arrow()
    assert result.to_arrow().equals(wanted)
    result = QUERY.run({S: raising(items, ValueError("no more"))}, engine="spark", spark=Session())
    for ask in REQUESTS.values():
        with pytest.raises(ValueError, match="no more"):
            ask(result)


def test_strict_result_raises_its_first_reject_again():
    items: list[Any] = [item(1)] * CHUNK + [("<a>", "<p>", "soon")]
    for source in (items, iter(items)):
        result = QUERY.run({S: source}, strict=True)
        for ask in REQUESTS.values():
            with pytest.raises(SourceError, match=f"item {CHUNK + 1}: "):
                ask(result)
