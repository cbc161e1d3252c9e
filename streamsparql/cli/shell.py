r"""The command `shell`: queries and commands, one after another, with history and completion.

A query ends with an empty line; a line that starts with `\` is a command. Both call the commands
of the command line, so that they print the same. On a terminal, prompt_toolkit edits the lines;
from a pipe they are read as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsparql.cli.common_options import Commands, HelpFormatter, split_name
from streamsparql.cli.shell_words import COMMANDS, shell_completions
from streamsparql.cli.words import GRAPH_EXTENSIONS, QUERY_EXTENSIONS, expanded_name
from streamsparql.errors import EngineError, StreamSparqlError
from streamsparql.text.extras import install

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from streamsparql.query import Query

Main = Callable[[Sequence[str]], int]

_EXAMPLE = "example: streamsparql shell wind.nq turbines.ttl"


def add_shell(commands: Commands[argparse.ArgumentParser], main: Main) -> None:
    """Add the command `shell`, which calls `main` with the other commands."""
    parser = commands.add_parser(
        "shell",
        help="write queries one after another",
        description="Read queries and commands, and run them. \\help lists the commands.",
        epilog=_EXAMPLE,
        formatter_class=HelpFormatter,
    )
    files = "data, as after \\stream and \\graph; or a query"
    parser.add_argument("words", metavar="[IRI=]FILE", nargs="*", help=files)
    parser.set_defaults(run=lambda options: _shell(options, main))


def _shell(options: argparse.Namespace, main: Main) -> int:
    options.name = "streamsparql"
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if is_terminal and find_spec("prompt_toolkit") is None:
        raise EngineError(
            f"the shell needs prompt_toolkit: {install('shell')};"
            " without it, pass queries in a pipe, or with run -q"
        )
    if sys.stdin is None:
        raise EngineError("standard input is closed")
    shell = Shell(main)
    for word in options.words:
        is_graph = Path(word).suffix[1:].lower() in GRAPH_EXTENSIONS
        name = "run" if word.endswith(QUERY_EXTENSIONS) else "graph" if is_graph else "stream"
        shell.execute(f"\\{name} {shlex.quote(word)}")
    if not is_terminal:
        return shell.run(entries(sys.stdin))
    print("Write a query and an empty line, or \\help; \\quit ends.")
    shell.run(typed(line_editor(shell)))
    return 0


class Shell:
    """A session: the last query, its data, and the number of entries that failed."""

    def __init__(self, main: Main) -> None:
        self._main = main
        self.text = ""
        self._streams: list[str] = []
        self._graphs: list[str] = []
        self._done = False

    def run(self, lines: Iterator[str]) -> int:
        """Execute entries up to `\\quit`; return 1 if one of them failed."""
        status = 0
        for entry in lines:
            status = max(status, min(self.execute(entry), 1))
            if self._done:
                break
        return status

    def execute(self, entry: str) -> int:
        """Execute a query or a command; return its exit status."""
        entry = entry.strip()
        if not entry:
            return 0
        try:
            if not entry.startswith("\\"):
                self.text = entry
                return self._run([])
            name, _, rest = entry[1:].partition(" ")
            return self._command(name, rest)
        except StreamSparqlError as error:
            print(error, file=sys.stderr)
            return 1

    def _command(self, name: str, rest: str) -> int:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise EngineError(f"\\{name}: {error}") from None
        match name:
            case "quit" | "q" | "exit":
                self._done = True
            case "help" | "h" | "?":
                width = max(map(len, COMMANDS)) + 2
                print("\n".join(f"  {use:{width}}{text}" for use, text in COMMANDS.items()))
            case "stream" | "graph":
                self._add_data(name, words)
            case "run":
                if words and words[0].endswith(QUERY_EXTENSIONS):
                    from streamsparql.cli.common_options import read_text

                    self.text = read_text(words.pop(0))
                return self._run(words)
            case "explain":
                stage = ["--stage"] if words and not words[0].startswith("-") else []
                data = self._data(self._query()) if "--analyze" in words else []
                return self._call("explain", "-q", self._text(), *stage, *words, *data)
            case "check":
                return self._call("check", "-q", self._text(), *words)
            case _:
                known = " ".join(use.partition(" ")[0] for use in COMMANDS)
                raise EngineError(f"unknown command \\{name}; expected {known}")
        return 0

    # -- data

    def _add_data(self, kind: str, words: list[str]) -> None:
        """Add files to the data of the queries; without any, print the data."""
        files = self._streams if kind == "stream" else self._graphs
        for word in words:
            path = Path(word)
            if not path.exists() and not Path(word.rpartition("=")[2]).exists():
                raise EngineError(f"\\{kind} {word}: no such file")
            files.append(word)
        if not words:
            print("\n".join(files) or f"no {kind}; add one with \\{kind} FILE")

    def _data(self, query: Query) -> list[str]:
        """Return the options that name the data that the query reads."""
        options = [f"--graph={file}" for file in self._graphs]
        for word in self._streams:
            whole = expanded_name(word, query.streams, query.prefixes)
            if split_name(whole, query.streams) is not None:
                options.append(f"--stream={whole}")
            elif len(query.streams) == 1 and ("=" not in word or Path(word).exists()):
                options.append(f"--stream={query.streams[0]}={word}")
        return options

    # -- queries

    def _text(self) -> str:
        if not self.text:
            raise EngineError("there is no query yet; write one and an empty line")
        return self.text

    def _query(self) -> Query:
        from streamsparql.query import compile

        return compile(self._text())

    def _run(self, words: Sequence[str]) -> int:
        query = self._query()
        data = self._data(query)
        named = [*words, *data]
        if query.streams and not any(word.startswith("--stream") for word in named):
            known = ", ".join(f"<{name}>" for name in query.streams)
            print(f"the query reads {known}; name its data with \\stream [IRI=]FILE")
            return 0
        return self._call("run", "-q", self.text, *data, *words)

    def _call(self, *arguments: str) -> int:
        """Call a command; a mistake in its options does not end the shell."""
        if "-" in arguments:
            raise EngineError("standard input is that of the shell; name a file")
        try:
            return self._main(arguments)
        except SystemExit as end:  # argparse exits
            return int(end.code or 0)


def entries(lines: Iterator[str] | Any) -> Iterator[str]:
    r"""Yield the queries and commands in lines.

    >>> list(entries(["\\stream a.nq\n", "SELECT *\n", "{ ?s ?p ?o }\n", "\n", "\\quit\n"]))
    ['\\stream a.nq', 'SELECT *\n{ ?s ?p ?o }', '\\quit']
    """
    pending: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if pending and (not line.strip() or line.startswith("\\")):
            yield "\n".join(pending)
            pending = []
        if line.startswith("\\"):
            yield line
        elif line.strip():
            pending.append(line)
    if pending:
        yield "\n".join(pending)


# -- the terminal


def is_whole(text: str) -> bool:
    r"""Return whether Enter ends an entry: a command, or an empty line after a query.

    >>> is_whole("\\help"), is_whole("ASK {}"), is_whole("ASK {}\n")
    (True, False, True)
    """
    return text.startswith("\\") or not text.strip() or re.search(r"\n[ \t]*\Z", text) is not None


def line_editor(shell: Shell) -> PromptSession[str]:
    """Return the editor of the entries, with history and completion."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings

    class Words(Completer):
        """The completion of commands, files, keywords, prefixes and variables."""

        def get_completions(self, document: Any, _: Any) -> Iterator[Completion]:
            """Yield the completions of the word before the cursor."""
            for word, length in shell_completions(document.text_before_cursor, shell.text):
                yield Completion(word, start_position=-length)

    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: Any) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    history: History = InMemoryHistory()
    with suppress(OSError):
        history = FileHistory(str(_history_file()))
    return PromptSession(
        "streamsparql> ",
        multiline=True,
        prompt_continuation="..." + " " * 11,
        completer=Words(),
        complete_while_typing=False,
        history=history,
        key_bindings=keys,
    )


def _history_file() -> Path:
    """Return the file of the history, in a folder that only its user can read."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "streamsparql"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "history"
    file.touch(mode=0o600)
    return file


def typed(editor: PromptSession[str]) -> Iterator[str]:
    """Yield entries until the end of input; Ctrl-C discards the one that is being written."""
    while True:
        try:
            yield editor.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
