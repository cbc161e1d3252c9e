"""The text of a query opens no file, unless `files=` or the user of the command line allows it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

import streamsparql
from streamsparql.errors import EngineError, SourceError

SECRET = "s3cret"
TRIPLE = "<http://e/a> <http://e/p> <http://e/b> .\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with a graph in a folder, and a secret next to it."""
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "g.nt").write_text(TRIPLE)
    (tmp_path / "secret.nt").write_text(TRIPLE + f"root:{SECRET}:0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def references(path: Path) -> list[str]:
    """Return queries that name a file in every way that the grammar has."""
    relative = os.path.relpath(path)
    return [
        f"SELECT * FROM <{path}> {{ ?s ?p ?o }}",
        f"SELECT * FROM <{path.as_uri()}> {{ ?s ?p ?o }}",
        f"SELECT * FROM <{relative}> {{ ?s ?p ?o }}",
        f"SELECT * FROM <graphs/../{relative}> {{ ?s ?p ?o }}",
        f"SELECT * FROM <file:{path}> {{ ?s ?p ?o }}",
        f"SELECT * FROM NAMED <{path}> {{ GRAPH <{path}> {{ ?s ?p ?o }} }}",
        f"SELECT * {{ GRAPH <{path}> {{ ?s ?p ?o }} }}",
        f"BASE <{path.parent.as_uri()}/> SELECT * FROM <{path.name}> {{ ?s ?p ?o }}",
        f"PREFIX f: <{path.parent.as_uri()}/> DESCRIBE * FROM f:{path.name} {{ ?s ?p ?o }}",
    ]


def runs(text: str, **options: Any) -> list[Any]:
    """Return all ways to run a query, as functions."""
    query = streamsparql.compile(text)
    return [
        lambda: query.run(**options).to_arrow(),
        lambda: query.analyze(**options),
        lambda: query.trace(**options),
        lambda: query.open(**options),
    ]


def test_a_query_opens_no_file_of_its_own(folder: Path) -> None:
    """Its errors do not even say whether there is such a file."""
    for text in references(folder / "secret.nt"):
        for run in runs(text):
            with pytest.raises(SourceError, match="missing graph") as caught:
                run()
            missing = text.replace("secret.nt", "nothere.nt")
            with pytest.raises(SourceError) as other:
                streamsparql.compile(missing).run().to_arrow()
            assert str(other.value) == str(caught.value).replace("secret.nt", "nothere.nt")


def test_a_folder_allows_the_files_in_it(folder: Path) -> None:
    for text in references(folder / "graphs" / "g.nt"):
        if "FROM <graphs/g.nt>" in text or "/../" in text:  # relative to the folder
            continue
        assert streamsparql.compile(text).run(files="graphs").to_arrow().num_rows == 1
    relative = streamsparql.compile("SELECT * FROM <g.nt> { ?s ?p ?o }")
    assert relative.run(files=folder / "graphs").to_arrow().num_rows == 1


def test_a_folder_allows_no_file_outside(folder: Path) -> None:
    (folder / "graphs" / "link.nt").symlink_to(folder / "secret.nt")
    os.mkfifo(folder / "graphs" / "pipe.nt")
    texts = references(folder / "secret.nt")
    names = ("../secret.nt", "link.nt", "pipe.nt", ".", "..", "a%00b", "http://e/g.nt")
    texts += [f"SELECT * FROM <{name}> {{ ?s ?p ?o }}" for name in names]
    for text in texts:
        with pytest.raises(SourceError, match="missing graph"):
            streamsparql.compile(text).run(files="graphs").to_arrow()


def test_a_function_decides_what_an_iri_denotes() -> None:
    known = {"http://e/g": [("<http://e/a>", "<http://e/p>", "<http://e/b>")]}
    query = streamsparql.compile("SELECT * FROM <http://e/g> { ?s ?p ?o }")
    assert query.run(files=known.get).to_arrow().num_rows == 1
    with query.open(files=known.get) as live:
        assert len(live.rows()) == 1
    with pytest.raises(SourceError, match="missing graph <http://e/g>"):
        query.run(files=lambda iri: None).to_arrow()


def test_files_is_a_folder_or_a_function(folder: Path) -> None:
    query = streamsparql.compile("SELECT * { ?s ?p ?o }")
    for wrong in (True, 5, "gone", "secret.nt"):
        with pytest.raises(EngineError, match="files must be a folder, or a function"):
            query.run(files=wrong)


CONTENTS = {
    "secret.nt": TRIPLE + f"root:{SECRET}:0\n",
    "literal.nt": f'"{SECRET}" <http://e/p> <http://e/b> .\n',
    "secret.ttl": f"<http://e/a> <http://e/p> {SECRET} .\n",
    "secret.csv": f"{SECRET},{SECRET}\n{SECRET},1\n",
    "row.csv": f"subject,predicate,object\n{SECRET},{SECRET},{SECRET}\n",
    "secret.jsonl": f'{{"{SECRET}": 1}}\n',
    "secret.rdf": f"<{SECRET}/>\n",
    "secret.jsonld": f'{{"@context": "{SECRET}"}}\n',
    "secret.parquet": f"{SECRET}\n",
    "secret": f"root:{SECRET}:0:0\nuser:{SECRET}:1:1\n",
    "secret.gz": f"{SECRET}\n",
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("strict", [False, True])
def test_messages_do_not_quote_a_file_that_only_the_query_names(
    folder: Path, name: str, strict: bool
) -> None:
    (folder / "graphs" / name).write_text(CONTENTS[name])
    query = streamsparql.compile(f"SELECT * FROM <{name}> {{ ?s ?p ?o }}")
    try:
        result = query.run(files="graphs", strict=strict)
        rows = result.to_arrow().num_rows
        assert rows == (name == "secret.nt")
        (reject,) = result.rejected
        assert reject.item is None
        shown = f"{reject} {reject.reason} {result}"
    except SourceError as error:
        shown = str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__
        assert "is not shown" in shown
    assert SECRET not in shown.replace("secret", "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonld", '{{"@context": "{url}", "@id": "http://e/a", "http://e/p": "x"}}'),
        ("a.rdf", '<!DOCTYPE r [<!ENTITY x SYSTEM "{url}">]><r>&x;</r>'),
        (
            "b.rdf",
            '<!DOCTYPE r SYSTEM "{url}"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        ),
    ],
)
def test_a_file_does_not_lead_to_other_documents(tmp_path: Path, name: str, content: str) -> None:
    """Neither over the network nor in the file system."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        remote = f"http://127.0.0.1:{server.getsockname()[1]}/"
        (tmp_path / "secret").write_text(SECRET)
        for url in (remote, (tmp_path / "secret").as_uri()):
            (tmp_path / name).write_text(content.format(url=url))
            shown = ""
            try:
                result = streamsparql.compile("SELECT * { ?s ?p ?o }").run(graph=tmp_path / name)
                shown = f"{result} {result.rejected}"
            except SourceError as error:
                shown = str(error)
            assert SECRET not in shown
        with pytest.raises(BlockingIOError):
            server.accept()
