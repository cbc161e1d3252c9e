"""The functions of SPARQL 1.1 expressions, by name (section 17.4).

They are strict: arguments are terms, never errors, and a function raises ExpressionError where it
has no value. The forms that are not strict (BOUND, IF, COALESCE, EXISTS, `||`, `&&`, `!`, IN) are
in `expressions`. `Run` has the input of functions besides their arguments. No function is random or
reads a clock: evaluating a row again returns the same term.

    >>> wind_park = Literal("wind park", language="en")
    >>> print(FUNCTIONS["STRAFTER"].apply(Run(), wind_park, Literal(" ")))
    "park"@en
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from streamsparql.algebra.expression_error import ExpressionError
from streamsparql.algebra.iri import resolve_iri
from streamsparql.algebra.terms import (
    FALSE,
    IRI,
    RDF_LANG_STRING,
    TRUE,
    XSD,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    boolean,
    integer,
)
from streamsparql.algebra.xsd.casts import CAST_TARGETS, cast
from streamsparql.algebra.xsd.durations import DayTimeDuration
from streamsparql.algebra.xsd.literal_operators import (
    add,
    divide,
    equal,
    less,
    multiply,
    negate,
    subtract,
    unary_plus,
)
from streamsparql.algebra.xsd.moments import Date, DateTime, Time, XsdMoment
from streamsparql.algebra.xsd.numeric import NUMERIC_TYPES, round_half_up
from streamsparql.algebra.xsd.regex import regex_matches, replace_matches
from streamsparql.algebra.xsd.values import XsdValue, literal_of, numeric_value, value_of
from streamsparql.limits import check_string

_EMPTY = Literal("")
_EPOCH = Literal("1970-01-01T00:00:00Z", IRI(XSD + "dateTime"))


class Run(NamedTuple):
    """The constants of a run: the value of NOW().

    >>> Run().now.lexical
    '1970-01-01T00:00:00Z'
    """

    now: Literal = _EPOCH


class Function(NamedTuple):
    """A function of SPARQL with `least` to `most` arguments (None: no upper bound).

    `apply(run, *terms)` returns a term or raises ExpressionError. The functions of `VOLATILE` take
    a seed: `apply(run, seed, *terms)`.

    >>> FUNCTIONS["SUBSTR"].least, FUNCTIONS["SUBSTR"].most
    (2, 3)
    """

    name: str
    least: int
    most: int | None
    apply: Callable[..., Term]


FUNCTIONS: dict[str, Function] = {}
"""The strict functions and operators, by name in upper case; unary minus is `u-`."""

VOLATILE: dict[str, Function] = {}
"""The functions that SPARQL defines to return a new value per row, by name. Here they are functions
of a seed that identifies the call site and the row (SEMANTICS.md R16). BNODE of a string returns
one node per row wherever it is called, so its seed identifies the row alone."""


def _builtin(
    name: str, *arity: int | None, table: dict[str, Function] = FUNCTIONS
) -> Callable[[Callable[..., Term]], Callable[..., Term]]:
    """Register a function by name, with its number of arguments or its bounds."""

    def register(apply: Callable[..., Term]) -> Callable[..., Term]:
        table[name] = Function(name, arity[0] or 0, arity[-1], apply)
        return apply

    return register


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
_builtin("u+", 1)(_unary(unary_plus))


# -- Terms (17.4.2) -----------------------------------------------------------------------------

_TESTS: dict[str, Callable[[Term], bool]] = {
    "ISIRI": lambda term: isinstance(term, IRI),
    "ISURI": lambda term: isinstance(term, IRI),
    "ISBLANK": lambda term: isinstance(term, BlankNode),
    "ISLITERAL": lambda term: isinstance(term, Literal),
    "ISNUMERIC": lambda term: type(value_of(term)) in NUMERIC_TYPES,
}


def _test(holds: Callable[[Term], bool]) -> Callable[..., Term]:
    return lambda run, term: TRUE if holds(term) else FALSE


for _name, _is in _TESTS.items():
    _builtin(_name, 1)(_test(_is))


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError(f"{term} is not a literal")


def _string_literal(term: Term) -> Literal:
    """Return a string literal (17.4.3.1.1), plain or language-tagged; raise for other terms."""
    literal = _literal(term)
    if literal.language is None and literal.datatype != XSD_STRING:
        raise ExpressionError(f"{term} is not a string")
    return literal


def _plain_text(term: Term) -> str:
    """Return the text of a plain string; raise for other terms."""
    literal = _literal(term)
    if literal.datatype != XSD_STRING:
        raise ExpressionError(f"{term} is not a string without a language tag")
    return literal.lexical


def string_value(term: Term) -> str:
    """Return STR of a term as a Python string.

    >>> string_value(IRI("http://example.org/a"))
    'http://example.org/a'
    """
    if isinstance(term, BlankNode):
        raise ExpressionError("STR is not defined for a blank node")
    return term.value if isinstance(term, IRI) else term.lexical


_builtin("STR", 1)(lambda run, term: Literal(string_value(term)))
_builtin("LANG", 1)(lambda run, term: Literal(_literal(term).language or ""))
_builtin("DATATYPE", 1)(lambda run, term: _literal(term).datatype)

_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


@_builtin("IRI", 1, 2)
def _iri(run: Run, term: Term, base: Term = _EMPTY) -> Term:
    """Resolve an IRI against the query's BASE, which the translator passes as second argument."""
    if isinstance(term, IRI):
        return term
    value = resolve_iri(_plain_text(base), _plain_text(term))
    if _NOT_IN_IRIS.search(value):
        raise ExpressionError(f"not a valid IRI: {value}")
    return IRI(value)


