"""`%load_ext streamsparql`: queries in cells of their own, and plans at a word.

    %%streamsparql stops --streams wind --graph turbines
    SELECT ?turbine FROM STREAM <http://example.org/wind> WINDOW RANGE 10 MINUTE SLIDE { .. }

compiles the cell, shows the query and runs it over the notebook's variables; the query is then
`stops`, its result `stops_result`. `%explain stops --stage optimized` shows a stage of it.

Options are those of the command line, where variables stand for files; a file does too. Errors are
shown as the command line shows them, and end the cell. IPython is not imported: the shell that
loads the extension is handed over.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from html import escape
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from streamsparql.algebra.plan import Plan
from streamsparql.cli.data_options import data_options, with_mappings
from streamsparql.cli.options import (
    MEASURED,
    REPORTS,
    UsageError,
    compile_options,
    compiled_text,
    period,
    sources,
    text_of,
)
from streamsparql.cli.queries import FORMATS, STAGES
from streamsparql.errors import StreamSparqlError
from streamsparql.overriding import override

if TYPE_CHECKING:
    from streamsparql.query import Query
    from streamsparql.run.result import Result


def load_ipython_extension(shell: Any) -> None:
    """Adds `%%streamsparql` and `%explain` to a notebook, or to IPython in a terminal."""
    magics = Magics(shell)
    for kind, name, function, parser in (
        ("cell", "streamsparql", magics.streamsparql, _query_parser()),
        ("line_cell", "explain", magics.explain, _explain_parser()),
    ):
        shell.register_magic_function(_magic(function, parser), kind, name)
        for mark in ("%", "%%"):
            shell.set_hook("complete_command", magics.completer(parser), str_key=f"{mark}{name}")


def unload_ipython_extension(shell: Any) -> None:
    """Takes the magics away."""
    for kind, name in (("cell", "streamsparql"), ("line", "explain"), ("cell", "explain")):
        shell.magics_manager.magics[kind].pop(name, None)


def _magic(function: Callable[..., None], parser: argparse.ArgumentParser) -> Callable[..., None]:
    """A function for a shell: an error of ours ends the cell with its message, and no traceback."""

    @wraps(function)
    def magic(line: str, cell: str | None = None) -> None:
        try:
            function(line, cell)
        except StreamSparqlError as error:
            lines = _told(error, parser)
            error.__dict__["_render_traceback_"] = lambda: lines  # IPython asks an error for this
            raise

    magic.__doc__ = f"{function.__doc__}\n\n{parser.format_help()}"
    magic.__dict__["_ipython_magic_no_var_expand"] = True  # braces are the query's
    return magic


def _told(error: StreamSparqlError, parser: argparse.ArgumentParser) -> list[str]:
    """The lines of an error, its kind in red."""
    if isinstance(error, UsageError):
        return [f"\033[1;31musage error\033[0m: {error}", parser.format_usage().rstrip()]
    first, *more = str(error).splitlines() or [""]
    return [f"\033[1;31m{type(error).__name__}\033[0m: {first}", *more]


# -- options ---------------------------------------------------------------------------------------


class _Arguments(argparse.ArgumentParser):
    """A parser of a magic's line; what is wrong is an error of ours."""

    @override
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser(name: str) -> _Arguments:
    return _Arguments(prog=name, add_help=False, formatter_class=argparse.RawTextHelpFormatter)


def _query_parser() -> argparse.ArgumentParser:
    parser = _parser("%%streamsparql")
    name = "the query's variable; NAME_result is the result's"
    parser.add_argument("name", metavar="NAME", nargs="?", help=name)
    compile_options(parser)
    _data(parser)
    return parser


def _explain_parser() -> argparse.ArgumentParser:
    parser = _parser("%explain")
    parser.add_argument("query", metavar="NAME|TEXT", nargs="?", help="a variable, or a query")
    compile_options(parser)
    group = parser.add_argument_group("what is shown")
    group.add_argument("--stage", choices=STAGES, metavar="NAME", help=", ".join(STAGES))
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=", ".join(FORMATS))
    group.add_argument("--analyze", action="store_true", help="run the query, and measure it")
    _data(parser)
    return parser


