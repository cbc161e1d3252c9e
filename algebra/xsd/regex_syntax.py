r"""The syntax of XPath's regular expressions (F&O 5.6.1; XSD 1.1 part 2, G), parsed to a tree.

Python's `\d`, `\s`, `\w`, `$` and `\1` have other meanings, so each set of characters is resolved
to its ranges here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.xsd.character_sets import (
    Ranges,
    character_set,
    complement,
    union,
    with_case_variants,
    without,
)

FLAGS = frozenset("smixq")
MAX_DEPTH = 100
"""The number of groups that may be nested."""
MAX_REPEAT = 1 << 31


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The condition `^` or `$`; with flag m, of a line."""

    kind: str
    lines: bool


@dataclass(frozen=True, slots=True)
class BackReference:
    """The text that a group matched; nothing if it did not match."""

    group: int
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A pattern in parentheses; number 0 does not capture what it matches."""

    number: int
    body: Pattern


@dataclass(frozen=True, slots=True)
class Branch:
    """Patterns one after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """Alternatives; the first that leads to a match is preferred."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A pattern `least` to `most` times (None: any number), as often as possible unless lazy."""

    body: Pattern
    least: int
    most: int | None
    lazy: bool


Pattern: TypeAlias = OneOf | Anchor | BackReference | Group | Branch | Branches | Repeat

_CHAR = r"\\[nrt\\|.?*+(){}$\-\[\]^]"
_SET = r"\\[sSiIcCdDwW]|\\[pP]\{[A-Za-z0-9-]+\}"
_TOKEN = (
    rf"(?P<escape>{_SET})|(?P<char>{_CHAR}|[^.\\?*+{{}}()|\[\]^$])|(?P<dot>\.)|(?P<anchor>[\^$])"
    r"|(?P<reference>\\[1-9][0-9]{0,3})|(?P<group>\((?:\?:)?)|(?P<close>\))|(?P<branch>\|)"
    r"|(?P<quantifier>(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??)|(?P<bracket>\[\^?)"
)
_MEMBER = (
    rf"(?P<escape>{_SET})|(?P<range>(?P<low>{_CHAR}|[^\\\[\]-])-(?P<high>{_CHAR}|[^\\\[\]-]))"
    rf"|(?P<char>{_CHAR}|[^\\\[\]-])|(?P<minus>-(?=\[))|(?P<hyphen>-)|(?P<end>\])"
)
_CONTROLS = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


def parse_regex(pattern: str, flags: str) -> tuple[Pattern, int]:
    """Parse a pattern; return also the number of its groups."""
    if not FLAGS.issuperset(flags):
        raise ExpressionError(
            f"unknown flags of a regular expression: {flags}; expected s, m, i, x, q"
        )
    if "q" not in flags:
        return _Parser(_without_space(pattern) if "x" in flags else pattern, flags).parse()
    parts = [_cased([(ord(char), ord(char))], flags) for char in pattern]
    return Branch(tuple(OneOf(tuple(ranges)) for ranges in parts)), 0


def _without_space(pattern: str) -> str:
    """Remove white space outside character classes (flag x)."""
    kept, depth, escaped = [], 0, False
    for char in pattern:
        if depth == 0 and char in " \t\n\r":
            continue
        if not escaped:
            depth += (char == "[") - (char == "]")
        escaped = char == "\\" and not escaped
        kept.append(char)
    return "".join(kept)


def _cased(ranges: Ranges, flags: str) -> Ranges:
    return with_case_variants(ranges) if "i" in flags else ranges


def _code_point(char: str) -> int:
    return ord(_CONTROLS.get(char, char[-1]))


