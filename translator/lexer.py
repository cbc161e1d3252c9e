"""The lexer: the next token of a query's text, which depends on the terminals that are valid there.

It takes the longest match, as SPARQL 1.1 section 19.8 requires. A word is read whole: it is a
keyword only if the whole word matches. `CONTEXTUAL` terminals are tried only where the parser can
use them, which keeps `s`, `m` or `P1D` free as names elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from streamsparql.errors import Span

CONTEXTUAL = ("XSD_DURATION", "TIME_UNIT", "NAME")
"""Terminals that are tried only where the parser can use them."""

END = "$END"
"""The terminal at the end of the text."""

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The pattern of words, which include the keywords."""


class Token(NamedTuple):
    """A terminal with its text and its place."""

    type: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The characters that the token covers."""
        return Span(self.start, self.end)


class Lexer:
    """The terminals of the grammar as regular expressions.

    `words` are the keywords with the terminals that each can be, `patterns` the regular expressions
    of all other terminals, `order` the order in which these are tried. A lexer for ASCII texts only
    compiles much faster: its character classes are small.
    """

    def __init__(
        self,
        words: Mapping[str, tuple[str, ...]],
        patterns: Mapping[str, str],
        order: tuple[str, ...],
        *,
        ascii_only: bool,
    ) -> None:
        if ascii_only:
            ranges = re.compile(r"[^\x00-\x7f]-[^\x00-\x7f]")
            patterns = {name: ranges.sub("", pattern) for name, pattern in patterns.items()}
        self._words = words
        self._skipped = re.compile(patterns["WS"])
        self._contextual = {name: re.compile(patterns[name], re.A) for name in CONTEXTUAL}
        named = (f"(?P<{name}>{patterns[name]})" for name in order)
        self._master = re.compile("|".join([*named, f"(?P<WORD>{WORD.pattern})"]))

    def token(self, text: str, at: int, expected: Mapping[str, int]) -> Token:
        """Return the token at `at`; `expected` has the terminals that the parser can use there."""
        if skipped := self._skipped.match(text, at):
            at = skipped.end()
        if at == len(text):
            return Token(END, "", at, at)
        match = self._master.match(text, at)
        name, end = (match.lastgroup or "", match.end()) if match else ("", at)
        if name == "WORD":
            name = self._keyword(text[at:end], expected)
        elif name == "VAR":
            end = self._end_of_variable(text, at, end, expected)
        for other in CONTEXTUAL:
            if other in expected and (longer := self._contextual[other].match(text, at)):
                if longer.end() > end or name not in expected:
                    name, end = other, longer.end()
        return Token(name, text[at:end] or text[at], at, max(end, at + 1))

    def _end_of_variable(self, text: str, at: int, end: int, expected: Mapping[str, int]) -> int:
        """Return where a variable ends: in `?x-abs (?y)` the hyphen subtracts a function call."""
        hyphen = text.rfind("-", at, end)
        if (
            hyphen > 0
            and "FUNCTION_1" in expected
            and text[hyphen + 1 : end].upper() in self._words
        ):
            if re.compile(r"\s*\(").match(text, end):
                return hyphen
        return end

    def _keyword(self, word: str, expected: Mapping[str, int]) -> str:
        names = self._words.get(word) or self._words.get(word.upper()) or ("",)
        return next((name for name in names if name in expected), names[0])