def _data(parser: argparse.ArgumentParser) -> None:
    """The options about data. `--streams` takes several at once."""
    parser.add_argument(
        "--streams", dest="stream", action="extend", nargs="+", metavar="[IRI=]VAR", default=[]
    )
    data_options(parser)
    add = parser.add_argument_group("reports").add_argument
    add("--report", choices=REPORTS, metavar="KIND", help=", ".join(REPORTS))
    add("--every", metavar="DUR", type=period, help="from one report to the next")


def _parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    try:
        return parser.parse_args(list(words))
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None


def _about_data(options: argparse.Namespace) -> list[str]:
    """The options about data that are given, by their names."""
    defaults = vars(_plain_data())
    names = {"start": "from", "end": "until"}
    return [
        f"--{names.get(dest, dest).replace('_', '-')}"
        for dest, default in defaults.items()
        if getattr(options, dest) != default
    ]


def _about_reading(options: argparse.Namespace) -> list[str]:
    """The options about how a text is read that are given, by their names."""
    parser = _parser("")
    compile_options(parser)
    defaults = vars(parser.parse_args([]))
    return [f"--{name}" for name, default in defaults.items() if getattr(options, name) != default]


def _plain_data() -> argparse.Namespace:
    parser = _parser("")
    _data(parser)
    return parser.parse_args([])


# -- the magics ------------------------------------------------------------------------------------


