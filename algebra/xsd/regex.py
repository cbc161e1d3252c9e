r"""Regular expressions of XPath (F&O 5.6), matched in a time that is linear in the text.

Python's `re` is fastest, but backtracks: `(a+)+$` takes exponential time. It is used for texts that
are so short that it takes few steps, whatever their content; this length follows from the pattern.
Longer texts are matched by an automaton.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.xsd.character_sets import class_text
from streamsparql.algebra.xsd.regex_automaton import Automaton
from streamsparql.algebra.xsd.regex_syntax import (
    Anchor,
    BackReference,
    Branch,
    Branches,
    Group,
    OneOf,
    Pattern,
    Repeat,
    parse_regex,
)
from streamsparql.limits import check_string

MAX_RE_STEPS = 1_000_000
"""The number of steps that Python's `re` may take for one text: some milliseconds."""


def regex_matches(text: str, pattern: str, flags: str = "") -> bool:
    r"""Return whether a pattern matches somewhere in a text (fn:matches).

    >>> regex_matches("abc", "^a.c$"), regex_matches("_", r"\w")
    (True, False)
    """
    return _compiled(pattern, flags).matches(text)


def replace_matches(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    """Replace each match of a pattern in a text (fn:replace).

    >>> replace_matches("abracadabra", "a(.)", "a$1$1")
    'abbraccaddabbra'
    """
    compiled = _compiled(pattern, flags)
    if compiled.matches(""):
        raise ExpressionError(f"the pattern of REPLACE must not match the empty string: {pattern}")
    literal = "q" in flags
    parts = (replacement,) if literal else _parse_replacement(replacement, compiled.groups)

    size = 0

    def expand(groups: Sequence[str]) -> str:
        nonlocal size
        size += sum(len(part) if isinstance(part, str) else len(groups[part]) for part in parts)
        check_string(size)
        return "".join(part if isinstance(part, str) else groups[part] for part in parts)

    return compiled.replace(text, expand)


_REPLACEMENT = r"\\(?P<escaped>[\\$])|\$(?P<group>[0-9]{1,4})|(?P<text>[^\\$]+)"


@lru_cache(maxsize=256)
def _parse_replacement(written: str, groups: int) -> tuple[str | int, ...]:
    """Parse a replacement to strings and group numbers (F&O 5.6.4, fn:replace)."""
    parts: list[str | int] = []
    at = 0
    while at < len(written):
        token = re.compile(_REPLACEMENT).match(written, at)
        if token is None:
            raise ExpressionError(f"unescaped \\ or $ in the replacement {written}")
        at = token.end()
        if token["group"] is None:
            parts.append(token["escaped"] or token["text"])
            continue
        digits = token["group"]
        while len(digits) > 1 and int(digits) > groups:  # $12 with one group: group 1, then "2"
            digits, at = digits[:-1], at - 1
        parts.append(int(digits) if int(digits) <= groups else "")
    return tuple(parts)


@lru_cache(maxsize=256)
def _compiled(pattern: str, flags: str) -> _Regex:
    try:
        return _Regex(*parse_regex(pattern, flags))
    except RecursionError as error:
        raise ExpressionError(f"not a valid regular expression: {pattern} ({error})") from error


class _Regex:
    """A parsed pattern, with its automaton and, at first use, Python's form of it."""

    def __init__(self, tree: Pattern, groups: int) -> None:
        self.groups = groups
        self._tree, self._automaton = tree, Automaton(tree, groups)
        self._python: re.Pattern[str] | None = None
        starts = 0 if self._automaton.anchored else 1

        def is_expensive(size: int) -> bool:
            return _effort(tree, size, last=True).steps * (size * starts + 1) > MAX_RE_STEPS

        self._longest = bisect_left(_SIZES, True, key=is_expensive) - 1
        """The length of the longest text for which `re` takes few steps."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches somewhere in a text."""
        if len(text) > self._longest:
            return self._automaton.search(text)
        return self._translated().search(text) is not None

    def replace(self, text: str, expand: Callable[[Sequence[str]], str]) -> str:
        """Replace each match; `expand` receives its text and those of its groups."""
        if len(text) > self._longest:
            return self._automaton.replace(text, expand)
        return self._translated().sub(lambda match: expand((match[0], *match.groups(""))), text)

    def _translated(self) -> re.Pattern[str]:
        if self._python is None:
            self._python = re.compile(_python_text(self._tree))
        return self._python


_SIZES = range(1 << 24)


class _Effort(NamedTuple):
    """Bounds of what `re` does with a pattern at one place of a text."""

    ways: float
    """The number of ways in which it matches."""
    steps: float
    """The number of steps in which all of them are tried."""
    shortest: int
    """The length of the shortest match."""


def _effort(pattern: Pattern, size: int, last: bool) -> _Effort:
    """Return the effort over texts of a size.

    What is `last` in the pattern is not tried in another way once it matched, so a repetition there
    counts only as what it needs at least.
    """
    match pattern:
        case OneOf():
            return _Effort(1, 1, 1)
        case Anchor():
            return _Effort(1, 1, 0)
        case BackReference():
            return _Effort(1, size + 1, 0)
        case Group(_, body):
            return _effort(body, size, last)
        case Branch(parts):
            whole = _Effort(1, 1, 0)
            for k, part in enumerate(parts, 1):
                more = _effort(part, size, last and k == len(parts))
                steps = whole.steps + whole.ways * more.steps
                whole = _Effort(whole.ways * more.ways, steps, whole.shortest + more.shortest)
            return whole
        case Branches(options):
            efforts = [_effort(option, size, last) for option in options]
            return _Effort(
                sum(each.ways for each in efforts),
                sum(each.steps + 1 for each in efforts),
                min(each.shortest for each in efforts),
            )
        case Repeat(OneOf(), least, _, False) if last:
            return _Effort(1, least + 1, least)
        case Repeat(body, least, most, _):
            each = _effort(body, size, last=False)
            most = size + 1 if most is None else min(most, size + 1)
            if most > 1 and not each.shortest:
                return _NEVER  # `re` and the automaton may differ in groups of empty iterations
            return _repeated(each, least, most)


def _repeated(each: _Effort, least: int, most: int) -> _Effort:
    """Return the effort of a repetition: each iteration multiplies the ways."""
    shortest = least * each.shortest
    if each.ways == 1:
        count = max(most - least, 0) + 1
        return _Effort(count, each.steps * max(most, least) + count, shortest)
    if math.log2(each.ways) * most > 64:
        return _NEVER
    ways = sum(each.ways**k for k in range(most + 1))
    return _Effort(ways, ways * each.steps, shortest)


_NEVER = _Effort(math.inf, math.inf, 0)


def _python_text(pattern: Pattern) -> str:
    """Return a pattern in Python's syntax."""
    match pattern:
        case OneOf(ranges):
            return class_text(ranges)
        case Anchor("^", lines):
            return r"(?:\A|(?<=\n)(?!\Z))" if lines else r"(?:\A)"
        case Anchor(_, lines):
            return r"(?:\Z|(?=\n))" if lines else r"(?:\Z)"
        case BackReference(number, ignore_case):  # to a group that did not match: empty
            reference = rf"(?({number})\{number})"
            return f"(?i:{reference})" if ignore_case else reference
        case Group(number, body):
            return f"({'' if number else '?:'}{_python_text(body)})"
        case Branch(parts):
            return "".join(map(_python_text, parts))
        case Branches(options):
            return "|".join(map(_python_text, options))
        case Repeat(body, least, most, lazy):
            bounds = f"{{{least},{'' if most is None else most}}}"
            return f"{_python_text(body)}{bounds}{'?' if lazy else ''}"
