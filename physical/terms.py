"""The term dictionary: RDF terms as int64 ids, so that rows are arrays of numbers.

Id 0 is no term (unbound). A negative id is an inlined number (`numbers`). A positive id is an entry
of the dictionary: the place of the term's N-Triples text, with what is known of it in columns
beside. Equal ids mean the same term, always: a term has one text (`str(term)`), a text one entry.

Streams bring literals without end, so entries are recycled: `recycle` is told which ids are still
in use, forgets the other entries and gives their ids to new terms. What is asked of terms is asked
of whole arrays, and most of it is answered by columns; those of numbers are filled for what is
asked, when it is first asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import parse_term, unescape
from streamsparql.algebra.numeric import EXACT, Number, Single, double
from streamsparql.algebra.order import order_key
from streamsparql.algebra.terms import IRI, XSD_STRING, BlankNode, Literal, Term
from streamsparql.algebra.values import literal_of, value_of
from streamsparql.physical import numbers as inlined
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.numbers import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    NO_NUMBER,
    FloatArray,
    KindArray,
    Numbers,
    bools_of,
)

__all__ = [
    "BLANK",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "IRI_NODE",
    "LITERAL",
    "NO_NUMBER",
    "UNBOUND",
    "Numbers",
    "TermDictionary",
]

UNBOUND, IRI_NODE, BLANK, LITERAL = range(4)
"""The sorts of terms."""

_PLAIN, _TAGGED, _TYPED = 3, 4, 5
"""Beyond IRIs and blank nodes an entry's form tells the literals apart: strings, language-tagged
strings, and those of another datatype. It is what the text ends with."""

_UNKNOWN = -1  # of a kind: nobody has asked yet
_NOT_EXACT = -(1 << 63)
_SMALL = 128  # below so many texts a loop is faster than Arrow
_MILLION = 10**6

_STRING_END = f'"^^{XSD_STRING}'
# Characters that no IRI may hold as they are: those that str(term) escapes, and white space.
_NO_IRI = (
    r'\x00-\x20<>"{}|^`\\\x{85}\x{a0}\x{1680}'
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
# The texts that are just what str(term) writes: for Arrow, and for re with what a literal says.
_CLEAN = rf'^(?:<[^{_NO_IRI}]*>|"[^"\\\x00-\x1f]*"(?:@[a-z0-9-]+|\^\^<[^{_NO_IRI}]+>)?)$'

_CLEAN_ONE = re.compile(
    r"""<[^\x00-\x20<>"{}|^`\\\s]*>
      | "([^"\\\x00-\x1f]*)"(?:@[a-z0-9-]+|\^\^<(?:http://www\.w3\.org/2001/XMLSchema\#([A-Za-z]*)>
      |[^\x00-\x20<>"{}|^`\\\s]+>))?""",
    re.X,
)


