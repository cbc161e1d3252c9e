"""The functions of SPARQL 1.1 expressions, by name (section 17.4).

All of them are strict: they see terms, never an error, and raise ExpressionError where they have no
value. The forms that are not strict (BOUND, IF, COALESCE, EXISTS, `||`, `&&`, `!`, IN) belong to
the expressions. What a function needs beside its arguments is in `Run`; nothing here is random, and
nothing reads a clock, so that a row which is evaluated twice gives the same answer twice.

    >>> wind_park = Literal("wind park", language="en")
    >>> print(FUNCTIONS["STRAFTER"].apply(Run(), wind_park, Literal(" ")))
    "park"@en
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache, partial
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from streamsparql.algebra.terms import (
    FALSE,
    IRI,
    RDF_LANG_STRING,
    TRUE,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    boolean,
    integer,
)
from streamsparql.algebra.values import (
    CAST_TARGETS,
    NUMBERS,
    Date,
    DateTime,
    DayTimeDuration,
    ExpressionError,
    Moment,
    Time,
    Value,
    add,
    cast,
    date_time_literal,
    divide,
    equal,
    half_up,
    less,
    literal_of,
    multiply,
    negate,
    number_of,
    plus,
    subtract,
    value_of,
)

_EPOCH = date_time_literal(0)


@dataclass(frozen=True, slots=True)
class Run:
    """What is constant over a run: the value of NOW().

    >>> Run().now.lexical
    '1970-01-01T00:00:00Z'
    """

    now: Literal = _EPOCH


@dataclass(frozen=True, slots=True)
class Function:
    """A function of SPARQL: from `least` to `most` arguments (None: any number).

    `apply(run, *terms)` gives a term or raises ExpressionError; `apply(run, seed, *terms)` if it is
    one of VOLATILE.

    >>> FUNCTIONS["SUBSTR"].least, FUNCTIONS["SUBSTR"].most
    (2, 3)
    """

    name: str
    least: int
    most: int | None
    apply: Callable[..., Term]


FUNCTIONS: dict[str, Function] = {}
"""The strict functions and operators, by their name in upper case; unary minus is `u-`."""

VOLATILE: dict[str, Function] = {}
"""Functions that SPARQL wants fresh for each row: here they are functions of a seed that names the
call site and the row (SEMANTICS.md R16). BNODE of a string is one node per row wherever it is
called, so for it the seed names the row alone."""


def _builtin(
    name: str, *arity: int | None, table: dict[str, Function] = FUNCTIONS
) -> Callable[[Callable[..., Term]], Callable[..., Term]]:
    """Enters a function under a name, with its number of arguments, or the least and the most."""

    def enter(apply: Callable[..., Term]) -> Callable[..., Term]:
        table[name] = Function(name, arity[0] or 0, arity[-1], apply)
        return apply

    return enter


# -- Operators (17.3) ---------------------------------------------------------------------------


def _unary(operate: Callable[[Term], Term]) -> Callable[..., Term]:
    return lambda run, term: operate(term)


def _binary(operate: Callable[[Term, Term], Term]) -> Callable[..., Term]:
    return lambda run, a, b: operate(a, b)


def _relation(holds: Callable[[Term, Term], bool]) -> Callable[..., Term]:
    return lambda run, a, b: TRUE if holds(a, b) else FALSE


_RELATIONS: dict[str, Callable[[Term, Term], bool]] = {
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: less(a, b) or equal(a, b),
    ">=": lambda a, b: less(b, a) or equal(a, b),
    "SAMETERM": lambda a, b: a == b,
}
for _name, _holds in _RELATIONS.items():
    _builtin(_name, 2)(_relation(_holds))

for _name, _calculate in {"+": add, "-": subtract, "*": multiply, "/": divide}.items():
    _builtin(_name, 2)(_binary(_calculate))

_builtin("u-", 1)(_unary(negate))
_builtin("u+", 1)(_unary(plus))


# -- Terms (17.4.2) -----------------------------------------------------------------------------

_TESTS: dict[str, Callable[[Term], bool]] = {
    "ISIRI": lambda term: isinstance(term, IRI),
    "ISURI": lambda term: isinstance(term, IRI),
    "ISBLANK": lambda term: isinstance(term, BlankNode),
    "ISLITERAL": lambda term: isinstance(term, Literal),
    "ISNUMERIC": lambda term: type(value_of(term)) in NUMBERS,
}


def _test(holds: Callable[[Term], bool]) -> Callable[..., Term]:
    return lambda run, term: TRUE if holds(term) else FALSE


for _name, _is in _TESTS.items():
    _builtin(_name, 1)(_test(_is))


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError(f"{term} is not a literal")


def _string(term: Term) -> Literal:
    """A plain string or a language-tagged one, which is what 17.4.3.1.1 calls a string literal."""
    literal = _literal(term)
    if literal.language is None and literal.datatype != XSD_STRING:
        raise ExpressionError(f"{term} is not a string")
    return literal


def _simple(term: Term) -> str:
    """The text of a plain string, without a language."""
    literal = _literal(term)
    if literal.datatype != XSD_STRING:
        raise ExpressionError(f"{term} is not a string without a language tag")
    return literal.lexical


def text_of(term: Term) -> str:
    """STR of a term, as a Python string.

    >>> text_of(IRI("http://example.org/a"))
    'http://example.org/a'
    """
    if isinstance(term, BlankNode):
        raise ExpressionError("a blank node has no string")
    return term.value if isinstance(term, IRI) else term.lexical


_builtin("STR", 1)(lambda run, term: Literal(text_of(term)))
_builtin("LANG", 1)(lambda run, term: Literal(_literal(term).language or ""))
_builtin("DATATYPE", 1)(lambda run, term: _literal(term).datatype)

_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


@_builtin("IRI", 1, 2)
def _iri(run: Run, term: Term, base: Term = Literal("")) -> Term:
    """The translator gives the query's BASE as second argument, which no query can write."""
    if isinstance(term, IRI):
        return term
    value = resolve_iri(_simple(base), _simple(term))
    if _NOT_IN_IRIS.search(value):
        raise ExpressionError(f"{value} is not an IRI")
    return IRI(value)


