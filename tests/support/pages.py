"""Documentation pages as programs: the code blocks of a page run from top to bottom.

The blocks of a page share a temporary folder, and their Python code a namespace.

- `python` is executed. If it has `>>>`, its output must be the one that the page shows.
- `console`: bash runs the text after each `$ `, with continuation lines after `> `; its output must
  be the one that the page shows, unless the page shows none. A command that is only `streamsparql`
  runs in this process, which saves a second per command.
- `sparql` is compiled. With options, as in `sparql --stream heat.nq`, it is executed by
  `streamsparql run`, and a `text` block directly below must be the output.
- `sql` is shown for comparison, and not executed.
- Any other block must be part of a file that an earlier block wrote, or of earlier output; `text`
  may also be part of an explanation of the last query, and `json` is compared as a value.

A block with a file name, as in `sparql query.rq`, is written to that file first. A line `...`
matches any number of lines, `...` within a line any text; measured figures may differ. A command
must succeed unless it is followed by `# exit status 1`. Commands that set up an environment or need
a cluster are not executed; `NOT_EXECUTED` lists them.

`python tests/support/pages.py docs/language.md` updates a page with the output of its blocks.
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

NOT_EXECUTED = (
    r"python3 -m venv .*",  # .ci/run executes these two as written
    r"pip install .*",
    r"streamsparql run .* --engine spark .*",  # test_docs.py runs it in the session of all tests
    r"(?s)spark-submit .*",
    r"docker build .*",
    r"docker run .*",
    r"streamsparql serve .*",
    r"curl .*",
    r"pip wheel .*",
    r"(?s)streamsparql run .*(kafka|mqtt|sse\+https)://.*",  # tests/connectors runs brokers
)


class Block(NamedTuple):
    """A code block: its kind, the other words of its first line, its text and position."""

    kind: str
    names: list[str]
    text: str
    begin: int
    line: int

    @property
    def file(self) -> str | None:
        """The file that the block is written to."""
        first = self.names[0] if self.names else "-"
        return None if first.startswith("-") else first

    @property
    def options(self) -> list[str]:
        """The options of `streamsparql run`, or of `compile`."""
        return self.names if self.file is None else self.names[1:]


def blocks(text: str) -> list[Block]:
    """Return the code blocks of a page.

    >>> [(b.kind, b.file, b.options) for b in blocks("```sparql q.rq --stream s.nq\\nASK {}\\n```\\n")]
    [('sparql', 'q.rq', ['--stream', 's.nq'])]
    """
    parsed = []
    for match in BLOCK.finditer(text):
        kind, *names = shlex.split(match[1]) or [""]
        line = text.count("\n", 0, match.start()) + 1
        parsed.append(Block(kind, names, match[2], match.start(2), line))
    return parsed


MEASURED = re.compile(r"<?\b\d+(\.\d+)? m?s\b|[<>]?\b\d[\d.]* %|\b\d[\d.,]*( [kM])? items/s")
"""Figures that differ between runs: times, percentages, rates. Only their presence is compared."""


def matches(shown: str, output: str, whole: bool = True) -> bool:
    """Check that a text is the output or, if not `whole`, a part of it.

    >>> matches("a\\n...\\nd\\n", "a\\nb\\nc\\nd\\n"), matches("b\\n", "a\\nb\\n")
    (True, False)
    >>> matches("b\\n", "a\\nb\\n", whole=False), matches("2 rows in 0.1 s", "2 rows in 0.5 s")
    (True, True)
    """
    if whole and shown != output:
        shown, output = (re.sub(" +", " ", MEASURED.sub("#", text)) for text in (shown, output))
    lines = [r"(?:.*\n)*?" if x == "...\n" else re.escape(x) for x in shown.splitlines(True)]
    pattern = "".join(lines).replace(re.escape("..."), ".*")
    if whole:
        return re.fullmatch(pattern, output) is not None
    return re.search("^" + pattern, output, re.M) is not None


class Page:
    """A page that is executed: `text` becomes the updated page, `wrong` the errors that remain."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder, self.here = path, folder, folder
        self.text = self.path.read_text("utf-8")
        self.wrong: list[str] = []
        self.printed: list[str] = []
        self.space: dict[str, Any] = {"__name__": "__page__"}
        self.query: streamsparql.Query | None = None
        self.answer: str | None = None

    def run(self) -> None:
        """Run all blocks; replace the output in the page where it differs."""
        pieces = []
        last = 0
        for block in blocks(self.text):
            with contextlib.chdir(self.here):
                shown = self._run(block)
            pieces += [self.text[last : block.begin], shown]
            last = block.begin + len(block.text)
        self.text = "".join([*pieces, self.text[last:]])

    def _run(self, block: Block) -> str:
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
            case _ if block.file is None and block.kind != "sql":
                self._check_source(block)
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
        pieces = []
        last = 0
        for example in doctest.DocTestParser().get_examples(block.text):
            output = self._example(example.source)
            first = example.lineno + example.source.count("\n")
            if not checker.check_output(example.want, output, doctest.ELLIPSIS):
                output = re.sub(r"^(?=\n)", "<BLANKLINE>", output, flags=re.M)
                pieces += [*lines[last:first], output]
                last = first + example.want.count("\n")
            self.printed.append(output)
        return "".join([*pieces, *lines[last:]])

    def _example(self, source: str) -> str:
        """Return the output of an example; for an error, a traceback without the stack."""
        with _captured() as out:
            try:
                exec(compile(source, self.path.name, "single"), self.space)
            except Exception as error:
                head = "Traceback (most recent call last):\n    ...\n"
                return head + "".join(traceback.format_exception_only(error))
        return out()

    # -- commands

    def _console(self, block: Block, match: re.Match[str]) -> str:
        command = re.sub(r"^> ", "", match[1], flags=re.M)
        if any(re.fullmatch(known, command.strip()) for known in NOT_EXECUTED):
            return match[0]
        if target := re.fullmatch(r"make ([\w-]+)(?:\s+#.*)?", command.strip()):
            if f"\n{target[1]}:" not in (ROOT / "Makefile").read_text("utf-8"):
                self._fail(block, f"the Makefile has no target {target[1]}")
            return match[0]
        words = _streamsparql_arguments(command)
        status, output = self._bash(command) if words is None else self._in_process(words)
        expected = STATUS.search(command)
        if status != (int(expected[1]) if expected else 0):
            self._fail(block, f"exit status {status} of {command}{output}")
        self.printed.append(output)
        if not match[2] or matches(match[2], output):
            return match[0]
        return f"$ {match[1]}{output}"

    def _in_process(self, words: list[str]) -> tuple[int, str]:
        """Run `streamsparql` in this process; return its exit status and output."""
        with contextlib.chdir(self.here), patch.dict(os.environ, TERMINAL), _captured() as output:
            try:
                status = main(words)
            except SystemExit as end:
                status = int(end.code or 0)
        return status, output()

    def _bash(self, command: str) -> tuple[int, str]:
        """Run a command in bash; the next command inherits its variables and folder."""
        saved = shlex.quote(str(self.folder / ".shell"))
        leave = f"status=$?; export -p > {saved}; printf '\\n%s' \"$PWD\"; exit $status"
        restore = f"[ -f {saved} ] && . {saved}; set -a; trap {shlex.quote(leave)} EXIT"
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", f"{restore}\n{command}"],
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
        with _captured() as errors, contextlib.redirect_stdout(_buffer()) as out:
            status = main(["run", file, *block.options])
        self.answer = _text(out)
        self.printed.append(self.answer)
        if status:
            self._fail(block, errors())

    # -- blocks that are not executed

    def _check_source(self, block: Block) -> None:
        if not block.kind:
            self._fail(block, "missing kind of the block; write ```text, ```console ..")
        elif block.kind == "json":
            value = json.loads(block.text)
            if not any(value == part for part in self._values()):
                self._fail(block, "no earlier output of this page has this value")
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
        """Yield all JSON values of outputs, files and the last explanation, and their parts."""
        texts = [*self._texts("json")]
        if self.query is not None:
            texts.append(self.query.explain("all", "json"))
        for text in texts:
            for piece in (text, *text.splitlines()):
                with contextlib.suppress(json.JSONDecodeError):
                    yield from _parts(json.loads(piece))


def _streamsparql_arguments(command: str) -> list[str] | None:
    """Return the arguments if a command is only `streamsparql` and does not start Java, else None.

    >>> _streamsparql_arguments("streamsparql run q.rq --stream 's s.nq'")
    ['run', 'q.rq', '--stream', 's s.nq']
    >>> _streamsparql_arguments("streamsparql run q.rq --stream s.nq | head -1")
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
    """Capture all output; yield a function that returns the text so far."""
    out = _buffer()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield lambda: _text(out)


def _buffer() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n")


def _text(out: io.TextIOWrapper) -> str:
    out.flush()
    return out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined, no-any-return]


def run_page(path: Path, folder: Path) -> Page:
    """Run all blocks of a page in a folder with a link to the folder `docs`; return the page."""
    (folder / "docs").symlink_to(ROOT / "docs")
    page = Page(path, folder)
    page.run()
    return page


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            page = run_page(Path(name), Path(scratch))
        if page.wrong:
            print(*page.wrong, sep="\n")
        if page.text != Path(name).read_text("utf-8"):
            Path(name).write_text(page.text, "utf-8")
            print(f"{name}: updated")
