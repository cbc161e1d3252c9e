r"""Regular expressions of XPath, translated to Python's (F&O 5.6; XSD 1.1 part 2, G).

The translation is token by token. Python's `\d`, `\s`, `\w`, `$` and `\1` have other meanings, so
each character set is written as its ranges, and each anchor as a lookaround condition.

The translator's own patterns and Unicode tables are computed at first use, since most queries do
not need them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache
from itertools import groupby

from streamsparql.algebra.expression_error import ExpressionError


def regex_matches(text: str, pattern: str, flags: str = "") -> bool:
    r"""Return whether a pattern matches somewhere in a text (fn:matches).

    >>> regex_matches("abc", "^a.c$"), regex_matches("_", r"\w")
    (True, False)
    """
    return _compiled(pattern, flags).search(text) is not None


def replace_matches(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    """Replace each match of a pattern in a text (fn:replace).

    >>> replace_matches("abracadabra", "a(.)", "a$1$1")
    'abbraccaddabbra'
    """
    compiled = _compiled(pattern, flags)
    if compiled.search(""):
        raise ExpressionError(f"the pattern of REPLACE must not match the empty string: {pattern}")
    literal = "q" in flags
    parts = (replacement,) if literal else _parse_replacement(replacement, compiled.groups)

    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)

    return compiled.sub(expand, text)


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


# -- Patterns -----------------------------------------------------------------------------------

_FLAGS = frozenset("smixq")

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


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    if not _FLAGS.issuperset(flags):
        raise ExpressionError(
            f"unknown flags of a regular expression: {flags}; expected s, m, i, x, q"
        )
    case = re.IGNORECASE if "i" in flags else re.NOFLAG
    try:
        if "q" in flags:
            return re.compile(re.escape(pattern), case)
        compact = _without_space(pattern) if "x" in flags else pattern
        return re.compile(_Translation(compact, flags).text(), case)
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError(f"not a valid regular expression: {pattern} ({error})") from error


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


class _Translation:
    """The translation of one pattern, with a method for each kind of token."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern, self.flags, self.at = pattern, flags, 0
        self.groups, self.unclosed, self.closed = 0, list[int](), set[int]()

    def text(self) -> str:
        """Return the whole pattern in Python's syntax."""
        parts, previous = [], "branch"
        while self.at < len(self.pattern):
            token = self.next(_TOKEN)
            kind = token.lastgroup or ""
            if kind == "quantifier" and previous in ("group", "branch", "quantifier"):
                raise self.invalid("a quantifier without an operand")
            parts.append(getattr(self, kind)(token[0]))
            previous = kind
        return "".join(parts)

    def next(self, tokens: str) -> re.Match[str]:
        token = re.compile(tokens).match(self.pattern, self.at)
        if token is None:
            raise self.invalid("an unknown construct")
        self.at = token.end()
        return token

    def invalid(self, what: str) -> ExpressionError:
        reason = f"{what} at {self.at}"
        return ExpressionError(f"not a valid regular expression: {self.pattern} ({reason})")

    def char(self, text: str) -> str:
        return re.escape(_CONTROLS.get(text, text[-1]))

    def dot(self, text: str) -> str:
        return r"[\s\S]" if "s" in self.flags else r"[^\n]"

    def anchor(self, text: str) -> str:
        if "m" not in self.flags:
            return r"(?:\A)" if text == "^" else r"(?:\Z)"
        return r"(?:\A|(?<=\n)(?!\Z))" if text == "^" else r"(?:\Z|(?=\n))"

    def group(self, text: str) -> str:
        if text == "(":
            self.groups += 1
        self.unclosed.append(self.groups if text == "(" else 0)
        return text

    def close(self, text: str) -> str:
        if not self.unclosed:
            raise self.invalid("an unmatched closing parenthesis")
        self.closed.add(self.unclosed.pop())
        return text

    def branch(self, text: str) -> str:
        return text

    def quantifier(self, text: str) -> str:
        return text

    def reference(self, text: str) -> str:
        """Translate a back-reference; `\\12` is `\\1` and a 2 if there are fewer than 12 groups.

        A reference to a group that did not match matches the empty string.
        """
        number = text[1:]
        while len(number) > 1 and int(number) > self.groups:
            number, self.at = number[:-1], self.at - 1
        if int(number) not in self.closed:
            raise self.invalid("a reference to an incomplete group")
        return r"(?(int)\int)".replace("int", number)

    def escape(self, text: str) -> str:
        return self.one_of("", _range_text(_character_set(text)), negated=False)

    def bracket(self, text: str) -> str:
        """Translate a character class after its bracket: [a-z], [^\\s], [a-z-[aeiou]]."""
        first, characters, sets, without = self.at, "", "", ""
        while (token := self.next(_MEMBER)).lastgroup != "end":
            match token.lastgroup:
                case "escape":
                    sets += _range_text(_character_set(token[0]))
                case "range":
                    characters += _range_text(
                        [(_code_point(token["low"]), _code_point(token["high"]))]
                    )
                case "char" | "hyphen":
                    last = self.pattern.startswith(("]", "-["), self.at)
                    if token[0] == "-" and token.start() != first and not last:
                        raise self.invalid("a hyphen outside a range")
                    characters += _range_text([(_code_point(token[0]), _code_point(token[0]))])
                case "minus":
                    without = self.bracket(self.next(_TOKEN)[0])
                    if not self.pattern.startswith("]", self.at):
                        raise self.invalid("an unexpected character after a subtraction")
        if not characters and not sets:
            raise self.invalid("an empty class")
        included = self.one_of(characters, sets, negated=text == "[^")
        return f"(?:(?!{without}){included})" if without else included

    def one_of(self, characters: str, sets: str, negated: bool) -> str:
        """Return a pattern of one character; flag i applies to `characters`, not to `sets`."""
        if "i" not in self.flags or not sets:
            return f"[{'^' if negated else ''}{characters}{sets}]"
        either = f"(?-i:[{sets}])" + (f"|[{characters}]" if characters else "")
        return rf"(?:(?!{either})[\s\S])" if negated else f"(?:{either})"