@_builtin("STRDT", 2)
def _typed(run: Run, lexical: Term, datatype: Term) -> Term:
    if not isinstance(datatype, IRI) or datatype == RDF_LANG_STRING:
        raise ExpressionError(f"{datatype} is not a datatype of a literal without a language tag")
    return Literal(_simple(lexical), datatype)


_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


@_builtin("STRLANG", 2)
def _tagged(run: Run, lexical: Term, language: Term) -> Term:
    if not _LANGUAGE_TAG.fullmatch(_simple(language)):
        raise ExpressionError(f"{language} is not a language tag")
    return Literal(_simple(lexical), language=_simple(language))


# -- Strings (17.4.3) ---------------------------------------------------------------------------


def _like(model: Literal, text: str) -> Literal:
    return Literal(text, language=model.language)


def _compatible(first: Term, second: Term) -> tuple[Literal, str]:
    """The arguments of a function of two strings (17.4.3.1.2): the second has the language of the
    first, or none."""
    one, other = _string(first), _string(second)
    if other.language is not None and other.language != one.language:
        raise ExpressionError(f"{first} and {second} are of different languages")
    return one, other.lexical


def _contained(holds: Callable[[str, str], bool]) -> Callable[..., Term]:
    def apply(run: Run, text: Term, part: Term) -> Term:
        whole, sought = _compatible(text, part)
        return boolean(holds(whole.lexical, sought))

    return apply


_builtin("CONTAINS", 2)(_contained(str.__contains__))
_builtin("STRSTARTS", 2)(_contained(str.startswith))
_builtin("STRENDS", 2)(_contained(str.endswith))

_builtin("STRLEN", 1)(lambda run, text: integer(len(_string(text).lexical)))
_builtin("UCASE", 1)(lambda run, text: _like(_string(text), _string(text).lexical.upper()))
_builtin("LCASE", 1)(lambda run, text: _like(_string(text), _string(text).lexical.lower()))
_builtin("ENCODE_FOR_URI", 1)(lambda run, text: Literal(quote(_string(text).lexical, safe="")))


@_builtin("STRBEFORE", 2)
def _before(run: Run, text: Term, mark: Term) -> Term:
    whole, sought = _compatible(text, mark)
    at = whole.lexical.find(sought)
    return Literal("") if at < 0 else _like(whole, whole.lexical[:at])


