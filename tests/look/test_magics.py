"""The magics in an IPython shell: queries in cells, options, errors without tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import streamsparql
from streamsparql.by_hand import draft
from streamsparql.query import Query
from streamsparql.run.result import Result

pytest.importorskip("IPython", reason="the magics are tested in IPython: pip install ipykernel")

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

QUERY = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS SLIDE 5 MS { ?x <p> ?y }"
ITEMS = [("<a>", "<p>", "<b>", 2), ("<c>", "<p>", "<d>", 12)]


class Notebook:
    """An IPython shell that runs cells and captures what they show."""

    def __init__(self, folder: Path) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=config, ipython_dir=str(folder))
        self.run("%load_ext streamsparql")

    def run(self, cell: str) -> SimpleNamespace:
        """Run a cell; return its displays, its printed text and its error."""
        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        shown = [output.data for output in captured.outputs]
        error = result.error_in_exec or result.error_before_exec
        text = re.sub(r"\x1b\[[\d;]*m", "", captured.stdout + captured.stderr)
        return SimpleNamespace(shown=shown, text=text, error=error)

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.shell.user_ns[name] = value


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    yield Notebook(tmp_path_factory.mktemp("ipython"))
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell: Notebook) -> Notebook:
    shell["wind"] = ITEMS
    shell["turbines"] = [("<a>", "<q>", "<e>")]
    return shell


def test_a_cell_is_compiled_and_shown(notebook: Notebook) -> None:
    done = notebook.run(f"%%streamsparql stops\n{QUERY}")
    assert done.error is None
    assert isinstance(notebook["stops"], Query)
    assert notebook["stops"].text.strip() == QUERY
    (shown,) = done.shown
    assert "<svg" in shown["text/html"]
    assert shown["text/plain"].startswith("Projection  ?x")


def test_a_query_runs_over_the_variables_that_are_named(notebook: Notebook) -> None:
    done = notebook.run(f"%%streamsparql stops --streams wind --graph turbines\n{QUERY}")
    assert done.error is None
    result = notebook["stops_result"]
    assert isinstance(result, Result)
    assert [(str(row["x"]), row.start, row.end) for row in result] == [("a", 2, 10), ("c", 12, 20)]
    _, rows = done.shown
    assert "<table" in rows["text/html"]


def test_an_unnamed_query_has_default_variables(notebook: Notebook) -> None:
    notebook.run(f"%%streamsparql --streams s=wind\n{QUERY}")
    assert isinstance(notebook["_query"], Query)
    assert len(list(notebook["_result"])) == 2


def test_streams_are_named_by_iri_or_prefix_and_read_from_attributes(notebook: Notebook) -> None:
    notebook["data"] = SimpleNamespace(wind=ITEMS, more=ITEMS)
    text = "PREFIX : <http://e/>\nSELECT * FROM STREAM :s WINDOW ELEMS 2 FROM STREAM :t WINDOW ELEMS 2 { ?x <p> ?y }"
    done = notebook.run(f"%%streamsparql both --streams :s=data.wind http://e/t=data.more\n{text}")
    assert done.error is None
    assert len(notebook["both_result"].snapshot(12)) == 4


def test_streams_can_be_files(notebook: Notebook, tmp_path: Any) -> None:
    file = tmp_path / "wind.nq"
    file.write_text('<a> <p> <b> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    notebook.run(f"%%streamsparql q --stream {file}\n{QUERY}")
    assert len(list(notebook["q_result"])) == 1


def test_mappings_are_variables_attributes_or_files(
    notebook: Notebook, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,t\nb,2\n")
    mapping = "CONSTRUCT { ?s <p> ?a } { BIND(IRI(CONCAT('urn:', ?a)) AS ?s) }"
    (tmp_path / "maps.wind.rq").write_text(mapping)
    notebook["one"], notebook["maps"] = mapping, SimpleNamespace(wind=mapping)
    for word in ("one", "maps.wind", "maps.wind.rq"):
        done = notebook.run(f"%%streamsparql m --streams table.csv --map {word}\n{QUERY}")
        assert done.error is None
        assert [str(row["x"]) for row in notebook["m_result"]] == ["urn:b"]
        assert "<urn:b>" in done.shown[1]["text/plain"]


def test_the_mapping_of_a_stream_overrides_the_mapping_of_all(notebook: Notebook) -> None:
    table = pa.table({"a": ["b"], "t": [2]})
    notebook["t1"], notebook["t2"] = table, table
    notebook["one"] = "CONSTRUCT { <urn:one> <p> ?a } {}"
    notebook["other"] = "CONSTRUCT { <urn:other> <p> ?a } {}"
    two = QUERY.replace("{", "FROM STREAM <urn:b> WINDOW RANGE 10 MS SLIDE 5 MS {")
    options = "--streams <s>=t1 <urn:b>=t2 --map one --map <urn:b>=other"
    done = notebook.run(f"%%streamsparql m {options}\n{two}")
    assert done.error is None, done.text
    assert {str(row["x"]) for row in notebook["m_result"]} == {"urn:one", "urn:other"}


def test_late_and_rejected_items_are_noted(notebook: Notebook) -> None:
    notebook["wrong"] = [("a", "p", "b", 3)]
    for report in ("", " --report rstream --every 5ms"):
        done = notebook.run(f"%%streamsparql m --streams wrong{report}\n{QUERY}")
        assert "one item was late or rejected (result.late, result.rejected)" in str(done.shown)


def test_a_source_that_can_be_read_once_is_computed_and_shown(notebook: Notebook) -> None:
    notebook["once"] = iter(ITEMS)
    done = notebook.run(f"%%streamsparql read --streams once\n{QUERY}")
    assert "<table" in done.shown[1]["text/html"]
    assert len(list(notebook["read_result"])) == 2


def test_a_cell_without_rows_says_why(notebook: Notebook) -> None:
    typo = QUERY.replace("<p>", "<P>")
    for reports in ("", " --report rstream"):
        done = notebook.run(f"%%streamsparql --streams wind{reports}\n{typo}")
        assert done.error is None
        assert "did you mean &lt;p&gt;?" in done.shown[-1]["text/html"]
        assert "did you mean <p>?" in done.shown[-1]["text/plain"]


def test_a_cell_shows_warnings_with_the_query_only(notebook: Notebook) -> None:
    done = notebook.run(f"%%streamsparql --streams wind\n{QUERY} LIMIT 5")
    assert "[limit-per-instant]" in done.shown[0]["text/html"]
    assert "limit-per-instant" not in done.text


def test_reports_are_shown_as_a_timeline(notebook: Notebook) -> None:
    line = "%%streamsparql q --streams wind --report rstream --every 5ms --until 20"
    done = notebook.run(f"{line}\n{QUERY}")
    assert done.error is None
    assert "<svg" in done.shown[1]["text/html"]


def test_options_of_the_command_line_apply(notebook: Notebook) -> None:
    text = "SELECT * FROM STREAM <s> [RANGE 10ms STEP 5ms] { ?x <p> ?y }"
    done = notebook.run(
        f"%%streamsparql c --dialect cqels --streams wind --from 3 --max-delay 1s\n{text}"
    )
    assert done.error is None
    assert notebook["c"].dialect == "cqels"
    assert min(row.start for row in notebook["c_result"]) == 3


WRONG = {
    "%%streamsparql\nSELECT ?x { ?x ?p ?o FLITER(?o > 5) }": [
        "QuerySyntaxError: line 1, column 22: unexpected 'FLITER'",
        "^^^^^^",
        "hint: did you mean FILTER?",
    ],
    f"%%streamsparql --streams wnid\n{QUERY}": [
        "unknown variable or file wnid; did you mean wind?"
    ],
    f"%%streamsparql --streams t=wind\n{QUERY}": ["unknown stream <t>"],
    f"%%streamsparql --report rstream\n{QUERY}": ["--report applies to a run", "--streams VAR"],
    f"%%streamsparql --dialect klingon\n{QUERY}": ["klingon", "usage: %%streamsparql"],
    f"%%streamsparql 5x\n{QUERY}": ["not a valid variable name: '5x'"],
    f"%%streamsparql class\n{QUERY}": ["not a valid variable name: 'class'"],
    "%explain stops.nothing": ["stops has no attribute nothing"],
    f"%%streamsparql --slabs 3 --streams wind\n{QUERY}": ["--engine spark"],
    f"%%streamsparql 'unclosed\n{QUERY}": ["closing quotation"],
    "%explain": ["missing query; write %explain NAME"],
    "%explain wind": ["expected a query or a plan; wind is of type list"],
    "%explain SELECT ?x { ?x ?p ?o } --strict": ["--strict requires --analyze"],
    "%explain ASK {": ["QuerySyntaxError"],
    "%explain stops --dialect cqels": ["--dialect applies to the text of a query"],
    "%explain plan --origin 3": ["--origin applies to the text of a query"],
    "%%explain --stage logical extra\nASK {}": ["unexpected argument 'extra'"],
    f"%%streamsparql --streams wind --map five\n{QUERY}": ["--map five", "not int"],
    f"%%streamsparql --streams wind --map maps.none\n{QUERY}": ["maps has no attribute none"],
    f"%%streamsparql --streams five\n{QUERY}": ["SourceError", "int is not a source"],
}


@pytest.mark.parametrize("cell", WRONG)
def test_an_error_ends_the_cell_with_its_message(notebook: Notebook, cell: str) -> None:
    notebook["stops"] = query = streamsparql.compile(QUERY)
    notebook["plan"], notebook["five"], notebook["maps"] = query.logical, 5, SimpleNamespace(a="")
    done = notebook.run(cell)
    assert isinstance(done.error, streamsparql.StreamSparqlError)  # "run all" stops here
    for part in WRONG[cell]:
        assert part in done.text
    assert "Traceback" not in done.text
    assert "magics.py" not in done.text


def test_explain_shows_a_plan_by_name_or_attribute(notebook: Notebook) -> None:
    notebook["stops"] = query = streamsparql.compile(QUERY)
    notebook["by_hand"] = draft(query)
    for name, plan in (
        ("stops.logical", query.logical),
        ("stops.physical", query.physical),
        ("by_hand", query.logical),
    ):
        done = notebook.run(f"%explain {name}")
        assert done.error is None
        assert done.shown[0]["text/plain"] == str(plan)


def test_explain_shows_the_stages_of_a_query_by_name(notebook: Notebook) -> None:
    notebook["stops"] = streamsparql.compile(QUERY)
    (shown,) = notebook.run("%explain stops").shown
    assert [name for name in ("syntax", "logical") if f"<h4>{name}</h4>" in shown["text/html"]] == [
        "syntax",
        "logical",
    ]
    (picture,) = notebook.run("%explain stops --stage physical").shown
    assert "<svg" in picture["text/html"]
    done = notebook.run("%explain stops --stage logical --format text")
    assert done.text.startswith("Projection  ?x\n")
    (svg,) = notebook.run("%explain stops --stage logical --format svg").shown
    assert svg["text/html"].startswith("<svg")


def test_explain_compiles_text_in_a_line_and_in_a_cell(notebook: Notebook) -> None:
    line = notebook.run('%explain SELECT ?x { ?x <p> "a b" } --stage logical --format text')
    assert '?x <p> "a b"' in line.text
    cell = notebook.run("%%explain --stage logical --format text\nASK { ?s <p> ?o }")
    assert cell.text.startswith("Ask\n")


def test_explain_shows_a_plan_and_a_draft(notebook: Notebook) -> None:
    from streamsparql.by_hand import access

    notebook["plan"] = streamsparql.compile(QUERY).logical
    notebook["draft"] = access("s").window("ELEMS 3").match("?x <p> ?y")
    for name in ("plan", "draft"):
        (shown,) = notebook.run(f"%explain {name}").shown
        assert "<svg" in shown["text/html"]
    assert (
        "--stage and --analyze apply to a query"
        in notebook.run("%explain plan --stage logical").text
    )


def test_explain_analyze_shows_the_rows_of_operators(notebook: Notebook) -> None:
    notebook["stops"] = streamsparql.compile(QUERY)
    (shown,) = notebook.run("%explain stops --analyze --streams wind").shown
    assert "rows" in shown["text/html"]
    done = notebook.run("%explain stops --analyze --streams wind --format text")
    assert "rows in" in done.text


def test_options_their_values_and_variables_are_completed(notebook: Notebook) -> None:
    def completed(line: str) -> set[str]:
        with provisionalcompleter():
            completions = notebook.shell.Completer.completions(line, len(line))
            return {line[: each.start] + each.text for each in completions}

    assert "%%streamsparql --dialect" in completed("%%streamsparql --dia")
    assert "%%streamsparql --dialect rspql" in completed("%%streamsparql --dialect rs")
    assert "%explain stops --streams wind" in completed("%explain stops --streams wi")


def test_the_extension_can_be_unloaded(notebook: Notebook) -> None:
    notebook.run("%unload_ext streamsparql")
    assert "streamsparql" not in notebook.shell.magics_manager.magics["cell"]
    notebook.run("%load_ext streamsparql")
    assert "streamsparql" in notebook.shell.magics_manager.magics["cell"]


def test_the_extension_does_not_import_ipython() -> None:
    import subprocess
    import sys

    code = (
        "import sys, streamsparql, streamsparql.cli.magics;"
        "print('IPython' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_entailment_is_an_option_of_the_magics(notebook: Notebook) -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    notebook["kinds"] = [("<D>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<C>")]
    notebook["typed"] = [("<a>", f"<{rdf}>", "<D>", 2)]
    text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?x a <C> }"
    assert not notebook.run(
        f"%%streamsparql kind --streams typed --graph kinds --entailment rdfs\n{text}"
    ).error
    assert [str(row["x"]) for row in notebook["kind_result"]] == ["a"]
    assert notebook["kind"].entailment == "rdfs"
    assert "Entailed" in notebook.run("%explain kind --stage logical --format text").text


def test_an_error_of_the_library_has_no_traceback(notebook: Notebook) -> None:
    """Only the message is shown, and where code of the user failed, if that is the cause."""
    notebook["streamsparql"] = streamsparql
    done = notebook.run("streamsparql.compile('SELECT ?x { FILTRE(?x) }')")
    assert isinstance(done.error, streamsparql.QuerySyntaxError)
    assert "QuerySyntaxError: line 1, column 13" in done.text
    assert "Traceback" not in done.text
    assert "query.py" not in done.text
    cell = "def fail(): 1 / 0\ntry: fail()\nexcept ZeroDivisionError as error:\n"
    done = notebook.run(f"{cell}    raise streamsparql.EngineError('no rows') from error")
    assert "EngineError: no rows\ncaused by ZeroDivisionError: division by zero" in done.text
    assert "line 1, in fail)" in done.text
