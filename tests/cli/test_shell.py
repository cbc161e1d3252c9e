"""`streamsparql shell`: entries from a pipe and from a terminal, commands, completion."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from support.command_line import FROM, MEAN, PREFIX

from streamsparql.cli import main
from streamsparql.cli.shell import Shell, line_editor, typed
from streamsparql.cli.shell_words import shell_completions

MEAN_LINES = MEAN.replace("{", "{\n")
TWO = f"{PREFIX}SELECT ?t {FROM} FROM STREAM :rain WINDOW RANGE 1 MINUTE {{ ?t :speed ?v }}"


@pytest.fixture
def shell(folder, monkeypatch, capsys):
    """Return a function that passes text to the shell; it returns status, output and errors."""
    monkeypatch.chdir(folder)

    def passed(text, *files):
        monkeypatch.setattr(sys, "stdin", StringIO(text))
        status = main(["shell", *files])
        output = capsys.readouterr()
        return status, output.out, output.err

    return passed


def test_a_query_of_several_lines_runs_over_the_files(shell):
    status, out, err = shell(f"{MEAN_LINES}\n\n", "wind.nq")
    assert status == 0
    assert out.splitlines()[1].split() == ["1000", "4000", ":a", "6"]
    assert "3 items: 3 accepted" in err


def test_commands_apply_to_the_last_query(shell):
    text = f"{MEAN}\n\\stream wind.nq\n\\run --output csv --quiet\n\\explain logical\n\\check\n"
    status, out, err = shell(text)
    assert status == 0
    assert "the query reads <http://example.org/wind>; name its data with \\stream" in out
    assert "http://example.org/a,6,1000,4000" in out
    assert "SlidingDeltaWindow  range 10 s, slide 5 s" in out
    assert "the query: ok" in out
    assert err == ""


def test_the_query_of_a_file_becomes_the_last_query(shell):
    status, out, _ = shell("\\run any.rq --output csv\n\\explain logical\n", "wind.nq")
    assert status == 0
    assert "Ask" in out


def test_data_of_streams_that_a_query_does_not_read_is_left_out(shell):
    text = f"\\stream :wind=wind.nq :rain=none.rq\n{MEAN}\n\n{TWO}\n\\stream\n\\graph\n"
    status, out, err = shell(text)
    assert "3 items: 3 accepted" in err
    assert ":wind=wind.nq\n:rain=none.rq\nno graph; add one with \\graph FILE\n" in out
    assert (status, "none.rq" in err) == (1, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\\chk", "unknown command \\chk; expected \\stream"),
        ("\\explain", "there is no query yet"),
        ("\\stream gone.nq", "\\stream gone.nq: no such file"),
        ("\\run 'x", "No closing quotation"),
        ("ASK { x }", "line 1, column 7: unexpected 'x'"),
        ("ASK {}\n\\run --evry 5", "did you mean --every?"),
        (f"{MEAN}\n\\run --stream :wind=wind.nq --graph -", "standard input is that of the shell"),
    ],
)
def test_mistakes_do_not_end_the_shell(shell, text, message):
    status, out, err = shell(f"{text}\n\\help\n\\quit\nnot read\n")
    assert message in err
    assert "Traceback" not in err
    assert "\\quit  " in out
    assert status == 1


def test_a_terminal_without_prompt_toolkit_is_an_error_that_says_how_to_install_it(
    monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    terminal = StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main(["shell"]) == 1
    assert "the shell needs prompt_toolkit: pip install '" in capsys.readouterr().err


def test_lines_are_edited_with_history_and_completion(folder, monkeypatch, capsys):
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.document import Document
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    query = MEAN.replace("\n", " ")
    keys = f"\\stream wind.nq\r{query}\r\rlost\x03\x04"
    with create_pipe_input() as typing, create_app_session(typing, DummyOutput()):
        typing.send_text(keys)
        shell = Shell(main)
        editor = line_editor(shell)
        assert shell.run(typed(editor)) == 0
        (completion,) = editor.completer.get_completions(Document("\\str"), None)
    assert (completion.text, completion.start_position) == ("\\stream", -4)
    assert shell.text == query
    assert capsys.readouterr().out.count(":a      6") == 1
    history = (folder / "state" / "streamsparql" / "history").read_text()
    assert "+\\stream wind.nq" in history
    assert f"+{query}" in history
    assert "lost" not in history


def test_files_are_completed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert list(shell_completions("\\stream :wind=wi")) == [("wind.nq", 2)]
    assert list(shell_completions(f"\\run {folder}/fa")) == [("fast.rq", 2)]
    assert list(shell_completions("\\stream gone/")) == []
    assert list(shell_completions("\\explain phy")) == [("physical", 3)]
    assert list(shell_completions("SELECT ?x { ?x :sp", "PREFIX : <http://e.org/>")) == []
    assert (":", 0) not in list(shell_completions("SELECT ?x { ?x "))
