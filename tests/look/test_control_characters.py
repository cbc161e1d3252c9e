"""Control characters of queries and data reach no display: a terminal would obey them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import streamsparql
from streamsparql.errors import StreamSparqlError

CONTROLS = "\x1b[31m\x9b\x7f\u202e"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")
QUERY = streamsparql.compile(
    f'SELECT ?o ("{CONTROLS}" AS ?c) FROM STREAM <s\\u001b> WINDOW RANGE 10 MS FIXED'
    f' {{ ?s <p\\u009b\\u202e> ?o FILTER(?o != "{CONTROLS}") }} # {CONTROLS}'
)
ITEMS = [
    ("<a>", "<p\x9b\u202e>", f'"v{CONTROLS}"', 3),
    ("<a>", f"bad{CONTROLS}", "<x>", 4),
    ("<a>", "<b>", "<c>", 13),
    ("<a>", f"<late{CONTROLS}>", "<c>", 1),
]


class Terminal(io.StringIO):
    """A file of text that is a terminal."""

    def isatty(self) -> bool:
        return True


def written(kind: str) -> str:
    terminal = Terminal()
    QUERY.run(ITEMS).write(terminal, kind)
    return terminal.getvalue()


DISPLAYS: dict[str, Callable[[], str]] = {
    **{
        f"{stage} as {kind}": lambda stage=stage, kind=kind: QUERY.explain(stage, kind)
        for stage in ("syntax", "logical", "physical")
        for kind in ("text", "json", "dot", "mermaid", "svg", "html")
    },
    **{kind: lambda kind=kind: written(kind) for kind in ("table", "csv", "jsonl")},
    "query": lambda: f"{QUERY} {QUERY!r} {QUERY._repr_html_()}",
    "plan": lambda: f"{QUERY.logical} {QUERY.logical!r}",
    "rewrites": lambda: str(QUERY.rewrites()),
    "lints": lambda: " ".join(map(str, QUERY.check())),
    "result": lambda: f"{QUERY.run(ITEMS)} {QUERY.run(ITEMS)._repr_html_()}",
    "row": lambda: repr(list(QUERY.run(ITEMS))),
    "rejects": lambda: " ".join(map(str, (r := QUERY.run(ITEMS)).late + r.rejected)),
    "trace": lambda: str(QUERY.trace(ITEMS)),
    "analysis": lambda: f"{QUERY.analyze(ITEMS)} {QUERY.analyze(ITEMS).explain('dot')}",
    "timeline": lambda: (picture := QUERY.run(ITEMS).timeline()).html + str(picture),
}


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_escape_control_characters(display: str) -> None:
    text = DISPLAYS[display]()
    assert CONTROL.search(text) is None
    assert "31m" in text or display == "lints"


ERRORS: dict[str, Callable[[], object]] = {
    "unknown stream": lambda: QUERY.run({CONTROLS: []}),
    "missing file": lambda: QUERY.run(f"{CONTROLS}.nq").to_arrow(),
    "missing graph": lambda: streamsparql.compile("ASK FROM <a\\u001bb> { ?s ?p ?o }").run(),
    "columns": lambda: QUERY.run(io.BytesIO(f"subject,{CONTROLS}\n1,2\n".encode())).to_arrow(),
    "strict": lambda: QUERY.run(ITEMS, strict=True).to_arrow(),
    "syntax": lambda: streamsparql.compile(f'SELECT * {{ "{CONTROLS}" x'),
}


@pytest.mark.parametrize("error", ERRORS)
def test_messages_escape_control_characters(error: str) -> None:
    with pytest.raises(StreamSparqlError) as caught:
        ERRORS[error]()
    assert CONTROL.search(str(caught.value)) is None


def test_files_have_the_data_unchanged(tmp_path: Path) -> None:
    for kind in ("csv", "jsonl"):
        QUERY.run(ITEMS).write(tmp_path / f"out.{kind}")
    assert f"v{CONTROLS}" in (tmp_path / "out.csv").read_text("utf-8")
    first = json.loads((tmp_path / "out.jsonl").read_text("utf-8").splitlines()[0])
    assert first["o"]["value"] == f"v{CONTROLS}"
    assert json.loads(written("jsonl").splitlines()[0]) == first
