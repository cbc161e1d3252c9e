"""The words of the shell: its commands, and the completions of what is being written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from streamsparql.translator.names import WELL_KNOWN

COMMANDS = {
    "\\stream [IRI=]FILE": "data of a stream; IRI= may be omitted if a query reads one stream",
    "\\graph FILE": "static data",
    "\\run [QUERY] [OPTION ..]": "run the last query, or the one in a file: \\run --every 10m",
    "\\explain [STAGE]": "show the plan of the last query; with --analyze, its costs",
    "\\check": "show the warnings about the last query",
    "\\help": "show this list",
    "\\quit": "end the shell, as Ctrl-D does",
}
"""The commands with their arguments, and what they do."""

STAGES = ("all", "syntax", "logical", "optimized", "physical", "spark")
KEYWORDS = (
    *("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "PREFIX", "BASE", "WHERE", "DISTINCT", "REDUCED"),
    *("FROM", "FROM STREAM", "FROM NAMED", "WINDOW", "RANGE", "SLIDE", "FIXED", "ELEMS", "NOW"),
    *("MS", "SECOND", "MINUTE", "HOUR", "DAY", "STREAM", "GRAPH", "OPTIONAL", "UNION", "MINUS"),
    *("FILTER", "EXISTS", "NOT EXISTS", "BIND", "VALUES", "GROUP BY", "HAVING", "ORDER BY"),
    *("LIMIT", "OFFSET", "AS", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"),
)
_DECLARED = re.compile(r"PREFIX\s+([\w.-]*):\s*<", re.I)


def shell_completions(text: str, before: str = "") -> Iterator[tuple[str, int]]:
    r"""Yield the completions of the last word of a text, each with the length of that word.

    `before` is the last query, whose prefixes are proposed too.

    >>> list(shell_completions("\\ex")), list(shell_completions("SELECT ?x WH"))
    ([('\\explain', 3)], [('WHERE', 2)])
    >>> list(shell_completions("PREFIX sos"))
    [('sosa: <http://www.w3.org/ns/sosa/>', 3)]
    >>> list(shell_completions("PREFIX wtur: <http://e.org/> SELECT ?turbine { ?turbine wt"))
    [('wtur:', 2)]
    >>> list(shell_completions("SELECT ?turbine { ?tu"))
    [('?turbine', 3)]
    """
    if text.startswith("\\"):
        yield from _of_command(text)
        return
    word = re.split(r"[\s{}()]", text)[-1]
    if re.search(r"PREFIX\s+[\w.-]*\Z", text, re.I):
        declarations = (f"{name}: <{iri}>" for name, iri in WELL_KNOWN.items())
        yield from ((each, len(word)) for each in declarations if each.startswith(word))
    elif word:
        prefixes = {f"{name}:" for name in _DECLARED.findall(f"{before}\n{text}")}
        variables = set(re.findall(r"\?\w+", text[: len(text) - len(word)]))
        names = sorted(prefixes | variables) if word.startswith("?") else sorted(prefixes)
        yield from ((each, len(word)) for each in names if each.startswith(word) and each != word)
        yield from ((each, len(word)) for each in KEYWORDS if each.startswith(word.upper()))


def _of_command(text: str) -> Iterator[tuple[str, int]]:
    """Yield the completions of a command, of its stage, or of its file."""
    name, space, rest = text.partition(" ")
    if not space:
        commands = (use.partition(" ")[0] for use in COMMANDS)
        yield from ((each, len(name)) for each in commands if each.startswith(name))
        return
    word = rest.rpartition(" ")[2].rpartition("=")[2]
    if name == "\\explain":
        yield from ((each, len(word)) for each in STAGES if each.startswith(word))
        return
    folder, _, start = word.rpartition("/")
    try:
        inside = sorted(Path(folder or ".").iterdir()) if name != "\\check" else []
    except OSError:
        return
    for path in inside:
        if path.name.startswith(start) and not path.name.startswith("."):
            yield path.name + "/" * path.is_dir(), len(start)
