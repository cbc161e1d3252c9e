"""A page of the documentation is a program: its code blocks run, from the top down.

The blocks of a page share a folder of their own, and their Python a namespace.

- `python` runs. Where it has `>>>`, what it prints is what is shown.
- `console`: bash runs what follows each `$ `, with further lines after `> `; what it prints is what is
  shown, unless nothing is. `streamsparql` alone runs in this process, which saves a second each.
- `sparql` compiles. With options, as in `sparql --stream heat.nq`, `streamsparql run` answers it, and
  a `text` block that comes next is what that prints.
- Any other is part of a file that an earlier block made, or of what one printed; `text` also of how
  the last query is explained, `json` as a value.

A block with a file's name, as in `sparql query.rq`, is put into that file first. A line `...` stands
for any lines, `...` in a line for anything there; what is measured need not be the same. A command
succeeds, unless it says `# exit status 1`. Commands that set up an environment, or need a cluster, are
not for a test: `ELSEWHERE` has them.

`python tests/support/pages.py docs/language.md` writes into a page what its blocks print now.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import streamsparql
from streamsparql.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ (.*\n(?:(?<=\\\n).*\n|> .*\n)*)((?:(?!\$ ).*\n)*)", re.M)
STATUS = re.compile(r"#\s*exit status (\d+)\s*$")
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
STAGES = ("syntax", "logical", "optimized", "physical", "spark")

ELSEWHERE = (
    r"python3 -m venv .*",  # .ci/run does these two as they are written
    r"spark-submit .*",
)


class Block(NamedTuple):
    """A code block: its kind, what else its first line says, and where its text is in the page."""

    kind: str
    names: list[str]
    text: str
    begin: int
    line: int

    @property
    def file(self) -> str | None:
        """The file that the block is put into."""
        first = self.names[0] if self.names else "-"
        return None if first.startswith("-") else first

    @property
    def options(self) -> list[str]:
        """What a query is run with."""
        return self.names if self.file is None else self.names[1:]


def blocks(text: str) -> list[Block]:
    """The code blocks of a page.

    >>> [(b.kind, b.file, b.options) for b in blocks("```sparql q.rq --stream s.nq\\nASK {}\\n```\\n")]
    [('sparql', 'q.rq', ['--stream', 's.nq'])]
    """
    found = []
    for match in BLOCK.finditer(text):
        kind, *names = shlex.split(match[1]) or [""]
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(kind, names, match[2], match.start(2), line))
    return found


MEASURED = re.compile(r"<?\b\d+(\.\d+)? m?s\b|[<>]?\b\d[\d.]* %|\b\d[\d.,]*( [kM])? items/s")
"""What is another at each run: times, shares, rates. That they are shown is what is compared."""


def matches(shown: str, got: str, whole: bool = True) -> bool:
    """Whether this was printed, or, unless it is the whole, is part of what was.

    >>> matches("a\\n...\\nd\\n", "a\\nb\\nc\\nd\\n"), matches("b\\n", "a\\nb\\n")
    (True, False)
    >>> matches("b\\n", "a\\nb\\n", whole=False), matches("2 rows in 0.1 s", "2 rows in 0.5 s")
    (True, True)
    """
    if whole and shown != got:
        shown, got = (re.sub(" +", " ", MEASURED.sub("#", text)) for text in (shown, got))
    lines = [r"(?:.*\n)*?" if x == "...\n" else re.escape(x) for x in shown.splitlines(True)]
    pattern = "".join(lines).replace(re.escape("..."), ".*")
    if whole:
        return re.fullmatch(pattern, got) is not None
    return re.search("^" + pattern, got, re.M) is not None


class Page:
    """A page at play. `text` becomes the page as it should be, `wrong` what no output can mend."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder, self.here = path, folder, folder
        self.text = self.path.read_text("utf-8")
        self.wrong: list[str] = []
        self.printed: list[str] = []
        self.space: dict[str, Any] = {"__name__": "__page__"}
        self.query: streamsparql.Query | None = None
        self.answer: str | None = None

    def play(self) -> None:
        """Runs all blocks. What they print takes the place of what is shown, where it differs."""
        made = []
        last = 0
        for block in blocks(self.text):
            with contextlib.chdir(self.here):
                shown = self._play(block)
            made += [self.text[last : block.begin], shown]
            last = block.begin + len(block.text)
        self.text = "".join([*made, self.text[last:]])

    def _play(self, block: Block) -> str:
        if block.file is not None:
            Path(block.file).write_text(block.text, "utf-8")
        answer, self.answer = self.answer, None
        match block.kind:
            case "python" if ">>> " in block.text:
                return self._doctest(block)
            case "python":
                self._execute(block)
            case "console":
                return COMMAND.sub(lambda m: self._console(block, m), block.text)
            case "sparql":
                self._compile(block)
            case "text" if answer is not None:
                return block.text if matches(block.text, answer) else answer
            case _ if block.file is None:
                self._find(block)
        return block.text

    def _fail(self, block: Block, reason: str) -> None:
        self.wrong.append(f"{self.path.name}, line {block.line}: {reason}")

    # -- python

    def _execute(self, block: Block) -> None:
        with _captured() as out:
            try:
                exec(compile(block.text, self.path.name, "exec"), self.space)
            except Exception:
                self._fail(block, traceback.format_exc())
        self.printed.append(out())

    def _doctest(self, block: Block) -> str:
        lines = block.text.splitlines(True)
        checker = doctest.OutputChecker()
        made = []
        last = 0
        for example in doctest.DocTestParser().get_examples(block.text):
            got = self._example(example.source)
            first = example.lineno + example.source.count("\n")
            if not checker.check_output(example.want, got, doctest.ELLIPSIS):
                got = re.sub(r"^(?=\n)", "<BLANKLINE>", got, flags=re.M)
                made += [*lines[last:first], got]
                last = first + example.want.count("\n")
            self.printed.append(got)
        return "".join([*made, *lines[last:]])

    def _example(self, source: str) -> str:
        """What an example prints; of an error, what the interpreter would show as its last lines."""
        with _captured() as out:
            try:
                exec(compile(source, self.path.name, "single"), self.space)
            except Exception as error:
                head = "Traceback (most recent call last):\n    ...\n"
                return head + "".join(traceback.format_exception_only(error))
        return out()

    # -- commands

    def _console(self, block: Block, found: re.Match[str]) -> str:
        command = re.sub(r"^> ", "", found[1], flags=re.M)
        if any(re.fullmatch(known, command.strip()) for known in ELSEWHERE):
            return found[0]
        if target := re.fullmatch(r"make ([\w-]+)(?:\s+#.*)?", command.strip()):
            if f"\n{target[1]}:" not in (ROOT / "Makefile").read_text("utf-8"):
                self._fail(block, f"the Makefile has no target {target[1]}")
            return found[0]
        words = _ours(command)
        status, got = self._bash(command) if words is None else self._here(words)
        expected = STATUS.search(command)
        if status != (int(expected[1]) if expected else 0):
            self._fail(block, f"exit status {status} of {command}{got}")
        self.printed.append(got)
        if not found[2] or matches(found[2], got):
            return found[0]
        return f"$ {found[1]}{got}"

    def _here(self, words: list[str]) -> tuple[int, str]:
        """The status and the output of a command of ours, in this process: it saves a second."""
        with contextlib.chdir(self.here), patch.dict(os.environ, TERMINAL), _captured() as told:
            try:
                status = main(words)
            except SystemExit as end:
                status = int(end.code or 0)
        return status, told()

    def _bash(self, command: str) -> tuple[int, str]:
        """The command's status, and what a terminal would show; the next one finds its variables."""
        there = shlex.quote(str(self.folder / ".shell"))
        leave = f"status=$?; export -p > {there}; printf '\\n%s' \"$PWD\"; exit $status"
        known = f"[ -f {there} ] && . {there}; set -a; trap {shlex.quote(leave)} EXIT"
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", f"{known}\n{command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.here,
            env={**os.environ, **TERMINAL, "PATH": tools, "PYTHONUNBUFFERED": "1"},
            timeout=300,
        )
        printed, _, here = done.stdout.rpartition("\n")
        self.here = Path(here)
        return done.returncode, printed

    # -- queries

    def _compile(self, block: Block) -> None:
        words = iter(block.options)
        named = next((next(words) for word in words if word == "--dialect"), "auto")
        try:
            self.query = streamsparql.compile(block.text, dialect=named)
        except streamsparql.StreamSparqlError as error:
            self._fail(block, str(error))
            return
        if not block.options or block.options == ["--dialect", named]:
            return
        file = block.file or ".query.rq"
        Path(file).write_text(block.text, "utf-8")
        with _captured() as told, contextlib.redirect_stdout(_buffer()) as out:
            status = main(["run", file, *block.options])
        self.answer = _text(out)
        self.printed.append(self.answer)
        if status:
            self._fail(block, told())

    # -- what is only shown

    def _find(self, block: Block) -> None:
        if not block.kind:
            self._fail(block, "a block says what it is: ```text, ```console ..")
        elif block.kind == "json":
            value = json.loads(block.text)
            if not any(value == part for part in self._values()):
                self._fail(block, "nothing on this page printed this value")
        elif not any(matches(block.text, text, whole=False) for text in self._texts(block.kind)):
            self._fail(block, f"no file and no output on this page has this:\n{block.text}")

    def _texts(self, kind: str) -> Iterator[str]:
        yield from reversed(self.printed)
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.stat().st_size < 1_000_000:
                yield path.read_text("utf-8", errors="replace")
        if self.query is not None and kind == "text":
            yield from (self.query.explain(stage) + "\n" for stage in STAGES)

    def _values(self) -> Iterator[Any]:
        """All that is in JSON printed on the page, or in files, or explains the last query."""
        texts = [*self._texts("json")]
        if self.query is not None:
            texts.append(self.query.explain("all", "json"))
        for text in texts:
            for piece in (text, *text.splitlines()):
                with contextlib.suppress(json.JSONDecodeError):
                    yield from _parts(json.loads(piece))