class TermDictionary:
    """Terms by id, ids by term.

    >>> terms = TermDictionary()
    >>> ids = terms.encode(["<http://ex.org/a>", '"1.5"', "<http://ex.org/a>", "nonsense"])
    >>> ids.tolist(), len(terms)
    ([1, 2, 1, 0], 2)
    >>> print(terms.term_of(2), terms.texts(ids)[3])
    "1.5" None
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        """Entries by text, blank nodes apart: the text that comes in may mean another node."""
        self._blanks: dict[str, int] = {}
        """Blank nodes by label, the source a part of it."""
        self._spelled: dict[str, int] = {}
        """A bounded cache: other texts of entries, and texts of inlined literals."""
        self._free: IntArray = np.empty(0, np.int64)
        self._after = 1  # the least id that was never given
        self._floor = 0  # how many entries the last recycling left
        self._grow(1 << 10)

    def _grow(self, capacity: int) -> None:
        """Columns of so many places; place 0 stands for "no term"."""
        old = self.__dict__.get("_forms", np.zeros(1, np.int8))
        kept = len(old)

        def column(name: str, kind: Any, fill: Any) -> npt.NDArray[Any]:
            longer: npt.NDArray[Any] = np.full(capacity, fill, kind)
            if name in self.__dict__:
                longer[:kept] = self.__dict__[name]
            return longer

        self._texts = column("_texts", np.object_, None)
        self._terms = column("_terms", np.object_, None)
        self._values: FloatArray = column("_values", np.float64, 0.0)
        self._kinds: KindArray = column("_kinds", np.int8, NO_NUMBER)
        self._exact: IntArray = column("_exact", np.int64, _NOT_EXACT)
        self._kept: BoolArray = column("_kept", np.bool_, False)
        self._forms: KindArray = column("_forms", np.int8, UNBOUND)

    def __len__(self) -> int:
        """How many entries there are; inlined literals need none."""
        return self._after - 1 - len(self._free)

    # -- Terms to ids -----------------------------------------------------------------------

    def id_of(self, term: Term, keep: bool = False) -> int:
        """The id of a term. What is kept is never recycled: the constants of queries.

        >>> terms = TermDictionary()
        >>> terms.id_of(IRI("a")) == terms.id_of(IRI("a")), terms.id_of(Literal("b"))
        (True, 2)
        """
        if type(term) is BlankNode:
            found = self._blanks.get(term.label, 0) or self._enter(str(term), BLANK)
        else:
            found = inlined.literal_id(term) if type(term) is Literal else 0
            if not found:
                text = str(term)
                found = self._known.get(text, 0) or self._enter(text, _form(term, text))
        if keep and found > 0:
            self._kept[found] = True
        return found

    def ids_of(self, terms: Iterable[Term | None]) -> IntArray:
        """The ids of terms; 0 for None."""
        return np.fromiter((0 if t is None else self.id_of(t) for t in terms), np.int64)

    def encode(self, texts: Sequence[str | None] | pa.Array, source: str = "") -> IntArray:
        """The ids of terms in N-Triples syntax; 0 for what is no term.

        `texts` is a list of strings, or an Arrow array of strings, dictionary-encoded or not.
        Labels of blank nodes are scoped to `source`.
        """
        if isinstance(texts, pa.ChunkedArray):
            parts = [self.encode(chunk, source) for chunk in texts.chunks]
            return np.concatenate(parts) if parts else np.empty(0, np.int64)
        if not isinstance(texts, pa.Array):
            return self._encode_list(texts, source)
        if pa.types.is_dictionary(texts.type):
            return _spread(self._encode_distinct(_strings(texts.dictionary), source), texts)
        if len(texts) < _SMALL:
            return self._encode_list(texts.to_pylist(), source)
        return self._encode_array(_strings(texts), source)

    def _encode_list(self, texts: Sequence[str | None], source: str) -> IntArray:
        ids = np.fromiter(map(self._known.get, texts, repeat(0)), np.int64, len(texts))  # type: ignore[arg-type]
        missed = np.flatnonzero(ids == 0)
        if len(missed):
            new = [texts[i] for i in missed.tolist()]
            ids[missed] = self._encode_new(new, source)
        return ids

    def _encode_new(self, texts: list[str | None], source: str) -> IntArray:
        """The ids of texts that are not known as they stand."""
        if len(texts) >= _SMALL:
            try:
                return self._encode_array(pa.array(texts, pa.string()), source)
            except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 lacks
                pass
        return np.fromiter((self._read(text, source) for text in texts), np.int64, len(texts))

    def _encode_array(self, texts: pa.Array, source: str) -> IntArray:
        """The ids of an Arrow array of strings: numbers by their digits, others once each."""
        ids = _inlined(texts)
        rest = np.flatnonzero(ids == 0)
        if len(rest):
            others = texts if len(rest) == len(texts) else texts.take(pa.array(rest))
            encoded = others.dictionary_encode()
            ids[rest] = _spread(self._encode_others(encoded.dictionary, source), encoded)
        return ids

    def _encode_distinct(self, texts: pa.Array, source: str) -> IntArray:
        """The ids of texts that are all different."""
        ids = _inlined(texts)
        rest = np.flatnonzero(ids == 0)
        if len(rest):
            others = texts if len(rest) == len(texts) else texts.take(pa.array(rest))
            ids[rest] = self._encode_others(others, source)
        return ids

    def _encode_others(self, texts: pa.Array, source: str) -> IntArray:
        """The ids of texts that are all different, none of them that of an inlined literal."""
        strings = texts.to_pylist()
        ids = np.fromiter(map(self._known.get, strings, repeat(0)), np.int64, len(strings))
        missed = np.flatnonzero(ids == 0)
        if len(missed):
            new = texts if len(missed) == len(ids) else texts.take(pa.array(missed))
            ids[missed] = self._encode_unknown(new, [strings[i] for i in missed.tolist()], source)
        return ids

    def _encode_unknown(self, texts: pa.Array, strings: list[str], source: str) -> IntArray:
        clean = pc.match_substring_regex(texts, _CLEAN)
        clean = bools_of(pc.and_not(clean, pc.ends_with(texts, _STRING_END)).fill_null(False))
        ids = np.zeros(len(strings), np.int64)
        places = np.flatnonzero(clean)
        if len(places):
            new = strings if len(places) == len(strings) else [strings[i] for i in places.tolist()]
            ids[places] = self._enter_all(new)
        for i in np.flatnonzero(~clean).tolist():
            ids[i] = self._read(strings[i], source)
        return ids

    def _read(self, text: str | None, source: str) -> int:
        """The id of one text, in whatever way it is written."""
        if text is None:
            return 0
        found = self._known.get(text, 0) or self._spelled.get(text, 0)
        if found:
            return found
        if plain := _CLEAN_ONE.fullmatch(text):
            lexical, name = plain.groups()
            found = inlined.lexical_id(lexical, name) if name else 0
            if name != "string" and not found:
                return self._enter(text, _form_of(text))
        if not found:
            term = parse_term(text, source)
            if term is None or type(term) is BlankNode:
                return 0 if term is None else self.id_of(term)
            found = self.id_of(term)
        if len(self._spelled) >= 1 << 16:
            self._spelled.clear()
        self._spelled[text] = found
        return found

    def _enter(self, text: str, form: int) -> int:
        """A new entry."""
        if len(self._free):
            found, self._free = int(self._free[-1]), self._free[:-1]
        else:
            found, self._after = self._after, self._after + 1
            if found == len(self._forms):
                self._grow(2 * found)
        self._texts[found] = text
        self._forms[found] = form
        self._kinds[found] = _UNKNOWN if form == _TYPED else NO_NUMBER
        if form == BLANK:
            self._blanks[text[2:]] = found
        else:
            self._known[text] = found
        return found

    def _enter_all(self, texts: list[str]) -> IntArray:
        """New entries, none of them a blank node."""
        ids = self._places(len(texts))
        forms = np.fromiter(map(_form_of, texts), np.int8, len(texts))
        self._texts[ids] = texts
        self._forms[ids] = forms
        self._kinds[ids] = np.where(forms == _TYPED, _UNKNOWN, NO_NUMBER)
        self._known.update(zip(texts, ids.tolist(), strict=True))
        return ids

    def _places(self, count: int) -> IntArray:
        """Ids that are free."""
        reused = self._free[len(self._free) - min(count, len(self._free)) :]
        self._free = self._free[: len(self._free) - len(reused)]
        first, self._after = self._after, self._after + count - len(reused)
        if self._after > len(self._forms):
            self._grow(max(2 * len(self._forms), self._after))
        return np.concatenate([reused, np.arange(first, self._after)])

    # -- Ids to terms -----------------------------------------------------------------------

    def term_of(self, term_id: int) -> Term | None:
        """The term of an id; None for 0."""
        if term_id < 0:
            return inlined.inlined_literal(int(term_id))
        found: Term | None = self._terms[term_id]
        if found is None and term_id:
            found = self._terms[term_id] = _term_of_text(self._texts[term_id])
        return found

    def terms_of(self, ids: IntArray) -> list[Term | None]:
        """The terms of ids."""
        return [self.term_of(term_id) for term_id in ids.tolist()]

    def texts(self, ids: IntArray) -> pa.Array:
        """The terms in N-Triples syntax; null for 0."""
        return self.dictionary(ids).dictionary_decode()

    def dictionary(self, ids: IntArray) -> pa.DictionaryArray:
        """The terms in N-Triples syntax, each written once."""
        encoded = pa.array(ids, mask=ids == 0).dictionary_encode()
        texts = self._texts_of(encoded.dictionary.to_numpy())
        return pa.DictionaryArray.from_arrays(encoded.indices, texts)

    def _texts_of(self, ids: IntArray) -> pa.Array:
        """The texts of ids, none of them 0."""
        where = [np.flatnonzero(ids > 0)]
        parts = [_arrow(self._texts[ids[where[0]]])]
        if len(where[0]) < len(ids):
            tags = np.where(ids < 0, inlined.tags(ids), -1)
            for tag in range(4):
                where.append(np.flatnonzero(tags == tag))
                if len(where[-1]):
                    parts.append(inlined.inlined_texts(ids[where[-1]], tag))
        if len(parts) == 1:
            return parts[0]
        places = np.empty(len(ids), np.int64)
        places[np.concatenate(where)] = np.arange(len(ids))
        return pa.concat_arrays(parts).take(pa.array(places))

    # -- What is known of terms -------------------------------------------------------------

    def sorts(self, ids: IntArray) -> KindArray:
        """UNBOUND, IRI_NODE, BLANK or LITERAL, of each id."""
        return np.where(ids < 0, LITERAL, np.minimum(self._forms[np.maximum(ids, 0)], LITERAL))

    def plain_strings(self, ids: IntArray) -> BoolArray:
        """Whether they are literals of xsd:string."""
        plain: BoolArray = self._forms[np.maximum(ids, 0)] == _PLAIN
        return plain

    def numbers(self, ids: IntArray) -> Numbers:
        """What they are worth as numbers.

        >>> terms = TermDictionary()
        >>> terms.numbers(terms.of_integers(np.array([5]))).values.tolist()
        [5.0]
        """
        inline = ids < 0
        if inline.all():
            return inlined.inlined_numbers(ids)
        entries = np.where(inline, 0, ids)
        self._fill(entries)
        values, kinds = self._values[entries], self._kinds[entries]
        if inline.any():
            found = inlined.inlined_numbers(ids[inline])
            values[inline], kinds[inline] = found
        return Numbers(values, kinds)

    def exact_integers(self, ids: IntArray) -> tuple[IntArray, BoolArray]:
        """The values of integers, and where a term is an integer that fits."""
        inline = ids < 0
        integer = inline & (inlined.tags(ids) == inlined.TAG_INTEGER)
        values = np.where(integer, inlined.integer_values(ids), 0)
        if not inline.all():
            entries = np.where(inline, 0, ids)
            self._fill(entries)
            exact = self._exact[entries]
            known = (self._kinds[entries] == INTEGER) & (exact != _NOT_EXACT)
            values[known] = exact[known]
            integer |= known
        return values, integer

    def decimals(self, ids: IntArray) -> tuple[IntArray, BoolArray]:
        """Integers and decimals in millionths, and where that is exact and below 2**53."""
        values, fits = self.exact_integers(ids)
        fits &= np.abs(values) <= (1 << 53) // _MILLION
        values = np.where(fits, values * _MILLION, 0)
        inline = (ids < 0) & (inlined.tags(ids) == inlined.TAG_DECIMAL)
        if inline.any():
            mantissa, scale = inlined.scaled_parts(ids[inline])
            factor = 10 ** np.maximum(6 - scale, 0)
            good = (scale <= 6) & (np.abs(mantissa) <= (1 << 53) // factor)
            values[inline] = np.where(good, mantissa * factor, 0)
            fits[inline] = good
        entries = np.maximum(ids, 0)
        exact = self._exact[entries]
        known = (self._kinds[entries] == DECIMAL) & (exact != _NOT_EXACT)
        values[known] = exact[known]
        return values, fits | known

    def _fill(self, entries: IntArray) -> None:
        """Fills in what entries are worth, where nobody has asked yet."""
        unknown = entries[self._kinds[entries] == _UNKNOWN]
        for entry in set(unknown.tolist()):
            value = value_of(_term_of_text(self._texts[entry]))
            self._kinds[entry] = _KIND_OF.get(type(value), NO_NUMBER)
            if isinstance(value, int | Decimal | float) and type(value) is not bool:
                self._values[entry] = double(value)
                self._exact[entry] = _exact(value)

    # -- Numbers to terms -------------------------------------------------------------------

    def of_integers(self, values: IntArray) -> IntArray:
        """The ids of xsd:integer literals."""
        ids = inlined.integer_ids(values)
        return self._of_rest(ids, values, int)

    def of_doubles(self, values: FloatArray) -> IntArray:
        """The ids of canonical xsd:double literals."""
        return self._of_rest(inlined.double_ids(values), values, float)

    def of_decimals(self, scaled: IntArray, digits: int) -> IntArray:
        """The ids of canonical xsd:decimal literals: `scaled` / 10**`digits`."""
        ids = inlined.decimal_ids(scaled, digits)
        return self._of_rest(ids, scaled, lambda value: EXACT.scaleb(Decimal(value), -digits))

    def of_booleans(self, values: BoolArray) -> IntArray:
        """The ids of xsd:boolean literals."""
        return inlined.boolean_ids(values)

    def _of_rest(self, ids: IntArray, values: Any, exactly: Callable[[Any], Number]) -> IntArray:
        """With entries for the values that are not inlined."""
        if not ids.all():
            for i in np.flatnonzero(ids == 0).tolist():
                ids[i] = self.id_of(literal_of(exactly(values[i].item())))
        return ids

    def integers_of(self, ids: IntArray) -> IntArray:
        """The values of stamps, which are integers; the least int64 where there is none.

        >>> terms = TermDictionary()
        >>> terms.integers_of(terms.of_integers(np.array([5, 7]))).tolist()
        [5, 7]
        """
        if len(ids) and int(ids.max()) >= 0:
            values, known = self.exact_integers(ids)
            return np.where(known, values, _NOT_EXACT)
        return inlined.integer_values(ids)

    # -- Order ------------------------------------------------------------------------------

    def order_ranks(self, ids: IntArray) -> IntArray:
        """Numbers in the order of `algebra.order.order_key`; equal ids have equal ones.

        They order these ids among themselves, and mean nothing beside others.

        >>> terms = TermDictionary()
        >>> terms.order_ranks(terms.encode(['"b"', "<a>", '"b"'])).tolist()
        [1, 0, 1]
        """
        if not len(ids) or (ids.max() < 0 and self._in_order(ids)):
            return ids
        distinct, codes = np.unique(ids, return_inverse=True)
        keys = [order_key(term) for term in self.terms_of(distinct)]
        ranks = np.empty(len(distinct), np.int64)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        found: IntArray = ranks[codes]
        return found

    def _in_order(self, ids: IntArray) -> bool:
        """Whether inlined ids are all integers, or all doubles."""
        tags = inlined.tags(ids)
        return bool(tags[0] <= inlined.TAG_DOUBLE and (tags == tags[0]).all())

    # -- Recycling --------------------------------------------------------------------------

    def due(self) -> bool:
        """Whether recycling is worth it: the entries have doubled since the last time."""
        return len(self) >= max(1 << 16, 2 * self._floor)

    def recycle(self, used: Iterable[IntArray]) -> int:
        """Forgets the entries that no id in `used` means; gives how many.

        Their ids will mean other terms.

        >>> terms = TermDictionary()
        >>> ids = terms.encode(["<a>", "<b>"])
        >>> terms.recycle([ids[:1]]), terms.encode(["<c>", "<a>"]).tolist()
        (1, [2, 1])
        """
        unused = self._forms[: self._after] != UNBOUND
        unused &= ~self._kept[: self._after]
        for ids in used:
            unused[ids[ids > 0]] = False
        freed = np.flatnonzero(unused)
        self._spelled.clear()
        for text, form in zip(self._texts[freed], self._forms[freed].tolist(), strict=True):
            if form == BLANK:
                del self._blanks[text[2:]]
            else:
                del self._known[text]
        for column in (self._texts, self._terms):
            column[freed] = None
        self._forms[freed] = UNBOUND
        self._exact[freed] = _NOT_EXACT
        self._values[freed] = 0.0
        self._kinds[freed] = NO_NUMBER
        self._free = np.concatenate([self._free, freed])
        self._floor = len(self)
        return len(freed)


# -- Texts and terms ----------------------------------------------------------------------------

_KIND_OF = {int: INTEGER, Decimal: DECIMAL, Single: FLOAT, float: DOUBLE}
_FORMS = {"<": IRI_NODE, "_": BLANK}
_ENDS = {'"': _PLAIN, ">": _TYPED}
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@(.*)|\^\^<(.*)>)?', re.S)


def _form_of(text: str) -> int:
    """The form of a term by its text."""
    return _FORMS.get(text[0]) or _ENDS.get(text[-1], _TAGGED)


def _form(term: Term, text: str) -> int:
    """The form of a term whose language tag may hold any character."""
    tagged = type(term) is Literal and term.language is not None
    return _TAGGED if tagged else _form_of(text)


def _term_of_text(text: str) -> Term:
    """The term that `str` wrote, whatever characters it holds."""
    if text[0] == "<":
        return IRI(unescape(text[1:-1]))
    if text[0] == "_":
        return BlankNode(text[2:])
    found = _LITERAL.fullmatch(text)
    assert found
    lexical = unescape(found[1])
    if found[2] is not None:
        return Literal(lexical, language=found[2])
    return Literal(lexical) if found[3] is None else Literal(lexical, IRI(unescape(found[3])))


def _exact(value: Number) -> int:
    """An integer as it is, a decimal in millionths, where that can be relied on."""
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else _NOT_EXACT
    if isinstance(value, Decimal) and value.copy_abs() < 1 << 53:
        scaled = EXACT.scaleb(value, 6)
        if scaled.copy_abs() < 1 << 53 and scaled == int(scaled):
            return int(scaled)
    return _NOT_EXACT


def _inlined(texts: pa.Array) -> IntArray:
    """The ids of texts of literals that are inlined; 0 for others."""
    ids = np.zeros(len(texts), np.int64)
    literal = pc.starts_with(texts, '"').fill_null(False)
    left = literal.true_count
    for name, end in inlined.ENDS.items():
        if not left:
            break
        places = np.flatnonzero(
            bools_of(pc.and_(literal, pc.ends_with(texts, end)).fill_null(False))
        )
        left -= len(places)
        if len(places):
            found = texts if len(places) == len(texts) else texts.take(pa.array(places))
            ids[places] = inlined.text_ids(found, name)
    return ids


def _spread(ids: IntArray, encoded: pa.DictionaryArray) -> IntArray:
    """The ids of the distinct texts, put where each of them is; 0 for null."""
    codes = encoded.indices
    if codes.null_count:
        codes = codes.cast(pa.int64()).fill_null(len(ids))
        ids = np.append(ids, 0)
    found: IntArray = ids[codes.to_numpy()]
    return found


def _strings(texts: pa.Array) -> pa.Array:
    return texts if texts.type == pa.string() else texts.cast(pa.string())


def _arrow(texts: npt.NDArray[np.object_]) -> pa.Array:
    """Texts as Arrow has them: halves of surrogate pairs, which UTF-8 lacks, become escapes."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([_SURROGATE.sub(_escaped, text) for text in texts], pa.string())


_SURROGATE = re.compile("[\ud800-\udfff]")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"