# -- Sets of characters -------------------------------------------------------------------------

Ranges = list[tuple[int, int]]


def _code_point(char: str) -> int:
    return ord(_CONTROLS.get(char, char[-1]))


def _range_text(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


@cache
def _character_set(escape: str) -> Ranges:
    """Return the characters of `\\d`, `\\p{Lu}`, ...; a capital letter denotes the complement."""
    letter = escape[1]
    name = escape[3:-1] if letter in "pP" else escape.lower()
    ranges = _named_sets().get(name)
    if ranges is None:
        raise ExpressionError(f"unknown character set {name}")
    return _complement(ranges) if letter.isupper() else ranges


def _complement(ranges: Ranges) -> Ranges:
    """Return the complement of sorted ranges."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), sys.maxunicode]
    return [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]


def _union(*sets: Ranges) -> Ranges:
    joined: Ranges = []
    for low, high in sorted(range_ for ranges in sets for range_ in ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


@cache
def _named_sets() -> dict[str, Ranges]:
    """Return categories and blocks by name in `\\p`, and `\\s`, `\\d`, `\\w`, `\\i`, `\\c`."""
    categories = defaultdict[str, Ranges](list)
    everything = range(sys.maxunicode + 1)
    for category, run in groupby(everything, lambda code: unicodedata.category(chr(code))):
        codes = list(run)
        for name in (category, category[0]):
            categories[name].append((codes[0], codes[-1]))
    sets = {name: _union(ranges) for name, ranges in categories.items()}
    for block in _BLOCKS.split():
        name, low, high = block.split(":")
        sets["Is" + name] = [(int(low, 16), int(high, 16))]
    return sets | {
        "\\s": [(0x9, 0xA), (0xD, 0xD), (0x20, 0x20)],
        "\\d": sets["Nd"],
        "\\w": _complement(_union(sets["P"], sets["Z"], sets["C"])),
        "\\i": _NAME_START,
        "\\c": _union(_NAME_START, _NAME_REST),
    }


# NameStartChar, and the additional characters of NameChar (XML 1.0, 2.3).
_NAME_START = [
    *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6)),
    *((0xF8, 0x2FF), (0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F)),
    *((0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
]
_NAME_REST = [
    (0x2D, 0x2E),
    (0x30, 0x39),
    (0xB7, 0xB7),
    (0x300, 0x36F),
    (0x203F, 0x2040),
]

_BLOCKS = """
BasicLatin:0:7F Latin-1Supplement:80:FF LatinExtended-A:100:17F LatinExtended-B:180:24F
IPAExtensions:250:2AF SpacingModifierLetters:2B0:2FF CombiningDiacriticalMarks:300:36F
Greek:370:3FF GreekandCoptic:370:3FF Cyrillic:400:4FF Armenian:530:58F Hebrew:590:5FF
Arabic:600:6FF Syriac:700:74F Thaana:780:7BF Devanagari:900:97F Bengali:980:9FF
Gurmukhi:A00:A7F Gujarati:A80:AFF Oriya:B00:B7F Tamil:B80:BFF Telugu:C00:C7F Kannada:C80:CFF
Malayalam:D00:D7F Sinhala:D80:DFF Thai:E00:E7F Lao:E80:EFF Tibetan:F00:FFF Myanmar:1000:109F
Georgian:10A0:10FF HangulJamo:1100:11FF Ethiopic:1200:137F Cherokee:13A0:13FF
UnifiedCanadianAboriginalSyllabics:1400:167F Ogham:1680:169F Runic:16A0:16FF Khmer:1780:17FF
Mongolian:1800:18AF LatinExtendedAdditional:1E00:1EFF GreekExtended:1F00:1FFF
GeneralPunctuation:2000:206F SuperscriptsandSubscripts:2070:209F CurrencySymbols:20A0:20CF
CombiningMarksforSymbols:20D0:20FF LetterlikeSymbols:2100:214F NumberForms:2150:218F
Arrows:2190:21FF MathematicalOperators:2200:22FF MiscellaneousTechnical:2300:23FF
ControlPictures:2400:243F OpticalCharacterRecognition:2440:245F EnclosedAlphanumerics:2460:24FF
BoxDrawing:2500:257F BlockElements:2580:259F GeometricShapes:25A0:25FF
MiscellaneousSymbols:2600:26FF Dingbats:2700:27BF BraillePatterns:2800:28FF
CJKRadicalsSupplement:2E80:2EFF KangxiRadicals:2F00:2FDF CJKSymbolsandPunctuation:3000:303F
Hiragana:3040:309F Katakana:30A0:30FF Bopomofo:3100:312F HangulCompatibilityJamo:3130:318F
Kanbun:3190:319F BopomofoExtended:31A0:31BF EnclosedCJKLettersandMonths:3200:32FF
CJKCompatibility:3300:33FF CJKUnifiedIdeographsExtensionA:3400:4DBF CJKUnifiedIdeographs:4E00:9FFF
YiSyllables:A000:A48F YiRadicals:A490:A4CF HangulSyllables:AC00:D7AF PrivateUse:E000:F8FF
CJKCompatibilityIdeographs:F900:FAFF AlphabeticPresentationForms:FB00:FB4F
ArabicPresentationForms-A:FB50:FDFF CombiningHalfMarks:FE20:FE2F CJKCompatibilityForms:FE30:FE4F
SmallFormVariants:FE50:FE6F ArabicPresentationForms-B:FE70:FEFF HalfwidthandFullwidthForms:FF00:FFEF
Specials:FFF0:FFFF
"""
"""The blocks of XSD 1.0 (part 2, F.1.1) in the basic plane; Python lacks block names."""
