"""The LALR(1) parser: it runs the table of `parse_table`, which is generated from the grammar.

lark computes the table (`grammar/make_parse_table.py`) but does not run it, for three reasons. A
first query is parsed in tens of milliseconds instead of half a second, as lark's contextual lexer
compiles one scanner per parser state. Parsing does not recurse. And a failure has the unexpected
token and the terminals that are valid there, for the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from streamsparql.errors import QueryError, Span
from streamsparql.limits import active_meter
from streamsparql.translator import parse_table
from streamsparql.translator.lexer import END, Lexer, Token

MAX_NESTING = 500
"""The maximum number of parentheses, braces and brackets that are open at a place of a query.

Passes over the syntax tree and over plans recurse only as deep as a query nests; they loop over
text that is long but not nested (chains of UNION, OPTIONAL, `||`, `+`, ..).
"""

_OPENED = {"LBRACE": 1, "LPAR": 1, "LSQB": 1, "RBRACE": -1, "RPAR": -1, "RSQB": -1}


class ParseFailure(Exception):
    """The parser cannot continue at `token` (type "" where no terminal matches the text there)."""

    def __init__(self, token: Token, expected: frozenset[str]) -> None:
        super().__init__(f"unexpected {token.text!r}")
        self.token, self.expected = token, expected


class GrammarRule(NamedTuple):
    """A rule of the grammar, as the parser needs it.

    `callback` names the method that builds its value: "" splices the children into the parent, a
    ">" before the name passes a single child through. `kept` are the parts that are children.
    """

    origin: int
    callback: str
    length: int
    kept: tuple[int, ...]


class ParseTable:
    """The parse table, whose rows are decoded when the parser first reaches their state.

    `actions[state]` has the action for each terminal: to shift to a state (>= 0), or to reduce by
    the rule of number ~n (< 0). `gotos[state]` has the next state for each nonterminal.
    """

    start = 0

    def __init__(self) -> None:
        self.end = parse_table.END_STATE
        self.rules = [_grammar_rule(row) for row in _rows(parse_table.GRAMMAR_RULES)]
        self.words = parse_table.WORDS
        self.written = parse_table.WRITTEN
        self.actions: Mapping[int, Mapping[str, int]] = _Decoded(self._decoded_actions)
        self.gotos: Mapping[int, Mapping[int, int]] = _Decoded(self._decoded_gotos)
        self._terminals = parse_table.TERMINALS.split()
        self._states = _rows(parse_table.STATES)
        self._shifts = _rows(parse_table.SHIFTS)
        self._lookaheads = _rows(parse_table.LOOKAHEADS)
        self._goto_rows = _rows(parse_table.GOTOS)

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self._states)

    def _decoded_actions(self, state: int) -> dict[str, int]:
        shifts, _, *reductions = map(int, self._states[state].split())
        names, pairs = self._terminals, iter(map(int, self._shifts[shifts].split()))
        actions = {names[terminal]: target for terminal, target in zip(pairs, pairs, strict=True)}
        for rule, lookahead in zip(reductions[::2], reductions[1::2], strict=True):
            row = self._lookaheads[lookahead].split()
            actions.update(dict.fromkeys([names[int(terminal)] for terminal in row], ~rule))
        return actions

    def _decoded_gotos(self, state: int) -> dict[int, int]:
        row = self._goto_rows[int(self._states[state].split()[1])]
        pairs = iter(map(int, row.split()))
        return dict(zip(pairs, pairs, strict=True))

    @cache  # noqa: B019 -- a table lives as long as the process
    def lexer(self, *, ascii_only: bool) -> Lexer:
        """Return the lexer for ASCII texts, or for all texts."""
        order = tuple(parse_table.TERMINAL_ORDER.split())
        return Lexer(self.words, parse_table.PATTERNS, order, ascii_only=ascii_only)

    def acceptable(self, states: list[int]) -> frozenset[str]:
        """Return the terminals that the parser can shift next, perhaps after reductions."""
        return frozenset(name for name in self.actions[states[-1]] if self._accepts(states, name))

    def _accepts(self, states: list[int], terminal: str) -> bool:
        states = states.copy()
        while (action := self.actions[states[-1]].get(terminal)) is not None:
            if action >= 0:
                return True
            rule = self.rules[~action]
            if rule.length:
                del states[-rule.length :]
            states.append(self.gotos[states[-1]][rule.origin])
            if terminal == END and states[-1] == self.end:
                return True
        return False


class _Decoded(dict[int, Any]):
    """Rows by state, decoded when they are first read."""

    def __init__(self, decode: Callable[[int], Any]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, state: int) -> Any:
        self[state] = row = self._decode(state)
        return row


def _rows(text: str) -> list[str]:
    return text.split(";")


def _grammar_rule(row: str) -> GrammarRule:
    origin, parts, *callback = row.split()
    mask = "" if parts == "-" else parts
    kept = tuple(index for index, mark in enumerate(mask) if mark == "x")
    return GrammarRule(int(origin), callback[0] if callback else "", len(mask), kept)


@cache
def load_table() -> ParseTable:
    """Return the table of the whole language."""
    return ParseTable()


Callback = Callable[..., Any]


def parse_text(table: ParseTable, text: str, callbacks: Mapping[str, Callback]) -> Any:
    """Parse a text; a reduction calls `callbacks[name](span, *children)`.

    Children are the values of the rule's parts, without the terminals that only mark a place
    (keywords and punctuation written out in a rule). Raises `ParseFailure`, and `QueryError` where
    the text nests deeper than `MAX_NESTING`.
    """
    lexer = table.lexer(ascii_only=text.isascii())
    actions, gotos, rules = table.actions, table.gotos, table.rules
    states, values, spans = [table.start], [], []
    nesting, meter = 0, active_meter()
    token = lexer.token(text, 0, actions[table.start])
    while True:
        action = actions[states[-1]].get(token.type)
        if action is None:
            raise ParseFailure(token, table.acceptable(states))
        if action >= 0:
            if token.type in _OPENED:
                nesting += _OPENED[token.type]
                if nesting > MAX_NESTING:
                    raise _too_deep(token)
            states.append(action)
            values.append(token)
            spans.append((token.start, token.end))
            if meter is not None:
                meter.check()
            token = lexer.token(text, token.end, actions[action])
            continue
        rule = rules[~action]
        n = rule.length
        if n:
            span, parts = (spans[-n][0], spans[-1][1]), values[-n:]
            del states[-n:], values[-n:], spans[-n:]
        else:
            span, parts = (token.start, token.start), []
        values.append(_reduce(rule, parts, span, callbacks))
        spans.append(span)
        states.append(gotos[states[-1]][rule.origin])
        if token.type == END and states[-1] == table.end:
            return values[0]


def _too_deep(token: Token) -> QueryError:
    return QueryError(
        f"brackets nest deeper than {MAX_NESTING} levels",
        token.span,
        hint="write chains without brackets: {..} UNION {..} UNION {..}, ?a || ?b || ?c",
    )


class _Splice(list[Any]):
    """The children of a rule that has no value of its own."""


def _reduce(
    rule: GrammarRule, parts: list[Any], span: tuple[int, int], callbacks: Mapping[str, Callback]
) -> Any:
    children = _Splice()
    for index in rule.kept:
        part = parts[index]
        if type(part) is not _Splice:
            children.append(part)
        elif children:
            children.extend(part)
        else:
            children = part  # extended in place, so that a list of n items is built in O(n)
    name = rule.callback
    if not name:
        return children
    if name[0] == ">":
        if len(children) == 1:
            return children[0]
        name = name[1:]
    return callbacks[name](Span(*span), *children)