@_builtin("STRAFTER", 2)
def _after(run: Run, text: Term, mark: Term) -> Term:
    whole, sought = _compatible(text, mark)
    at = whole.lexical.find(sought)
    return Literal("") if at < 0 else _like(whole, whole.lexical[at + len(sought) :])


@_builtin("CONCAT", 0, None)
def _concat(run: Run, *texts: Term) -> Term:
    strings = [_string(text) for text in texts]
    languages = {string.language for string in strings}
    language = languages.pop() if len(languages) == 1 else None
    return Literal("".join(string.lexical for string in strings), language=language)


@_builtin("SUBSTR", 2, 3)
def _substring(run: Run, text: Term, start: Term, length: Term | None = None) -> Term:
    """fn:substring: the characters at the positions p, from 1, with first <= p < end."""
    whole = _string(text)
    first = _position(start)
    end = math.inf if length is None else first + _position(length)
    size = len(whole.lexical)
    if not (first <= size and end > 1):  # also where one of them is NaN
        return _like(whole, "")
    return _like(whole, whole.lexical[int(max(first, 1)) - 1 : int(min(end, size + 1)) - 1])


def _position(term: Term) -> float:
    number: float = NUMBERS[float](number_of(term))
    return float(half_up(Decimal(number))) if math.isfinite(number) else number


@_builtin("LANGMATCHES", 2)
def _language_matches(run: Run, language: Term, wanted: Term) -> Term:
    """Basic filtering of RFC 4647, 3.3.1."""
    tag, range_ = _simple(language).lower(), _simple(wanted).lower()
    if range_ == "*":
        return boolean(tag != "")
    return boolean(tag == range_ or tag.startswith(range_ + "-"))


@_builtin("REGEX", 2, 3)
def _regex(run: Run, text: Term, pattern: Term, flags: Term | None = None) -> Term:
    compiled = _compiled(_simple(pattern), _simple(flags) if flags is not None else "")
    return boolean(compiled.search(_string(text).lexical) is not None)


@_builtin("REPLACE", 3, 4)
def _replace(
    run: Run, text: Term, pattern: Term, replacement: Term, flags: Term | None = None
) -> Term:
    whole, options = _string(text), _simple(flags) if flags is not None else ""
    compiled = _compiled(_simple(pattern), options)
    if compiled.search(""):
        raise ExpressionError(f"REPLACE with a pattern that matches nothing at all: {pattern}")
    literally = "q" in options
    written = _simple(replacement)
    parts = (written,) if literally else _replacement(written, compiled.groups)

    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)

    return _like(whole, compiled.sub(expand, whole.lexical))


_REPLACEMENT = re.compile(r"\\(?P<escaped>[\\$])|\$(?P<group>[0-9]{1,4})|(?P<text>[^\\$]+)")


@lru_cache(maxsize=256)
def _replacement(written: str, groups: int) -> tuple[str | int, ...]:
    """A replacement as texts and group numbers (F&O 5.6.4, fn:replace)."""
    parts: list[str | int] = []
    at = 0
    while at < len(written):
        token = _REPLACEMENT.match(written, at)
        if token is None:
            raise ExpressionError(f"\\ or $ stands for itself in the replacement {written}")
        at = token.end()
        if token["group"] is None:
            parts.append(token["escaped"] or token["text"])
            continue
        digits = token["group"]
        while len(digits) > 1 and int(digits) > groups:  # $12 with one group: group 1, then "2"
            digits, at = digits[:-1], at - 1
        parts.append(int(digits) if int(digits) <= groups else "")
    return tuple(parts)


# -- Regular expressions (F&O 5.6.1, XSD 1.1 part 2, G) -----------------------------------------
#
# XPath's language is translated token by token. Python's `\d`, `\s`, `\w`, `$` and `\1` mean other
# things, so every set of characters is written out as its ranges, and every anchor as a condition.

_FLAGS = frozenset("smixq")

