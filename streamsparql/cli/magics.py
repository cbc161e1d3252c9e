"""`%load_ext streamsparql`: a cell magic that runs a query, and a magic that explains one.

    %%streamsparql stops --streams wind --graph turbines
    SELECT ?turbine FROM STREAM <http://example.org/wind> WINDOW RANGE 10 MINUTE SLIDE { .. }

compiles the cell, shows the query and runs it over the notebook's variables. It assigns the query
to `stops` and its result to `stops_result`. `%explain stops --stage optimized` shows a stage of it.

Options are those of the command line, except that sources are variables; files work too. An error
ends the cell with the message that the command line prints. IPython is not imported: it passes its
shell when it loads the extension.
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
from streamsparql.cli.common_options import (
    MEASURED_STAGES,
    REPORTS,
    UsageError,
    add_compile_options,
    compile_text,
    files_by_name,
    period_option,
    read_text,
    show_warnings,
)
from streamsparql.cli.data_options import add_data_options, stamp_options, with_mappings
from streamsparql.cli.queries import EXPLAIN_FORMATS, EXPLAIN_STAGES
from streamsparql.cli.words import expand_names
from streamsparql.overriding import override

if TYPE_CHECKING:
    from streamsparql.query import Query
    from streamsparql.run.result import Result


def load_ipython_extension(shell: Any) -> None:
    """Register `%%streamsparql` and `%explain` in a notebook, or in IPython in a terminal."""
    magics = Magics(shell)
    for kind, name, function, parser in (
        ("cell", "streamsparql", magics.streamsparql, _query_parser()),
        ("line_cell", "explain", magics.explain, _explain_parser()),
    ):
        shell.register_magic_function(_magic(function, parser), kind, name)
        for mark in ("%", "%%"):
            shell.set_hook("complete_command", magics.completer(parser), str_key=f"{mark}{name}")


def unload_ipython_extension(shell: Any) -> None:
    """Unregister the magics."""
    for kind, name in (("cell", "streamsparql"), ("line", "explain"), ("cell", "explain")):
        shell.magics_manager.magics[kind].pop(name, None)


def _magic(function: Callable[..., None], parser: argparse.ArgumentParser) -> Callable[..., None]:
    """Wrap a magic so that a usage error shows the usage; no error has a traceback."""

    @wraps(function)
    def magic(line: str, cell: str | None = None) -> None:
        try:
            function(line, cell)
        except UsageError as error:
            lines = [f"\033[1;31musage error\033[0m: {error}", parser.format_usage().rstrip()]
            error.__dict__["_render_traceback_"] = lambda: lines  # IPython calls this
            raise

    magic.__doc__ = f"{function.__doc__}\n\n{parser.format_help()}"
    magic.__dict__["_ipython_magic_no_var_expand"] = True  # braces belong to the query
    return magic


# -- options ---------------------------------------------------------------------------------------


class _Arguments(argparse.ArgumentParser):
    """A parser of a magic's line, which raises `UsageError` and does not exit."""

    @override
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser(name: str) -> _Arguments:
    return _Arguments(prog=name, add_help=False, formatter_class=argparse.RawTextHelpFormatter)


def _query_parser() -> argparse.ArgumentParser:
    parser = _parser("%%streamsparql")
    names = "variable for the query; its result is NAME_result"
    parser.add_argument("name", metavar="NAME", nargs="?", help=names)
    add_compile_options(parser)
    _add_run_options(parser)
    return parser


