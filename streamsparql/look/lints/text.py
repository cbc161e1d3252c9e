"""Lints of the text of a query: clauses without effect, and constructs that are often mistaken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from streamsparql.algebra.access import AccessStream
from streamsparql.errors import Span
from streamsparql.look.lints.warning import LintWarning
from streamsparql.translator import syntax as s
from streamsparql.translator.translate import Translation


def foreign(translation: Translation) -> Iterator[LintWarning]:
    """Warn of constructs of another dialect."""
    title = translation.dialect.title
    for construct, owners, span in translation.foreign:
        titles = " and ".join(owner.title for owner in owners)
        message = f"{construct} belongs to {titles}; this is {title}"
        yield LintWarning("foreign", message, span, translation.text)


def unused_clauses(translation: Translation) -> Iterator[LintWarning]:
    """Warn of windows and streams that no pattern reads."""
    text = translation.text
    sources = translation.syntax.sources
    named = {id(source.window): source for source in sources if source.named and source.window}
    for clause in translation.unused_windows:
        hint = "the window of a group replaces that of FROM; static graphs have no windows"
        if source := named.get(id(clause)):
            name = (source.window_name or source.name).span.of(text)
            hint = f"only {_READS.get(source.kind, 'GRAPH')} {name} {{ .. }} reads a NAMED stream"
        message = "no pattern reads a stream through this window"
        yield LintWarning("unused-window", message, clause.span, text, hint)
    read = {node.stream for node in translation.plan.walk() if isinstance(node, AccessStream)}
    for stream in translation.dataset.streams.values():
        if stream.window is None and stream.clause is not None and stream.name not in read:
            message = f"no pattern reads the stream {stream.name}"
            yield LintWarning("unused-stream", message, stream.clause.span, text)


_READS = {"window": "WINDOW", "bracket": "GRAPH"}
"""The blocks that read the streams of a kind of FROM NAMED clause."""


def no_stream(translation: Translation) -> Iterator[LintWarning]:
    """Warn of a registered stream that has no triples."""
    register = translation.syntax.register
    if register is None or register.kind != "STREAM":
        return
    if translation.dialect.streams_carry_triples and translation.form in ("select", "ask"):
        yield LintWarning(
            "no-stream",
            "a stream consists of triples, which only CONSTRUCT and DESCRIBE return",
            register.span,
            translation.text,
            hint="write REGISTER QUERY, or CONSTRUCT the triples of the stream",
        )


def constant_now(translation: Translation) -> Iterator[LintWarning]:
    """Warn of NOW() in a continuous query."""
    nodes = translation.syntax.walk() if translation.streams else ()
    for node in nodes:
        if isinstance(node, s.OperatorCall) and node.op == "NOW":
            message = "NOW() is the start of the run, and the same in all results"
            yield LintWarning("now", message, node.span, translation.text)


def bare_durations(translation: Translation) -> Iterator[LintWarning]:
    """Warn of a number without a unit, if other durations of the query have units."""
    nodes = [node for node in translation.syntax.walk() if isinstance(node, s.DurationLiteral)]
    units = [node for node in nodes if node.unit is not None]
    for node in nodes:
        if node.unit is None and units:
            number, other = node.span.of(translation.text), units[0].span.of(translation.text)
            yield LintWarning(
                "bare-duration",
                f"{number} without a unit is {number} ms; another duration is {other}",
                node.span,
                translation.text,
                hint=f"write {number} MS, or {number} SECOND",
            )


def limit_per_instant(translation: Translation) -> Iterator[LintWarning]:
    """Warn of LIMIT without ORDER BY over a stream, which does not limit the rows of a run."""
    modifiers = translation.syntax.modifiers
    reported = translation.report.kind is not None or translation.syntax.register is not None
    if modifiers.limit is None or modifiers.order or reported or not translation.streams:
        return
    places = [*re.finditer(rf"LIMIT\s+0*{modifiers.limit}\b", translation.text, re.I)]
    yield LintWarning(
        "limit-per-instant",
        f"LIMIT {modifiers.limit} holds at each instant; the run may return more rows",
        Span(*places[-1].span()) if places else modifiers.span,
        translation.text,
        hint="ORDER BY makes it the first rows of each instant; read only the first rows of a run"
        " with | head, or itertools.islice",
    )


def empty_aggregates(translation: Translation) -> Iterator[LintWarning]:
    """Warn of SUM and AVG without groups, which are 0 while the window is empty."""
    form, modifiers = translation.syntax.form, translation.syntax.modifiers
    if not isinstance(form, s.SelectForm) or modifiers.group or modifiers.having:
        return
    items = [item for item in form.select.items if isinstance(item, s.SelectItem)]
    calls = [
        node
        for item in items
        if item.expression is not None
        for node in item.expression.walk_outside(s.ExistsCall)
        if isinstance(node, s.AggregateCall) and node.name in ("SUM", "AVG")
    ]
    if calls and translation.streams:
        yield LintWarning(
            "empty-aggregate",
            f"{calls[0].name} is 0 while the window is empty, as in SPARQL",
            calls[0].span,
            translation.text,
            hint="add HAVING(COUNT(*) > 0) for rows of windows that are not empty",
        )


def unknown_codes(translation: Translation) -> Iterator[LintWarning]:
    """Warn of comments that ignore a lint of an unknown name."""
    for comment in _IGNORE.finditer(translation.text):
        for word in re.finditer(r"[^\s,]+", comment[1]):
            if word[0] not in CODES:
                start = comment.start(1) + word.start()
                yield LintWarning(
                    "unknown-lint",
                    f"unknown lint {word[0]}",
                    Span(start, start + len(word[0])),
                    translation.text,
                    hint=f"the lints are {', '.join(CODES)}",
                )


_IGNORE = re.compile(r"#\s*lint:\s*ignore\b([^\n\r(]*)", re.I)
"""A comment that ignores lints; a remark in brackets may follow."""

CODES = (
    "bare-duration",
    "cartesian-product",
    "combined-readings",
    "counted-triples",
    "empty-aggregate",
    "foreign",
    "limit-per-instant",
    "missed-elements",
    "months-in-bound",
    "never-bound",
    "never-true",
    "no-schema",
    "no-stream",
    "now",
    "unbounded-state",
    "unused-stream",
    "unused-window",
)
"""The codes that a query can ignore."""


def ignored_codes(text: str) -> frozenset[str]:
    """Return the codes that comments of a query ignore; all of them if a comment names none.

    >>> sorted(ignored_codes("ASK {} # lint: ignore now, foreign (as in the paper)"))
    ['foreign', 'now']
    >>> ignored_codes("ASK {}")
    frozenset()
    """
    named = [re.findall(r"[^\s,]+", comment[1]) for comment in _IGNORE.finditer(text)]
    return frozenset(code for codes in named for code in codes or CODES)


TEXT_LINTS: tuple[Callable[[Translation], Iterator[LintWarning]], ...] = (
    foreign,
    unused_clauses,
    no_stream,
    constant_now,
    bare_durations,
    limit_per_instant,
    empty_aggregates,
    unknown_codes,
)
