"""The page of the server, in a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette", reason="the server is an extra")
pytest.importorskip("websockets", reason="the server is an extra")

from tests.server.test_server import VALUES, quads
from tests.support.browser import CHROMIUM, Page, opened
from tests.support.served import Server, serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::streamsparql.LintWarning"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    with opened(server.url) as page:
        page.until("'ready' in document.body.dataset")
        yield page


def test_a_query_is_written_registered_read_and_removed(page: Page, server: Server) -> None:
    def write(field: str, text: str) -> None:
        page.evaluate(f"document.getElementById({field!r}).value = {text!r}")
        page.evaluate(f"document.getElementById({field!r}).dispatchEvent(new Event('input'))")

    def shown(field: str) -> str:
        return f"document.getElementById({field!r}).innerText"

    write("text", "SELECT ?x WHER { ?x ?p ?y }")
    page.until(f"{shown('diagnostics')}.includes('did you mean WHERE?')")
    write("name", "values")
    write("text", VALUES)
    page.until(f"!{shown('diagnostics')}")
    page.evaluate("document.getElementById('save').click()")
    page.until(f"{shown('queries')}.includes('values')")

    server.push("s", quads(*range(1003, 1303, 10)))
    page.until(f"{shown('results')}.includes('1,283')")
    page.until("document.querySelectorAll('#timeline rect').length >= 20")
    page.until(f"{shown('streams')}.includes('http://e/s')")
    page.until(f"{shown('items')}.includes('30')")
    plan = page.until("document.querySelector('#plan svg')?.textContent || ''")
    assert "TriplePatternMatching" in plan
    page.until("document.querySelector('#plan svg').textContent.includes('29 → 29 rows')")

    server.put("other", VALUES.replace("?s ?v", "?v"))
    page.until(f"{shown('queries')}.includes('other')")
    page.evaluate("document.getElementById('remove').click()")
    page.until(f"!{shown('queries')}.includes('values')")
    assert [*server.service.queries] == ["other"]
    assert page.errors == []


def test_what_a_query_returns_is_text_not_html(page: Page, server: Server) -> None:
    attack = '<img src=x onerror="document.title=1">'
    text = 'SELECT ("{}" AS ?x) ?v FROM STREAM <s> WINDOW RANGE 10 MS FIXED {{ ?s ?p ?v }}'
    server.put(attack.replace("/", ""), "SELECT ?v FROM STREAM <s> WINDOW RANGE 9 MS FIXED {}")
    server.put("attack", text.format(attack.replace('"', '\\"')))
    page.until("document.getElementById('queries').innerText.includes('attack')")
    page.evaluate("choose('attack')")
    server.push("s", quads(5003, 5025))
    page.until("document.getElementById('results').innerText.includes('onerror')")
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.title") == "streamsparql"