_CHAR = r"\\[nrt\\|.?*+(){}$\-\[\]^]"
_SET = r"\\[sSiIcCdDwW]|\\[pP]\{[A-Za-z0-9-]+\}"
_TOKEN = re.compile(
    rf"(?P<escape>{_SET})|(?P<char>{_CHAR}|[^.\\?*+{{}}()|\[\]^$])|(?P<dot>\.)|(?P<anchor>[\^$])"
    r"|(?P<reference>\\[1-9][0-9]{0,3})|(?P<group>\((?:\?:)?)|(?P<close>\))|(?P<branch>\|)"
    r"|(?P<quantifier>(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??)|(?P<bracket>\[\^?)"
)
_MEMBER = re.compile(
    rf"(?P<escape>{_SET})|(?P<range>(?P<low>{_CHAR}|[^\\\[\]-])-(?P<high>{_CHAR}|[^\\\[\]-]))"
    rf"|(?P<char>{_CHAR}|[^\\\[\]-])|(?P<minus>-(?=\[))|(?P<hyphen>-)|(?P<end>\])"
)
_CONTROLS = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    if not _FLAGS.issuperset(flags):
        raise ExpressionError(f"the flags of a regular expression are s, m, i, x, q, not {flags}")
    case = re.IGNORECASE if "i" in flags else re.NOFLAG
    try:
        if "q" in flags:
            return re.compile(re.escape(pattern), case)
        readable = _without_space(pattern) if "x" in flags else pattern
        return re.compile(_Translation(readable, flags).text(), case)
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError(f"{pattern} is not a regular expression: {error}") from error