class _Parser:
    """The parser of one pattern, with a method for each kind of atom."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern, self.flags, self.at = pattern, flags, 0
        self.groups, self.closed = 0, set[int]()

    def parse(self) -> tuple[Pattern, int]:
        """Parse the whole pattern."""
        tree = self.branches(0)
        if self.at < len(self.pattern):
            raise self.invalid("an unmatched closing parenthesis")
        return tree, self.groups

    def branches(self, depth: int) -> Pattern:
        """Parse alternatives, up to the end of the pattern or before a closing parenthesis."""
        options: list[Pattern] = []
        parts: list[Pattern] = []
        quantified = True  # there is nothing to quantify
        while self.at < len(self.pattern):
            token = self.next(_TOKEN)
            kind = token.lastgroup or ""
            if kind == "close":
                self.at -= 1
                break
            if kind == "branch":
                options.append(_branch(parts))
                parts, quantified = [], True
            elif kind == "quantifier":
                if quantified:
                    raise self.invalid("a quantifier without an operand")
                parts[-1] = self.quantifier(parts[-1], token[0])
                quantified = True
            else:
                parts.append(self.atom(kind, token[0], depth))
                quantified = False
        options.append(_branch(parts))
        return options[0] if len(options) == 1 else Branches(tuple(options))

    def atom(self, kind: str, text: str, depth: int) -> Pattern:
        match kind:
            case "group":
                return self.group(text, depth)
            case "anchor":
                return Anchor(text, "m" in self.flags)
            case "reference":
                return self.reference(text)
            case "dot":
                return OneOf(tuple(complement([] if "s" in self.flags else [(10, 10)])))
            case "escape":
                return OneOf(tuple(character_set(text)))
            case "bracket":
                return OneOf(tuple(self.bracket(text)))
        code = _code_point(text)
        return OneOf(tuple(_cased([(code, code)], self.flags)))

    def next(self, tokens: str) -> re.Match[str]:
        token = re.compile(tokens).match(self.pattern, self.at)
        if token is None:
            raise self.invalid("an unknown construct")
        self.at = token.end()
        return token

    def invalid(self, what: str) -> ExpressionError:
        reason = f"{what} at {self.at}"
        return ExpressionError(f"not a valid regular expression: {self.pattern} ({reason})")

    def group(self, text: str, depth: int) -> Group:
        if depth == MAX_DEPTH:
            raise self.invalid(f"more than {MAX_DEPTH} nested groups")
        number = 0
        if text == "(":
            self.groups += 1
            number = self.groups
        body = self.branches(depth + 1)
        if self.at == len(self.pattern):
            raise self.invalid("a missing closing parenthesis")
        self.at += 1
        self.closed.add(number)
        return Group(number, body)

    def quantifier(self, body: Pattern, text: str) -> Repeat:
        lazy = len(text) > 1 and text.endswith("?")
        bounds = text.removesuffix("?") if lazy else text
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(bounds, (0, 0))
        if bounds.startswith("{"):
            first, comma, last = bounds[1:-1].partition(",")
            least = self.count(first)
            most = least if not comma else self.count(last) if last else None
        if most is not None and most < least:
            raise self.invalid("a quantifier whose bounds are exchanged")
        return Repeat(body, least, most, lazy)

    def count(self, digits: str) -> int:
        if len(digits) > 10 or int(digits) >= MAX_REPEAT:
            raise self.invalid("a number that is too large")
        return int(digits)

    def reference(self, text: str) -> Pattern:
        """Parse a back-reference; `\\12` is `\\1` and a 2 if there are fewer than 12 groups."""
        number = text[1:]
        while len(number) > 1 and int(number) > self.groups:
            number, self.at = number[:-1], self.at - 1
        if int(number) not in self.closed:
            raise self.invalid("a reference to an incomplete group")
        return BackReference(int(number), "i" in self.flags)

    def bracket(self, text: str) -> Ranges:
        """Parse a character class after its bracket: [a-z], [^\\s], [a-z-[aeiou]].

        Flag i applies to listed characters, not to sets such as \\p{Lu}.
        """
        first, sets, minus = self.at, Ranges(), Ranges()
        characters: Ranges = []
        while (token := self.next(_MEMBER)).lastgroup != "end":
            match token.lastgroup:
                case "escape":
                    sets += character_set(token[0])
                case "range":
                    low, high = _code_point(token["low"]), _code_point(token["high"])
                    if low > high:
                        raise self.invalid("a range whose ends are exchanged")
                    characters.append((low, high))
                case "char" | "hyphen":
                    last = self.pattern.startswith(("]", "-["), self.at)
                    if token[0] == "-" and token.start() != first and not last:
                        raise self.invalid("a hyphen outside a range")
                    characters.append((_code_point(token[0]), _code_point(token[0])))
                case "minus":
                    minus = self.bracket(self.next(_TOKEN)[0])
                    if not self.pattern.startswith("]", self.at):
                        raise self.invalid("an unexpected character after a subtraction")
        if not characters and not sets:
            raise self.invalid("an empty class")
        included = union(_cased(union(characters), self.flags), sets)
        if text == "[^":
            included = complement(included)
        return without(included, minus) if minus else included


def _branch(parts: list[Pattern]) -> Pattern:
    return parts[0] if len(parts) == 1 else Branch(tuple(parts))