class Magics:
    """What the magics do, in one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The notebook's variables."""
        found: Mapping[str, Any] = self.shell.user_ns
        return found

    def streamsparql(self, line: str, cell: str | None) -> None:
        """Compiles the query in a cell, shows it, and runs it where it is given its streams."""
        options = _parsed(_query_parser(), _words(line))
        name = options.name or ""
        if name and (not name.isidentifier() or iskeyword(name)):
            raise UsageError(f"{name!r} is no name for a variable")
        query = compiled_text(cell or "", options)
        given = _about_data(options)
        runs = bool(options.stream or (not query.streams and (options.graph or options.named)))
        if given and not runs:
            raise UsageError(f"{given[0]} is about a run: give --streams VAR too")
        kwargs = self._given(query, options) if runs else {}
        self.shell.push({name or "_query": query})
        self._show(query._repr_html_(), query.explain("logical"))
        if runs:
            result = query.run(**kwargs)
            self.shell.push({f"{name}_result" if name else "_result": result})
            self._show_result(result, options)

    def explain(self, line: str, cell: str | None) -> None:
        """Shows the stages of a query, or what a run of it measured."""
        from streamsparql.query import Query

        target, rest = self._target(line, cell)
        options = _parsed(_explain_parser(), rest)
        if options.query is not None:
            raise UsageError(f"what is {options.query!r}? The query is there already")
        if isinstance(target, str):
            target = compiled_text(target, options)
        elif given := _about_reading(options):
            raise UsageError(f"{given[0]} is about a text, and this is compiled already")
        if not options.analyze and (given := _about_data(options)):
            raise UsageError(f"{given[0]} goes with --analyze, which runs the query")
        if not isinstance(target, Query):
            self._show_plan(target, options)
        elif options.analyze:
            self._analyze(target, options)
        else:
            self._show_stages(target, options)

    def completer(self, parser: argparse.ArgumentParser) -> Callable[[Any, Any], list[str]]:
        """What completes a magic's line: options, their values, variables."""

        def complete(_: Any, event: Any) -> list[str]:
            return completions(parser, event.line, event.symbol, self.names)

        return complete

    # -- what is shown

    @property
    def _in_terminal(self) -> bool:
        return type(self.shell).__name__ == "TerminalInteractiveShell"

    def _show(self, html: str, text: str) -> None:
        """Shows HTML where that can be shown, else text."""
        if self._in_terminal:
            print(text)
        else:
            self.shell.display_pub.publish({"text/html": html, "text/plain": text})

    def _show_result(self, result: Result, options: argparse.Namespace) -> None:
        if self._in_terminal:
            result.write(sys.stdout, "table", report=options.report, every=options.every)
            self._show_left_out(result, options)
        elif options.report is not None or options.every is not None:
            picture = result.timeline(report=options.report, every=options.every)
            self._show(picture.html, str(picture))
            self._show_left_out(result, options)
        else:
            if not result.computation.repeatable:  # a preview would use a source up
                result.to_arrow()
            from streamsparql.look.jupyter.result_view import computed

            self._show(computed(result), str(result))

    def _show_left_out(self, result: Result, options: argparse.Namespace) -> None:
        """Says what was late or could not be read; on Spark that would be another job."""
        from streamsparql.look.jupyter.html_table import note
        from streamsparql.run.result import rejects_note

        rejects = result.computation.rejects() if options.engine == "embedded" else []
        if text := rejects_note(len(rejects), next(iter(rejects), None)):
            self._show(note(text), text)

    def _show_plan(self, plan: Any, options: argparse.Namespace) -> None:
        if options.stage or options.analyze:
            raise UsageError("stages and --analyze are a query's, and this is a plan")
        if options.format not in (None, "text", "html"):
            raise UsageError("a plan is shown as text or html")
        if options.format == "text":
            print(plan)
        else:
            self._show(plan._repr_html_(), str(plan))

    def _show_stages(self, query: Query, options: argparse.Namespace) -> None:
        stage, kind = options.stage or "all", options.format
        if kind not in (None, "html", "svg"):
            print(query.explain(stage, kind))
            return
        text = query.explain(stage)
        if kind == "svg":
            self._show(query.explain(stage, "svg"), text)
            return
        from streamsparql.look.explain import STAGE_BOXES, shown_stages
        from streamsparql.look.explain.formats.html import stage_html

        parts = [
            f"<h4>{escape(name)}</h4>{stage_html(STAGE_BOXES[name](query))}"
            for name in shown_stages(query, stage)
        ]
        self._show("\n".join(parts), text)

    def _analyze(self, query: Query, options: argparse.Namespace) -> None:
        stage = options.stage or "all"
        if stage not in MEASURED:
            raise UsageError(f"--analyze measures what runs: --stage {stage} shows what it is of")
        kwargs = self._given(query, options)
        analysis = query.analyze(**kwargs, report=options.report, every=options.every)
        if options.format in (None, "html"):
            self._show(analysis._repr_html_(), analysis.explain("text", stage))
        else:
            print(analysis.explain(options.format, stage))

    # -- what is meant

    def _target(self, line: str, cell: str | None) -> tuple[Any, list[str]]:
        """What %explain is about, and its options: a text, the cell or what is before an option; or
        a variable, or an attribute of one, that is a query or a plan.
        """  # fmt: skip
        from streamsparql.look.by_hand import Draft
        from streamsparql.physical.operator import Operator
        from streamsparql.query import Query

        if cell is not None:
            return cell, _words(line)
        found = re.search(r"(?:^|\s)--(?=[a-z])", line)
        text, rest = (line[: found.start()], line[found.start() :]) if found else (line, "")
        text = text.strip()
        if not text:
            raise UsageError("what is to be explained? %explain NAME, or %explain SELECT ..")
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", text):
            return text, _words(rest)
        value = self._value(text, files=False)
        if not isinstance(value, Query | Plan | Operator | Draft | str):
            raise UsageError(f"{text} is no query or plan, but {type(value).__name__}")
        return value, _words(rest)

    def _given(self, query: Query, options: argparse.Namespace) -> dict[str, Any]:
        """The arguments of `Query.run`, of the notebook's variables."""
        prefixes = query.prefixes
        streams, named = (
            sources([_spelt(text, known, prefixes) for text in given], known, what)
            for given, known, what in (
                (options.stream, query.streams, "stream"),
                (options.named, query.graphs, "named"),
            )
        )
        if missing := [name for name in query.streams if name not in streams]:
            raise UsageError(
                f"the query reads the stream <{missing[0]}>: give --streams {missing[0]}=VAR"
            )
        engine: dict[str, Any] = {}
        if options.engine == "spark":
            from streamsparql.spark.sessions import session

            engine = {"engine": "spark", "spark": session(options.master), "slabs": options.slabs}
        elif options.master is not None or options.slabs is not None:
            raise UsageError("--master and --slabs go with --engine spark")
        return {
            "streams": with_mappings(query, options, self._sources(streams), self._mapping),
            "graph": self._source(options.graph) if options.graph else None,
            "graphs": self._sources(named),
            "start": options.start,
            "end": options.end,
            "strict": options.strict,
            "max_delay": options.max_delay,
            **engine,
        }

    def _sources(self, given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {name: self._source(words) for name, words in given.items()}

    def _source(self, words: Sequence[str]) -> Any:
        """One value as it is; more of them are files."""
        values = [self._value(word) for word in words]
        if len(values) > 1 and not all(isinstance(value, str | Path) for value in values):
            raise UsageError(
                f"{', '.join(words)}: several sources are one only where all are files"
            )
        return values[0] if len(values) == 1 else values

    def _mapping(self, word: str) -> str:
        """The text of a mapping."""
        mapping = self._value(word)
        if isinstance(mapping, Path):
            return text_of(str(mapping))
        if not isinstance(mapping, str):
            kind = type(mapping).__name__
            raise UsageError(f"--map {word}: a mapping is a text or a file, not {kind}")
        return mapping

    def _value(self, word: str, files: bool = True) -> Any:
        """The variable of that name, or an attribute of one; else a file."""
        first, *rest = word.split(".")
        there = files and Path(word).exists()
        if first in self.names:
            value = self.names[first]
            for attribute in rest:
                if not hasattr(value, attribute):
                    if there:
                        return Path(word)
                    raise UsageError(f"{word}: {first} has no {attribute}")
                value = getattr(value, attribute)
            return value
        if there:
            return Path(word)
        hidden = self.shell.user_ns_hidden
        known = [name for name in self.names if not name.startswith("_") and name not in hidden]
        close = difflib.get_close_matches(word, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UsageError(f"there is no variable{' or file' * files} {word}{hint}")


def _spelt(text: str, known: Sequence[str], prefixes: Mapping[str, str]) -> str:
    """`IRI=VAR` with the IRI whole, where it is written with a prefix of the query.

    >>> _spelt(":s=wind", ["http://e/s"], {"": "http://e/"})
    'http://e/s=wind'
    """
    name, equals, word = text.partition("=")
    prefix, colon, local = name.partition(":")
    whole = prefixes.get(prefix, "") + local
    return f"{whole}={word}" if equals and colon and whole in known else text


# -- completion ------------------------------------------------------------------------------------


def completions(
    parser: argparse.ArgumentParser, line: str, symbol: str, names: Mapping[str, Any]
) -> list[str]:
    """What can stand where a line is completed: an option, one of its values, a variable.

    >>> parser = _query_parser()
    >>> completions(parser, "%%streamsparql --dia", "--dia", {})
    ['--dialect']
    >>> completions(parser, "%%streamsparql --dialect c", "c", {"cars": 1})
    ['csparql', 'cqels']
    >>> completions(parser, "%%streamsparql found --streams w", "w", {"wind": 1, "x": 2})
    ['wind']
    """
    if symbol.startswith("-"):
        options = [name for action in parser._actions for name in action.option_strings]
        return sorted(name for name in options if name.startswith(symbol))
    before = line[: len(line) - len(symbol)].split()
    last = before[-1] if before else ""
    actions = {name: action for action in parser._actions for name in action.option_strings}
    choices = actions[last].choices if last in actions else None
    if choices is not None:
        return [choice for choice in choices if choice.startswith(symbol)]
    wanted = symbol.rpartition("=")[2]
    head = symbol[: len(symbol) - len(wanted)]
    return [
        head + name
        for name in sorted(names)
        if name.startswith(wanted) and not name.startswith("_")
    ]