def _without_space(pattern: str) -> str:
    """Flag x: white space is no part of the pattern, but for that inside a character class."""
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
    """One pattern on its way to Python. A method per kind of token gives what it becomes."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern, self.flags, self.at = pattern, flags, 0
        self.groups, self.unclosed, self.closed = 0, list[int](), set[int]()

    def text(self) -> str:
        """The whole pattern, as Python has it."""
        parts, previous = [], "branch"
        while self.at < len(self.pattern):
            token = self.next(_TOKEN)
            kind = token.lastgroup or ""
            if kind == "quantifier" and previous in ("group", "branch", "quantifier"):
                raise self.wrong("a quantifier with nothing before it")
            parts.append(getattr(self, kind)(token[0]))
            previous = kind
        return "".join(parts)

    def next(self, tokens: re.Pattern[str]) -> re.Match[str]:
        token = tokens.match(self.pattern, self.at)
        if token is None:
            raise self.wrong("no such construct")
        self.at = token.end()
        return token

    def wrong(self, what: str) -> ExpressionError:
        return ExpressionError(f"{self.pattern} is not a regular expression: {what} at {self.at}")

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
            raise self.wrong("no group to close")
        self.closed.add(self.unclosed.pop())
        return text

    def branch(self, text: str) -> str:
        return text

    def quantifier(self, text: str) -> str:
        return text

    def reference(self, text: str) -> str:
        """A group without a match is empty; before the twelfth group, `\\12` is `\\1` and a 2."""
        number = text[1:]
        while len(number) > 1 and int(number) > self.groups:
            number, self.at = number[:-1], self.at - 1
        if int(number) not in self.closed:
            raise self.wrong("a reference to a group that is not complete")
        return r"(?(int)\int)".replace("int", number)

    def escape(self, text: str) -> str:
        return self.one_of("", _written(_character_set(text)), negated=False)

    def bracket(self, text: str) -> str:
        """A character class expression, after its bracket: [a-z], [^\\s], [a-z-[aeiou]]."""
        first, characters, sets, without = self.at, "", "", ""
        while (token := self.next(_MEMBER)).lastgroup != "end":
            match token.lastgroup:
                case "escape":
                    sets += _written(_character_set(token[0]))
                case "range":
                    characters += _written([(_code(token["low"]), _code(token["high"]))])
                case "char" | "hyphen":
                    last = self.pattern.startswith(("]", "-["), self.at)
                    if token[0] == "-" and token.start() != first and not last:
                        raise self.wrong("a hyphen that makes no range")
                    characters += _written([(_code(token[0]), _code(token[0]))])
                case "minus":
                    without = self.bracket(self.next(_TOKEN)[0])
                    if not self.pattern.startswith("]", self.at):
                        raise self.wrong("something after a subtraction")
        if not characters and not sets:
            raise self.wrong("an empty class")
        found = self.one_of(characters, sets, negated=text == "[^")
        return f"(?:(?!{without}){found})" if without else found

    def one_of(self, characters: str, sets: str, negated: bool) -> str:
        """One character. Flag i holds for those written out, not for sets such as \\p{Lu}."""
        if "i" not in self.flags or not sets:
            return f"[{'^' if negated else ''}{characters}{sets}]"
        either = f"(?-i:[{sets}])" + (f"|[{characters}]" if characters else "")
        return rf"(?:(?!{either})[\s\S])" if negated else f"(?:{either})"


Ranges = list[tuple[int, int]]


def _code(char: str) -> int:
    return ord(_CONTROLS.get(char, char[-1]))


def _written(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


@cache
def _character_set(escape: str) -> Ranges:
    """The characters of `\\d`, `\\p{Lu}`, ...; a capital letter is the complement."""
    letter = escape[1]
    name = escape[3:-1] if letter in "pP" else escape.lower()
    found = _named_sets().get(name)
    if found is None:
        raise ExpressionError(f"no set of characters is called {name}")
    return _complement(found) if letter.isupper() else found


def _complement(ranges: Ranges) -> Ranges:
    """What lies between ranges that are in order."""
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
    """General categories and blocks as `\\p` names them, and `\\s`, `\\d`, `\\w`, `\\i`, `\\c`."""
    found = defaultdict[str, Ranges](list)
    everything = range(sys.maxunicode + 1)
    for category, run in groupby(everything, lambda code: unicodedata.category(chr(code))):
        codes = list(run)
        for name in (category, category[0]):
            found[name].append((codes[0], codes[-1]))
    sets = {name: _union(ranges) for name, ranges in found.items()}
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


# NameStartChar, and what NameChar adds to it (XML 1.0, 2.3).
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
"""The blocks of XSD 1.0 (part 2, F.1.1) in the basic plane; Python knows no block names."""


# -- Numbers (17.4.4) ---------------------------------------------------------------------------


def _to_whole(whole: Callable[[Decimal], int]) -> Callable[..., Term]:
    """Rounds a number to a whole one of the same type. A double keeps its sign: -0.4 is -0."""

    def apply(run: Run, term: Term) -> Term:
        number = number_of(term)
        if isinstance(number, float):
            if not math.isfinite(number):
                return literal_of(number)
            return literal_of(type(number)(math.copysign(whole(Decimal(number)), number)))
        rounded = whole(Decimal(number))
        return literal_of(rounded if isinstance(number, int) else Decimal(rounded))

    return apply


_builtin("ROUND", 1)(_to_whole(half_up))
_builtin("CEIL", 1)(_to_whole(math.ceil))
_builtin("FLOOR", 1)(_to_whole(math.floor))


@_builtin("ABS", 1)
def _absolute(run: Run, term: Term) -> Term:
    number = number_of(term)
    positive = number.copy_abs() if isinstance(number, Decimal) else type(number)(abs(number))
    return literal_of(positive)


# -- Dates and times (17.4.5), on the types that F&O 9.5 gives them ------------------------------


def _offset_of(moment: Moment) -> DayTimeDuration:
    if moment.offset is None:
        raise ExpressionError("there is no time zone")
    return DayTimeDuration(0, Decimal(60 * moment.offset))


_DATED, _TIMED, _ZONED = (DateTime, Date), (DateTime, Time), (DateTime, Date, Time)
_COMPONENTS: dict[str, tuple[tuple[type, ...], Callable[[Moment], Value]]] = {
    "YEAR": (_DATED, lambda moment: moment.calendar[0]),
    "MONTH": (_DATED, lambda moment: moment.calendar[1]),
    "DAY": (_DATED, lambda moment: moment.calendar[2]),
    "HOURS": (_TIMED, lambda moment: moment.clock[0]),
    "MINUTES": (_TIMED, lambda moment: moment.clock[1]),
    "SECONDS": (_TIMED, lambda moment: moment.clock[2]),
    "TIMEZONE": (_ZONED, _offset_of),
    "TZ": (_ZONED, lambda moment: moment.zone),
}


def _component(kinds: tuple[type, ...], read: Callable[[Moment], Value]) -> Callable[..., Term]:
    def apply(run: Run, term: Term) -> Term:
        value = value_of(term)
        if isinstance(value, Moment) and type(value) in kinds:
            return literal_of(read(value))
        raise ExpressionError(f"{term} has no such component")

    return apply


for _name, _definition in _COMPONENTS.items():
    _builtin(_name, 1)(_component(*_definition))

_builtin("NOW", 0)(lambda run: run.now)


# -- Hashes (17.4.6) ----------------------------------------------------------------------------


def _hash(algorithm: str, run: Run, text: Term) -> Term:
    return Literal(hashlib.new(algorithm, _simple(text).encode()).hexdigest())


for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _builtin(_name, 1)(partial(_hash, _name))


# -- Volatile functions (R16) -------------------------------------------------------------------


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _uuid(seed: str) -> UUID:
    return UUID(bytes=_digest("UUID", seed)[:16], version=4)


@_builtin("RAND", 0, table=VOLATILE)
def _rand(run: Run, seed: str) -> Term:
    """One of the 2**53 doubles that are evenly spaced in [0, 1)."""
    return literal_of(int.from_bytes(_digest("RAND", seed)[:8], "big") // 2**11 / 2**53)


_builtin("UUID", 0, table=VOLATILE)(lambda run, seed: IRI(_uuid(seed).urn))
_builtin("STRUUID", 0, table=VOLATILE)(lambda run, seed: Literal(str(_uuid(seed))))


@_builtin("BNODE", 0, 1, table=VOLATILE)
def _blank_node(run: Run, seed: str, label: Term | None = None) -> Term:
    given = [] if label is None else [_simple(label)]
    return BlankNode("b" + _digest("BNODE", seed, *given).hex()[:32])


# -- Casts (17.5) -------------------------------------------------------------------------------


def _cast_to(datatype: IRI) -> Function:
    return Function(datatype.value, 1, 1, lambda run, term: cast(term, datatype))


_CASTS = {datatype: _cast_to(datatype) for datatype in CAST_TARGETS}


def cast_function(iri: IRI) -> Function | None:
    """The constructor function that an IRI names; None if it names none.

    >>> cast_function(XSD_STRING).most, cast_function(IRI("http://example.org/f"))
    (1, None)
    """
    return _CASTS.get(iri)


# -- Relative IRIs (RFC 3986, 5.2) --------------------------------------------------------------


class _Reference(NamedTuple):
    """An IRI reference in its five parts. A part that is None is absent, which "" is not."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    def __str__(self) -> str:
        scheme = "" if self.scheme is None else self.scheme + ":"
        authority = "" if self.authority is None else "//" + self.authority
        query = "" if self.query is None else "?" + self.query
        fragment = "" if self.fragment is None else "#" + self.fragment
        return scheme + authority + self.path + query + fragment


