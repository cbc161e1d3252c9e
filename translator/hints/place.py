"""The place of an unexpected token, as the rules for hints read it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from streamsparql.translator.lalr_parser import ParseTable
from streamsparql.translator.lexer import END, Token

_READ = 500
"""The number of characters that rules read after a token, so that long texts do not take long."""

_OPENING = {"LBRACE": "RBRACE", "LPAR": "RPAR", "LSQB": "RSQB"}
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


@dataclass(frozen=True)
class Place:
    """An unexpected token, the text around it, and what the parser could use instead.

    `expected` are the terminals as labels for users; `calls` the terminals of functions, `iris`
    those of IRIs.
    """

    table: ParseTable
    text: str
    token: Token
    terminals: frozenset[str]
    expected: tuple[str, ...]
    calls: frozenset[str]
    iris: frozenset[str]

    @cached_property
    def before(self) -> list[Token]:
        """The tokens before the unexpected one."""
        lexer, at, tokens = self.table.lexer(ascii_only=self.text.isascii()), 0, list[Token]()
        while at < self.token.start:
            token = lexer.token(self.text, at, {})
            if token.type == END or token.end > self.token.start:
                break
            tokens.append(token)
            at = token.end
        return tokens

    @property
    def word(self) -> str:
        """The unexpected token in upper case."""
        return self.token.text.upper()

    @property
    def since(self) -> str:
        """The text from the token on, as far as rules read it."""
        return self.text[self.token.start : self.token.start + _READ]

    @property
    def after(self) -> str:
        """The text after the token, as far as rules read it."""
        return self.text[self.token.end : self.token.end + _READ]

    def last(self, back: int = 1) -> str:
        """Return the text of a token before this one in upper case; empty if there is none."""
        return self.last_text(back).upper()

    def last_text(self, back: int = 1) -> str:
        """Return the text of a token before this one, as it is written."""
        return self.before[-back].text if len(self.before) >= back else ""

    @property
    def is_word(self) -> bool:
        """Whether the token is a word: no variable, prefixed name or string."""
        return self.word[:1].isalpha() and not self.token.type.startswith("PNAME")

    @property
    def after_operand(self) -> bool:
        """Whether an operator can follow here."""
        return bool(self.terminals & {"DOUBLE_AMPERSAND", "SLASH"}) and "VAR" not in self.terminals

    @property
    def at_operand(self) -> bool:
        """Whether an expression can begin here."""
        return "FUNCTION_1" in self.terminals

    @property
    def arguments(self) -> list[str]:
        """The arguments of the call that the token names, if none of them has brackets."""
        match = re.match(r"\s*\(([^()]*)\)", self.after)
        return [part.strip() for part in match[1].split(",")] if match and match[1].strip() else []

    @cached_property
    def open_brackets(self) -> list[Token]:
        """The brackets before the token that are not closed."""
        opened: list[Token] = []
        for token in self.before:
            if token.type in _OPENING:
                opened.append(token)
            elif token.type in _OPENING.values() and opened:
                opened.pop()
        return opened

    @property
    def closing(self) -> str:
        """The terminal that closes the innermost open bracket; empty if none is open."""
        return _OPENING[self.open_brackets[-1].type] if self.open_brackets else ""

    @cached_property
    def clauses(self) -> list[str]:
        """The keywords of the clauses before the token, outside of brackets; WHERE for braces."""
        depth, words = 0, list[str]()
        for token in self.before:
            depth += (token.type in _OPENING) - (token.type in _OPENING.values())
            if depth == 0 and token.type == "RBRACE":
                words.append("WHERE")
            elif depth == 0 and token.text.upper() in _CLAUSES:
                words.append(token.text.upper())
        return words

    def later_clause(self, word: str) -> str:
        """Return a clause before the token that belongs after the clause of a keyword, if any."""
        if word not in _CLAUSES:
            return ""
        place = _CLAUSES.index(word)
        return next((name for name in self.clauses if _CLAUSES.index(name) > place), "")