def _explain_parser() -> argparse.ArgumentParser:
    parser = _parser("%explain")
    parser.add_argument(
        "query", metavar="NAME|TEXT", nargs="?", help="a variable, or the text of a query"
    )
    add_compile_options(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--stage", choices=EXPLAIN_STAGES, metavar="NAME", help=", ".join(EXPLAIN_STAGES)
    )
    group.add_argument(
        "--format", choices=EXPLAIN_FORMATS, metavar="NAME", help=", ".join(EXPLAIN_FORMATS)
    )
    group.add_argument("--analyze", action="store_true", help="run the query and measure it")
    _add_run_options(parser)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name data and select reports; `--streams` accepts several values."""
    parser.add_argument(
        "--streams", dest="stream", action="extend", nargs="+", metavar="[IRI=]VAR", default=[]
    )
    add_data_options(parser)
    add = parser.add_argument_group("reports").add_argument
    add("--report", choices=REPORTS, metavar="KIND", help=", ".join(REPORTS))
    add("--every", metavar="DUR", type=period_option, help="interval between reports")


def _parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    try:
        return parser.parse_args(list(words))
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None


def _run_flags(options: argparse.Namespace) -> list[str]:
    """Return the flags of the data options that differ from their defaults."""
    defaults = vars(_run_defaults())
    names = {"start": "from", "end": "until"}
    return [
        f"--{names.get(dest, dest).replace('_', '-')}"
        for dest, default in defaults.items()
        if getattr(options, dest) != default
    ]


def _compile_flags(options: argparse.Namespace) -> list[str]:
    """Return the flags of the options for compiling that differ from their defaults."""
    parser = _parser("")
    add_compile_options(parser)
    defaults = vars(parser.parse_args([]))
    return [f"--{name}" for name, default in defaults.items() if getattr(options, name) != default]


def _run_defaults() -> argparse.Namespace:
    parser = _parser("")
    _add_run_options(parser)
    return parser.parse_args([])


def _is_embedded(options: argparse.Namespace) -> bool:
    engine: str = options.engine
    return engine == "embedded"


# -- the magics ------------------------------------------------------------------------------------


class Magics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    @property
    def names(self) -> Mapping[str, Any]:
        """The notebook's variables."""
        variables: Mapping[str, Any] = self.shell.user_ns
        return variables

    def streamsparql(self, line: str, cell: str | None) -> None:
        """Compile the query in a cell, show it, and run it if its streams are named."""
        options = _parse(_query_parser(), _split_words(line))
        name = options.name or ""
        if name and (not name.isidentifier() or iskeyword(name)):
            raise UsageError(f"not a valid variable name: {name!r}")
        query = compile_text(cell or "", options)
        flags = _run_flags(options)
        runs = bool(options.stream or (not query.streams and (options.graph or options.named)))
        if flags and not runs:
            raise UsageError(f"{flags[0]} applies to a run; add --streams VAR")
        kwargs = self._run_arguments(query, options) if runs else {}
        self.shell.push({name or "_query": query})
        show_warnings(query, "the cell", quiet=not self._in_terminal)  # the display has them
        self._show(query._repr_html_(), query.explain("logical"))
        if runs:
            result = query.run(**kwargs)
            self.shell.push({f"{name}_result" if name else "_result": result})
            self._show_result(result, options)

    def explain(self, line: str, cell: str | None) -> None:
        """Show the stages of a query, or the measurements of a run."""
        from streamsparql.query import Query

        target, rest = self._target(line, cell)
        options = _parse(_explain_parser(), rest)
        if options.query is not None:
            raise UsageError(f"unexpected argument {options.query!r}; there is a query already")
        if isinstance(target, str):
            target = compile_text(target, options)
        elif flags := _compile_flags(options):
            raise UsageError(f"{flags[0]} applies to the text of a query; this one is compiled")
        if not options.analyze and (flags := _run_flags(options)):
            raise UsageError(f"{flags[0]} requires --analyze, which runs the query")
        if not isinstance(target, Query):
            self._show_plan(target, options)
        elif options.analyze:
            self._analyze(target, options)
        else:
            self._show_stages(target, options)

    def completer(self, parser: argparse.ArgumentParser) -> Callable[[Any, Any], list[str]]:
        """Return a function that completes options, their values and variables in a line."""

        def complete(_: Any, event: Any) -> list[str]:
            return completions(parser, event.line, event.symbol, self.names)

        return complete

    # -- output

    @property
    def _in_terminal(self) -> bool:
        return type(self.shell).__name__ == "TerminalInteractiveShell"

    def _show(self, html: str, text: str) -> None:
        """Display HTML in a notebook, and print text in a terminal."""
        if self._in_terminal:
            print(text)
        else:
            self.shell.display_pub.publish({"text/html": html, "text/plain": text})

    def _show_result(self, result: Result, options: argparse.Namespace) -> None:
        if self._in_terminal:
            result.write(sys.stdout, "table", report=options.report, every=options.every)
            self._show_rejects(result, options)
            self._show_why_empty(result, options)
        elif options.report is not None or options.every is not None:
            picture = result.timeline(report=options.report, every=options.every)
            self._show(picture.html, str(picture))
            self._show_rejects(result, options)
            self._show_why_empty(result, options)
        else:
            if not result.computation.repeatable:  # a preview would consume a source
                result.to_arrow()
            from streamsparql.look.jupyter.result_view import result_html

            self._show(result_html(result), str(result))

    def _show_rejects(self, result: Result, options: argparse.Namespace) -> None:
        """Show a note of late and rejected items; not on Spark, where it would take another job."""
        from streamsparql.look.jupyter.html_table import note_html
        from streamsparql.run.result import rejects_note

        rejects = result.computation.rejects() if _is_embedded(options) else []
        if text := rejects_note(len(rejects), next(iter(rejects), None)):
            self._show(note_html(text), text)

    def _show_why_empty(self, result: Result, options: argparse.Namespace) -> None:
        """Show why there are no rows; not on Spark, where it may take a job."""
        if _is_embedded(options) and result.computation.is_empty():
            why = result.why_empty()
            self._show(why._repr_html_(), str(why))

    def _show_plan(self, plan: Any, options: argparse.Namespace) -> None:
        if options.stage or options.analyze:
            raise UsageError("--stage and --analyze apply to a query, not to a plan")
        if options.format not in (None, "text", "html"):
            raise UsageError(f"a plan can be shown as text or html, not as {options.format}")
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
        if stage not in MEASURED_STAGES:
            raise UsageError(
                f"--analyze measures the stages {', '.join(MEASURED_STAGES)}, not {stage}"
            )
        kwargs = self._run_arguments(query, options)
        analysis = query.analyze(**kwargs, report=options.report, every=options.every)
        if options.format in (None, "html"):
            self._show(analysis._repr_html_(), analysis.explain("text", stage))
        else:
            print(analysis.explain(options.format, stage))

    # -- input

    def _target(self, line: str, cell: str | None) -> tuple[Any, list[str]]:
        """Return the target of `%explain`, and the words of its options.

        The target is the text of a query (the cell, or the line up to the first option), or the
        value of a variable or attribute: a query, a plan, or a draft of one.
        """
        from streamsparql.look.by_hand import Draft
        from streamsparql.physical.operator import Operator
        from streamsparql.query import Query

        if cell is not None:
            return cell, _split_words(line)
        option = re.search(r"(?:^|\s)--(?=[a-z])", line)
        text, rest = (line[: option.start()], line[option.start() :]) if option else (line, "")
        text = text.strip()
        if not text:
            raise UsageError("missing query; write %explain NAME or %explain SELECT ..")
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", text):
            return text, _split_words(rest)
        value = self._value(text, files=False)
        if not isinstance(value, Query | Plan | Operator | Draft | str):
            raise UsageError(
                f"expected a query or a plan; {text} is of type {type(value).__name__}"
            )
        return value, _split_words(rest)

    def _run_arguments(self, query: Query, options: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of `Query.run`, with the values of the notebook's variables."""
        from streamsparql.run.input import existing_file

        expand_names(query, options)
        streams = files_by_name(options.stream, query.streams, "stream")
        named = files_by_name(options.named, query.graphs, "named")
        if missing := [name for name in query.streams if name not in streams]:
            raise UsageError(f"missing stream <{missing[0]}>; add --streams {missing[0]}=VAR")
        engine: dict[str, Any] = {}
        if options.engine == "spark":
            from streamsparql.spark.sessions import session

            engine = {"engine": "spark", "spark": session(options.master), "slabs": options.slabs}
        elif options.master is not None or options.slabs is not None:
            raise UsageError("--master and --slabs require --engine spark")
        return {
            "streams": with_mappings(query, options, self._files_by_name(streams), self._mapping),
            "graph": self._source(options.graph) if options.graph else None,
            "graphs": self._files_by_name(named),
            "start": options.start,
            "end": options.end,
            "strict": options.strict,
            "max_delay": options.max_delay,
            **stamp_options(query, options),
            "files": None if options.no_files else existing_file,
            **engine,
        }

    def _files_by_name(self, words_by_iri: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {iri: self._source(words) for iri, words in words_by_iri.items()}

    def _source(self, words: Sequence[str]) -> Any:
        """Return the source that words name: a value, or several files."""
        values = [self._value(word) for word in words]
        if len(values) > 1 and not all(isinstance(value, str | Path) for value in values):
            raise UsageError(
                f"several sources of one stream or graph must all be files: {', '.join(words)}"
            )
        return values[0] if len(values) == 1 else values

    def _mapping(self, word: str) -> str:
        """Return the text of a mapping, from a variable or a file."""
        mapping = self._value(word)
        if isinstance(mapping, Path):
            return read_text(str(mapping))
        if not isinstance(mapping, str):
            kind = type(mapping).__name__
            raise UsageError(f"--map {word}: expected the text of a mapping, or a file, not {kind}")
        return mapping

    def _value(self, word: str, files: bool = True) -> Any:
        """Return the value of a variable, or of an attribute of one; else the path of a file."""
        first, *rest = word.split(".")
        is_file = files and Path(word).exists()
        if first in self.names:
            value = self.names[first]
            for attribute in rest:
                if not hasattr(value, attribute):
                    if is_file:
                        return Path(word)
                    raise UsageError(f"{word}: {first} has no attribute {attribute}")
                value = getattr(value, attribute)
            return value
        if is_file:
            return Path(word)
        hidden = self.shell.user_ns_hidden
        known = [name for name in self.names if not name.startswith("_") and name not in hidden]
        close = difflib.get_close_matches(word, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UsageError(f"unknown variable{' or file' * files} {word}{hint}")


# -- completion ------------------------------------------------------------------------------------


def completions(
    parser: argparse.ArgumentParser, line: str, symbol: str, names: Mapping[str, Any]
) -> list[str]:
    """Return the completions of the last word of a line: options, their values, or variables.

    >>> parser = _query_parser()
    >>> completions(parser, "%%streamsparql --dia", "--dia", {})
    ['--dialect']
    >>> completions(parser, "%%streamsparql --dialect c", "c", {"cars": 1})
    ['csparql', 'cqels']
    >>> completions(parser, "%%streamsparql stops --streams w", "w", {"wind": 1, "x": 2})
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