_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def _parts(reference: str) -> _Reference:
    match = _PARTS.fullmatch(reference)
    assert match is not None, "every text is a reference"
    return _Reference(*match.groups())


def resolve_iri(base: str, relative: str) -> str:
    """A reference resolved against a base IRI. With no base it stays as it is.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g#s")
    'http://a/b/g#s'
    """
    if not base:
        return relative
    start, given = _parts(base), _parts(relative)
    if given.scheme is not None:
        return relative  # SPARQL 1.1 section 4.1.1.2 resolves relative IRIs, and leaves others be
    path = _without_dots(given.path)
    if given.authority is not None:
        return str(given._replace(scheme=start.scheme, path=path))
    if not given.path:
        query = start.query if given.query is None else given.query
        return str(start._replace(query=query, fragment=given.fragment))
    if not given.path.startswith("/"):
        path = _without_dots(_merged(start, given.path))
    return str(given._replace(scheme=start.scheme, authority=start.authority, path=path))


def _merged(base: _Reference, path: str) -> str:
    if base.authority is not None and not base.path:
        return "/" + path
    return base.path[: base.path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    path = re.sub(r"^(?:\.\.?/)+|^\.\.?$", "", path)
    segments = re.findall(r"/[^/]*|^[^/]+", path)
    kept: list[str] = []
    for segment in segments:
        if segment == "/..":
            del kept[-1:]
        elif segment != "/.":
            kept.append(segment)
    if segments and segments[-1] in ("/.", "/.."):
        kept.append("/")
    return "".join(kept)