@_builtin("STRDT", 2)
def _typed(run: Run, lexical: Term, datatype: Term) -> Term:
    if not isinstance(datatype, IRI) or datatype == RDF_LANG_STRING:
        raise ExpressionError(f"STRDT does not accept the datatype {datatype}")
    return Literal(_plain_text(lexical), datatype)


_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


@_builtin("STRLANG", 2)
def _tagged(run: Run, lexical: Term, language: Term) -> Term:
    if not _LANGUAGE_TAG.fullmatch(_plain_text(language)):
        raise ExpressionError(f"not a valid language tag: {language}")
    return Literal(_plain_text(lexical), language=_plain_text(language))


# -- Strings (17.4.3) ---------------------------------------------------------------------------


def _with_language(model: Literal, text: str) -> Literal:
    check_string(len(text))
    return Literal(text, language=model.language)


def _compatible(first: Term, second: Term) -> tuple[Literal, str]:
    """Return two compatible strings, the second as its text (17.4.3.1.2).

    The second must have no language tag, or that of the first.
    """
    one, other = _string_literal(first), _string_literal(second)
    if other.language is not None and other.language != one.language:
        raise ExpressionError(f"{first} and {second} have different language tags")
    return one, other.lexical


def _substring_test(holds: Callable[[str, str], bool]) -> Callable[..., Term]:
    def apply(run: Run, text: Term, part: Term) -> Term:
        whole, substring = _compatible(text, part)
        return boolean(holds(whole.lexical, substring))

    return apply


_builtin("CONTAINS", 2)(_substring_test(str.__contains__))
_builtin("STRSTARTS", 2)(_substring_test(str.startswith))
_builtin("STRENDS", 2)(_substring_test(str.endswith))

_builtin("STRLEN", 1)(lambda run, text: integer(len(_string_literal(text).lexical)))
_builtin("UCASE", 1)(
    lambda run, text: _with_language(_string_literal(text), _string_literal(text).lexical.upper())
)
_builtin("LCASE", 1)(
    lambda run, text: _with_language(_string_literal(text), _string_literal(text).lexical.lower())
)


