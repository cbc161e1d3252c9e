"""The command that is meant where a command line does not start with one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from streamsparql.cli.words import QUERY_EXTENSIONS

_MEANT = {
    **dict.fromkeys(("query", "exec", "execute", "eval", "start"), "run"),
    **dict.fromkeys(("plan", "show", "describe"), "explain"),
    **dict.fromkeys(("analyze", "profile"), "explain --analyze"),
    **dict.fromkeys(("lint", "validate", "parse"), "check"),
    **dict.fromkeys(("schema", "inspect", "cat"), "head"),
    **dict.fromkeys(("repl", "sql", "sparql", "console", "interactive"), "shell"),
    **dict.fromkeys(("sort", "convert"), "prepare"),
    "help": "--help",
    "version": "--version",
}
"""Words of other tools, by the command that does the same."""


def mistaken_command(arguments: Sequence[str], commands: Iterable[str]) -> str | None:
    """Return the error of a command line without a command, or with `-q` at its end; else None.

    The error has the command line that is meant.

    >>> mistaken_command(["rnu", "power.rq"], ["run", "explain"])
    "unknown command 'rnu'; did you mean streamsparql run power.rq?"
    >>> mistaken_command(["power.rq"], ["run"])
    'missing command; did you mean streamsparql run power.rq?'
    >>> mistaken_command(["run", "power.rq", "-q"], ["run"])
    'missing text of a query after -q; did you mean --quiet?'
    >>> mistaken_command(["run", "power.rq"], ["run"])
    """
    first, *rest = arguments
    known = list(commands)
    if first == "run" and rest[-1:] == ["-q"]:
        return "missing text of a query after -q; did you mean --quiet?"
    if first in known or first in ("-h", "--help", "--version"):
        return None
    if first.startswith("-") or first.lower().endswith(QUERY_EXTENSIONS):
        return _error("missing command", "run", *arguments)
    if re.search(r"[\s{]", first):
        return _error("missing command", "run", "-q", *arguments)
    if Path(first).exists():
        return _error("missing command", "head", *arguments)
    near = [_MEANT[first]] if first in _MEANT else get_close_matches(first, known, 1)
    if near:
        return _error(f"unknown command {first!r}", *near, *rest)
    return f"unknown command {first!r}; expected {', '.join(known)}"


def _error(wrong: str, *meant: str) -> str:
    """Return an error with the command line that is meant; texts in it are not repeated."""
    written = [meant[0], *("'..'" if re.search(r"\s", word) else word for word in meant[1:])]
    return f"{wrong}; did you mean streamsparql {' '.join(written)}?"
