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

_EMPTY = Literal("")
_EPOCH = Literal("1970-01-01T00:00:00Z", IRI(XSD + "dateTime"))


class Run(NamedTuple):
    """What is constant over a run: the value of NOW().

    >>> Run().now.lexical
    '1970-01-01T00:00:00Z'
    """

    now: Literal = _EPOCH


class Function(NamedTuple):
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


def string_value(term: Term) -> str:
    """STR of a term, as a Python string.

    >>> string_value(IRI("http://example.org/a"))
    'http://example.org/a'
    """
    if isinstance(term, BlankNode):
        raise ExpressionError("a blank node has no string")
    return term.value if isinstance(term, IRI) else term.lexical


_builtin("STR", 1)(lambda run, term: Literal(string_value(term)))
_builtin("LANG", 1)(lambda run, term: Literal(_literal(term).language or ""))
_builtin("DATATYPE", 1)(lambda run, term: _literal(term).datatype)

_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


@_builtin("IRI", 1, 2)
def _iri(run: Run, term: Term, base: Term = _EMPTY) -> Term:
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


@_builtin("ENCODE_FOR_URI", 1)
def _encoded(run: Run, text: Term) -> Term:
    from urllib.parse import quote

    return Literal(quote(_utf8(_string(text).lexical), safe=""))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(f"{text!r} holds half a surrogate pair: it has no UTF-8") from error


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
    number: float = NUMERIC_TYPES[float](numeric_value(term))
    return float(round_half_up(Decimal(number))) if math.isfinite(number) else number


@_builtin("LANGMATCHES", 2)
def _language_matches(run: Run, language: Term, wanted: Term) -> Term:
    """Basic filtering of RFC 4647, 3.3.1."""
    tag, range_ = _simple(language).lower(), _simple(wanted).lower()
    if range_ == "*":
        return boolean(tag != "")
    return boolean(tag == range_ or tag.startswith(range_ + "-"))


@_builtin("REGEX", 2, 3)
def _regex(run: Run, text: Term, pattern: Term, flags: Term = _EMPTY) -> Term:
    return boolean(regex_matches(_string(text).lexical, _simple(pattern), _simple(flags)))


@_builtin("REPLACE", 3, 4)
def _replace(run: Run, text: Term, pattern: Term, replacement: Term, flags: Term = _EMPTY) -> Term:
    whole = _string(text)
    made = replace_matches(whole.lexical, _simple(pattern), _simple(replacement), _simple(flags))
    return _like(whole, made)


# -- Numbers (17.4.4) ---------------------------------------------------------------------------


def _to_whole(whole: Callable[[Decimal], int]) -> Callable[..., Term]:
    """Rounds a number to a whole one of the same type. A double keeps its sign: -0.4 is -0."""

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


# -- Dates and times (17.4.5), on the types that F&O 9.5 gives them ------------------------------


def _offset_of(moment: XsdMoment) -> DayTimeDuration:
    if moment.offset is None:
        raise ExpressionError("there is no time zone")
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
        raise ExpressionError(f"{term} has no such component")

    return apply


for _name, _definition in _COMPONENTS.items():
    _builtin(_name, 1)(_component(*_definition))

_builtin("NOW", 0)(lambda run: run.now)


# -- Hashes (17.4.6) ----------------------------------------------------------------------------


def _hash(algorithm: str, run: Run, text: Term) -> Term:
    return Literal(hashlib.new(algorithm, _utf8(_simple(text))).hexdigest())


for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _builtin(_name, 1)(partial(_hash, _name))


# -- Volatile functions (R16) -------------------------------------------------------------------


def _digest(*parts: str) -> bytes:
    # Only a name for the parts, so half a surrogate pair may have its bytes too.
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def _uuid(seed: str) -> str:
    from uuid import UUID

    return str(UUID(bytes=_digest("UUID", seed)[:16], version=4))


@_builtin("RAND", 0, table=VOLATILE)
def _rand(run: Run, seed: str) -> Term:
    """One of the 2**53 doubles that are evenly spaced in [0, 1)."""
    return literal_of(int.from_bytes(_digest("RAND", seed)[:8], "big") // 2**11 / 2**53)


_builtin("UUID", 0, table=VOLATILE)(lambda run, seed: IRI("urn:uuid:" + _uuid(seed)))
_builtin("STRUUID", 0, table=VOLATILE)(lambda run, seed: Literal(_uuid(seed)))


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