@_builtin("ENCODE_FOR_URI", 1)
def _encoded(run: Run, text: Term) -> Term:
    from urllib.parse import quote

    quoted = quote(_utf8(_string_literal(text).lexical), safe="")
    check_string(len(quoted))
    return Literal(quoted)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(f"unpaired surrogate in {text!r}: not valid in UTF-8") from error


@_builtin("STRBEFORE", 2)
def _before(run: Run, text: Term, mark: Term) -> Term:
    whole, mark_text = _compatible(text, mark)
    at = whole.lexical.find(mark_text)
    return Literal("") if at < 0 else _with_language(whole, whole.lexical[:at])


@_builtin("STRAFTER", 2)
def _after(run: Run, text: Term, mark: Term) -> Term:
    whole, mark_text = _compatible(text, mark)
    at = whole.lexical.find(mark_text)
    return Literal("") if at < 0 else _with_language(whole, whole.lexical[at + len(mark_text) :])


@_builtin("CONCAT", 0, None)
def _concat(run: Run, *texts: Term) -> Term:
    strings = [_string_literal(text) for text in texts]
    languages = {string.language for string in strings}
    language = languages.pop() if len(languages) == 1 else None
    check_string(sum(len(string.lexical) for string in strings))
    return Literal("".join(string.lexical for string in strings), language=language)


@_builtin("SUBSTR", 2, 3)
def _substring(run: Run, text: Term, start: Term, length: Term | None = None) -> Term:
    """Return the characters at positions first <= p < end, counted from 1 (fn:substring)."""
    whole = _string_literal(text)
    first = _position(start)
    end = math.inf if length is None else first + _position(length)
    size = len(whole.lexical)
    if not (first <= size and end > 1):  # true also if one of them is NaN
        return _with_language(whole, "")
    low, high = int(max(first, 1)) - 1, int(min(end, size + 1)) - 1
    return _with_language(whole, whole.lexical[low:high])


def _position(term: Term) -> float:
    number: float = NUMERIC_TYPES[float](numeric_value(term))
    return float(round_half_up(Decimal(number))) if math.isfinite(number) else number


@_builtin("LANGMATCHES", 2)
def _language_matches(run: Run, language: Term, language_range: Term) -> Term:
    """Match a language range by basic filtering (RFC 4647, 3.3.1)."""
    tag, range_ = _plain_text(language).lower(), _plain_text(language_range).lower()
    if range_ == "*":
        return boolean(tag != "")
    return boolean(tag == range_ or tag.startswith(range_ + "-"))


@_builtin("REGEX", 2, 3)
def _regex(run: Run, text: Term, pattern: Term, flags: Term = _EMPTY) -> Term:
    return boolean(
        regex_matches(_string_literal(text).lexical, _plain_text(pattern), _plain_text(flags))
    )


@_builtin("REPLACE", 3, 4)
def _replace(run: Run, text: Term, pattern: Term, replacement: Term, flags: Term = _EMPTY) -> Term:
    whole = _string_literal(text)
    replaced = replace_matches(
        whole.lexical, _plain_text(pattern), _plain_text(replacement), _plain_text(flags)
    )
    return _with_language(whole, replaced)


# -- Numbers (17.4.4) ---------------------------------------------------------------------------


def _to_whole(whole: Callable[[Decimal], int]) -> Callable[..., Term]:
    """Return a function that rounds to a whole number of the same type; -0.4e0 becomes -0e0."""

    def apply(run: Run, term: Term) -> Term:
        number = numeric_value(term)
        if isinstance(number, float):
            if not math.isfinite(number):
                return literal_of(number)
            return literal_of(type(number)(math.copysign(whole(Decimal(number)), number)))
        rounded = whole(Decimal(number))
        return literal_of(rounded if isinstance(number, int) else Decimal(rounded))

    return apply


_builtin("ROUND", 1)(_to_whole(round_half_up))
_builtin("CEIL", 1)(_to_whole(math.ceil))
_builtin("FLOOR", 1)(_to_whole(math.floor))