def _ours(command: str) -> list[str] | None:
    """The arguments of `streamsparql`, where a command is that alone, and starts no Java.

    >>> _ours("streamsparql run q.rq --stream 's s.nq'")
    ['run', 'q.rq', '--stream', 's s.nq']
    >>> _ours("streamsparql run q.rq --stream s.nq | head -1")
    """
    plain = STATUS.sub("", command).replace("\\\n", " ")
    if re.search(r"[|&;<>()$`*?\[\]{}~#]|spark |local|version", plain.replace("streamsparql ", "")):
        return None
    words = shlex.split(plain)
    return words[1:] if words[:1] == ["streamsparql"] else None


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """What is printed meanwhile, by a function that tells it."""
    out = _buffer()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield lambda: _text(out)


def _buffer() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n")


def _text(out: io.TextIOWrapper) -> str:
    out.flush()
    return out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined, no-any-return]


def played(path: Path, folder: Path) -> Page:
    """A page after all its blocks ran; the folder `docs` is there as it is in the repository."""
    (folder / "docs").symlink_to(ROOT / "docs")
    page = Page(path, folder)
    page.play()
    return page


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            page = played(Path(name), Path(scratch))
        if page.wrong:
            print(*page.wrong, sep="\n")
        if page.text != Path(name).read_text("utf-8"):
            Path(name).write_text(page.text, "utf-8")
            print(f"{name}: written anew")
