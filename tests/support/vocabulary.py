"""What prose in this repository must not say: banned words and phrasings, and how docstrings start.

Prose is docstrings, comments, messages (strings with a space), Markdown, and comments of the
grammar. Code in backticks, code blocks and quoted examples are not prose. As a program, it lists what
it finds in the files it is passed: `python tests/support/vocabulary.py algebra/plan.py docs`.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "algebra",
    "translator",
    "physical",
    "streamsparql",
    "tests",
    "benchmarks",
    "docs",
    "notebooks",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)

EXEMPT = (
    "tests/project/test_vocabulary.py",
    "tests/support/vocabulary.py",
    "translator/parse_table.py",
)
"""The files that quote what is banned, and one that is generated."""

BANNED: dict[str, str] = {
    r"told|tells?(?! (\w+ ){0,3}apart)|telling(?! (\w+ ){0,3}apart)": "says, states, reports",
    r"work(s|ed|ing)? out": "compute, evaluate",
    r"(no|some|any)body": "name who, or use the passive voice",
    r"(?<!there )(is|are|was|were|as) no(?! (longer|more|less|later|earlier|fewer))": "is not a, is missing",
    r"(?<!there )(is|are|was|were|be) (?-i:none)": "is missing, is unbound, is empty",
    r"so (many|much|few|often)": "a number: n items, up to n",
    r"(which|that|is|are|was|were|be|being|been) given": "passed, set, input, emitted",
    r"came|what comes|comes? of|comes? in(to)?(?= |$)|coming in": "arrives, reads, is from",
    r"gives?|gave|giving": "return, yield, emit, raise; write: has, makes",
    r"give(n|s)? (out|back|up)|hand(s|ed)? (out|over|on|back)": "emit, return",
    r"tak(e|es|en|ing) in|took in": "consume, read, accept",
    r"(let|lets|letting) (in|out|go)": "accept, evict",
    r"go(es)? on|went on|going on": "continue, hold on",
    r"by now": "so far",
    r"(the|a) way out": "hint",
    r"a look": "show, inspect",
    r"beside": "with, next to, besides",
    r"lest|in vain|wherefore|whence|thereof": "plain English",
    r"remember(s|ed|ing)?": "retain, memoise, keep",
    r"barren|dear|handful|leaps?|tally": "VOCABULARY: field's words",
    r"held? aside|aside": "quarantine",
    r"put(s)? in order": "sort",
    r"made anew|written anew|anew": "again",
    r"in words": "as text",
    r"doubts?": "warning",
    r"None where": "None if",
    r"sooner|no sooner": "before, earlier",
}
_BANNED = {re.compile(rf"\b(?:{pattern})\b", re.I): instead for pattern, instead in BANNED.items()}

NOT_VERBS = re.compile(
    r"(The|An?|What|Whether|How|Where|Which|When|Who|Why|All|Each|Every|No|None|One|Some|Any|It|Its"
    r"|This|That|These|Those|There|If|As|Of|In|On|So|Two|Several|Only|Also|Both|Rows|Terms|Items)\b"
)
"""First words of a function's docstring that show that it does not start with a verb."""

NAMES = frozenset(["found", "given", "came", "told", "gone"])
"""Names of variables that say nothing of what they hold."""


class Finding(NamedTuple):
    """A place where prose, or a name, is not in the field's words."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: {self.instead}"


def findings(path: Path, names: bool = True) -> Iterator[Finding]:
    """Yield what a file says that it must not."""
    shown = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    for line, text in prose(path):
        plain = _without_code(text)
        for pattern, instead in _BANNED.items():
            for match in pattern.finditer(plain):
                at = line + plain.count("\n", 0, match.start())
                yield Finding(shown, at, match[0], instead)
    if path.suffix == ".py":
        tree = ast.parse(path.read_text("utf-8"))
        if not path.is_relative_to(ROOT / "tests"):
            for line, text in _openings(tree):
                yield Finding(shown, line, text, "start with a verb in the imperative")
        if names:
            for line, name in _names(tree):
                yield Finding(shown, line, name, "name what the variable holds")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the pieces of prose of a file, each with its first line."""
    text = path.read_text("utf-8")
    match path.suffix:
        case ".py":
            yield from _python(text)
        case ".md":
            yield 1, _without_blocks(text)
        case ".ipynb":
            for cell in json.loads(text)["cells"]:
                if cell["cell_type"] == "markdown":
                    yield 1, _without_blocks("".join(cell["source"]))
        case ".lark":
            for number, line in enumerate(text.splitlines(), 1):
                if "//" in line:
                    yield number, line.partition("//")[2]


def _python(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = re.sub(
                r"^( *)(>>>|\.\.\.)(.*\n)*?(?=\s*$|\s*\n|\Z)", _blank, node.value, flags=re.M
            )
            if " " in value.strip():
                yield node.lineno, value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _without_blocks(text: str) -> str:
    return re.sub(r"^(```|~~~).*?^\1.*?$", _blank, text, flags=re.M | re.S)


def _without_code(text: str) -> str:
    """Return prose without code in backticks, quotes and angle brackets."""
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|<[^<>\n ]*>", lambda m: "·" * len(m[0]), text)


def _openings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if NOT_VERBS.match(first):
            yield node.lineno, first


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        name = getattr(node, "id", None) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.arg):
            name = node.arg
        stored = isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store)
        if stored and name is not None and name.lstrip("_") in NAMES:
            yield node.lineno, name  # type: ignore[attr-defined]


def files(*rooms: str) -> Iterator[Path]:
    """Yield the files of rooms, folders or files, that have prose."""
    for room in rooms or ROOMS:
        path = ROOT / room
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            links = any(parent.is_symlink() for parent in file.parents)
            if file.suffix in (".py", ".md", ".ipynb", ".lark") and not links:
                if ".venv" not in file.parts and file.relative_to(ROOT).as_posix() not in EXEMPT:
                    yield file


if __name__ == "__main__":
    every = [finding for file in files(*sys.argv[1:]) for finding in findings(file)]
    print(*every, sep="\n")
    print(len(every), "findings", file=sys.stderr)