@_builtin("ABS", 1)
def _absolute(run: Run, term: Term) -> Term:
    number = numeric_value(term)
    positive = number.copy_abs() if isinstance(number, Decimal) else type(number)(abs(number))
    return literal_of(positive)


# -- Dates and times (17.4.5), for the types of F&O 9.5 -------------------------------------------


def _offset_of(moment: XsdMoment) -> DayTimeDuration:
    if moment.offset is None:
        raise ExpressionError("TIMEZONE needs a value with a time zone")
    return DayTimeDuration(0, Decimal(60 * moment.offset))


_DATED, _TIMED, _ZONED = (DateTime, Date), (DateTime, Time), (DateTime, Date, Time)
_COMPONENTS: dict[str, tuple[tuple[type, ...], Callable[[XsdMoment], XsdValue]]] = {
    "YEAR": (_DATED, lambda moment: moment.calendar[0]),
    "MONTH": (_DATED, lambda moment: moment.calendar[1]),
    "DAY": (_DATED, lambda moment: moment.calendar[2]),
    "HOURS": (_TIMED, lambda moment: moment.clock[0]),
    "MINUTES": (_TIMED, lambda moment: moment.clock[1]),
    "SECONDS": (_TIMED, lambda moment: moment.clock[2]),
    "TIMEZONE": (_ZONED, _offset_of),
    "TZ": (_ZONED, lambda moment: moment.zone),
}


def _component(
    kinds: tuple[type, ...], read: Callable[[XsdMoment], XsdValue]
) -> Callable[..., Term]:
    def apply(run: Run, term: Term) -> Term:
        value = value_of(term)
        if isinstance(value, XsdMoment) and type(value) in kinds:
            return literal_of(read(value))
        raise ExpressionError(f"{term} has the wrong type for this date or time function")

    return apply


for _name, _definition in _COMPONENTS.items():
    _builtin(_name, 1)(_component(*_definition))

_builtin("NOW", 0)(lambda run: run.now)


# -- Hashes (17.4.6) ----------------------------------------------------------------------------


def _hash(algorithm: str, run: Run, text: Term) -> Term:
    return Literal(hashlib.new(algorithm, _utf8(_plain_text(text))).hexdigest())


for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _builtin(_name, 1)(partial(_hash, _name))


# -- Volatile functions (R16) -------------------------------------------------------------------


def _digest(*parts: str) -> bytes:
    # The bytes only identify the parts, so unpaired surrogates may pass.
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def _uuid(seed: str) -> str:
    from uuid import UUID

    return str(UUID(bytes=_digest("UUID", seed)[:16], version=4))


@_builtin("RAND", 0, table=VOLATILE)
def _rand(run: Run, seed: str) -> Term:
    """Return one of 2**53 evenly spaced doubles in [0, 1)."""
    return literal_of(int.from_bytes(_digest("RAND", seed)[:8], "big") // 2**11 / 2**53)


_builtin("UUID", 0, table=VOLATILE)(lambda run, seed: IRI("urn:uuid:" + _uuid(seed)))
_builtin("STRUUID", 0, table=VOLATILE)(lambda run, seed: Literal(_uuid(seed)))


@_builtin("BNODE", 0, 1, table=VOLATILE)
def _blank_node(run: Run, seed: str, label: Term | None = None) -> Term:
    labels = [] if label is None else [_plain_text(label)]
    return BlankNode("b" + _digest("BNODE", seed, *labels).hex()[:32])


# -- Casts (17.5) -------------------------------------------------------------------------------


def _cast_to(datatype: IRI) -> Function:
    return Function(datatype.value, 1, 1, lambda run, term: cast(term, datatype))


_CASTS = {datatype: _cast_to(datatype) for datatype in CAST_TARGETS}


def cast_function(iri: IRI) -> Function | None:
    """Return the constructor function of an IRI; None if the IRI is not a cast.

    >>> cast_function(XSD_STRING).most, cast_function(IRI("http://example.org/f"))
    (1, None)
    """
    return _CASTS.get(iri)
