"""The term dictionary: RDF terms as int64 ids, so that rows are arrays of numbers.

Id 0 means unbound. A negative id is an inlined literal (inline_ids.py). A positive id is an entry
of the dictionary: the place of the N-Triples text of the term, and of its properties in further
columns. Equal ids always mean the same term: a term has one text (`str(term)`), and a text has one
entry.

Streams keep delivering new literals, so entries are recycled: `recycle` receives the ids in use,
drops the other entries and reuses their ids for new terms. Lookups are for whole arrays, mostly by
columns; the columns of numeric values are filled at the first lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.order import order_key
from streamsparql.algebra.terms import BlankNode, Literal, Term
from streamsparql.algebra.xsd.numeric import EXACT, INTEGERS, Numeric, Single, double
from streamsparql.algebra.xsd.values import literal_of, value_of
from streamsparql.errors import EngineError
from streamsparql.physical.batch import BoolArray, FloatArray, IntArray
from streamsparql.physical.dictionary import inline_ids as inlined
from streamsparql.physical.dictionary.canonical_text import (
    BLANK_SORT,
    IRI_SORT,
    LITERAL_SORT,
    PLAIN_FORM,
    TYPED_FORM,
    UNBOUND_SORT,
    are_written,
    form_of,
    form_of_term,
    forms_of,
    is_written,
    spread,
    term_of_text,
    to_arrow,
    to_strings,
)
from streamsparql.physical.dictionary.inline_ids import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    NO_NUMBER,
    KindArray,
    NumericValues,
    bools_of,
)
from streamsparql.physical.dictionary.inline_parsing import (
    NOT_EXACT,
    NUMBER_ENDS,
    TextSpans,
    alike_ids,
    exact_of,
    few_ids,
    inlined_id,
    inlined_ids,
    literal_id,
    values_of_texts,
)

__all__ = [
    "BLANK_SORT",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "IRI_SORT",
    "LITERAL_SORT",
    "NO_NUMBER",
    "UNBOUND_SORT",
    "NumericValues",
    "TermDictionary",
]

_UNKNOWN = -1  # the kind of an entry before its first lookup
_VERY_FEW = 16  # fewer texts than this are parsed one by one
_LITTLE = 256  # fewer texts than this are written faster by Python than by Arrow
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_SAMPLED = 64  # from this number on, a sample decides whether texts are looked up as they are
_MANY = 1024  # fewer numbers than this are parsed faster as one text than by their digits
_FEW = 256  # from this number on, arrays are faster than Python loops
_MILLION = 10**6
_ENTRY_BYTES = 200  # of an entry without its text: its places in columns and hash tables, objects
_FOR_EVER = 1 << 40  # more often than a term is kept otherwise

TermTexts: TypeAlias = Sequence[Any]
"""Texts in N-Triples syntax, or terms that a `WriteTexts` turns into texts; None for no term."""
WriteTexts: TypeAlias = Callable[[list[Any]], Sequence[str | None]]

_KIND_OF = {int: INTEGER, Decimal: DECIMAL, Single: FLOAT, float: DOUBLE}
_KINDS = {**dict.fromkeys(INTEGERS, INTEGER), "decimal": DECIMAL, "float": FLOAT, "double": DOUBLE}


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
        """Entries by text, except blank nodes: the same label in another source is another node."""
        self._blanks: dict[str, int] = {}
        """Blank nodes by label, which includes the source."""
        self._spelled: dict[str, int] = {}
        """A bounded cache: other texts of entries, and texts of inlined literals."""
        self._inlined_texts = inlined.InlinedTexts()
        self._free: IntArray = np.empty(0, np.int64)
        self._after = 1  # the least id that was never assigned
        self._floor = 0  # the number of entries after the last recycling
        self._text_bytes = 0
        self._recorded: list[int] | None = None
        self._grow(1 << 10)

    def _grow(self, capacity: int) -> None:
        """Extend the columns to a capacity; place 0 is for unbound."""
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
        self._exact: IntArray = column("_exact", np.int64, NOT_EXACT)
        self._kept: IntArray = column("_kept", np.int64, 0)
        self._forms: KindArray = column("_forms", np.int8, UNBOUND_SORT)

    def __len__(self) -> int:
        """Return the number of entries; inlined literals need none."""
        return self._after - 1 - len(self._free)

    @property
    def bytes(self) -> int:
        """The approximate number of bytes of the entries, with the terms that are made of them."""
        return _ENTRY_BYTES * len(self) + 2 * self._text_bytes

    # -- Terms to ids -----------------------------------------------------------------------

    def id_of(self, term: Term, keep: bool = False) -> int:
        """Return the id of a term; with `keep` it is never recycled, as for constants of queries.

        >>> terms = TermDictionary()
        >>> terms.id_of(BlankNode("a")) == terms.id_of(BlankNode("a")), terms.id_of(Literal("b"))
        (True, 2)
        """
        if type(term) is BlankNode:
            term_id = self._blanks.get(term.label, 0) or self._enter(str(term), BLANK_SORT)
        else:
            term_id = literal_id(term) if type(term) is Literal else 0
            if not term_id:
                text = str(term)
                term_id = self._known.get(text, 0) or self._enter(text, form_of_term(term, text))
        if keep and term_id > 0:
            self._kept[term_id] += 1
            if self._recorded is not None:
                self._recorded.append(term_id)
        return term_id

    def keep(self, ids: IntArray) -> None:
        """Exclude terms from recycling, such as those of static graphs."""
        self._kept[ids[ids > 0]] = _FOR_EVER

    @contextmanager
    def recording(self) -> Iterator[list[int]]:
        """Collect the ids of terms that `id_of` keeps meanwhile, for `release`.

        >>> terms = TermDictionary()
        >>> with terms.recording() as kept:
        ...     number = terms.id_of(Literal("a"), keep=True)
        >>> terms.release(kept)
        >>> terms.recycle([])
        1
        """
        self._recorded = kept = list[int]()
        try:
            yield kept
        finally:
            self._recorded = None

    def release(self, kept: Sequence[int]) -> None:
        """Recycle these terms again, unless others still keep them."""
        np.subtract.at(self._kept, np.array(kept, np.int64), 1)

    def ids_of(self, terms: Iterable[Term | None]) -> IntArray:
        """Return the ids of terms; 0 for None."""
        return np.fromiter((0 if t is None else self.id_of(t) for t in terms), np.int64)

    def encode(
        self, texts: TermTexts | pa.Array, source: str = "", written: WriteTexts = list
    ) -> IntArray:
        """Return the ids of terms in N-Triples syntax; 0 for texts that are not terms.

        `texts` is a list of strings, or an Arrow array of strings, dictionary-encoded or not.
        Labels of blank nodes are scoped to `source`. A list may contain terms of other libraries if
        `written` turns them into texts; it is called for items that are not texts of entries.
        """
        if isinstance(texts, pa.ChunkedArray):
            parts = [self.encode(chunk, source) for chunk in texts.chunks]
            return np.concatenate(parts) if parts else np.empty(0, np.int64)
        if not isinstance(texts, pa.Array):
            return self._encode_list(texts, source, written)
        if pa.types.is_dictionary(texts.type):
            return spread(self._encode_array(to_strings(texts.dictionary), source, True), texts)
        if len(texts) < _FEW:
            return self._encode_list(texts.to_pylist(), source, list)
        return self._encode_array(to_strings(texts), source, False)

    def _encode_list(self, texts: TermTexts, source: str, written: WriteTexts) -> IntArray:
        known: Any = self._known.get
        if len(texts) >= _SAMPLED:
            sample = [*map(known, texts[:: len(texts) // 16])]
            if 2 * sample.count(None) > len(sample):  # most are new, so lookups do not pay
                return self._encode_new(written(list(texts)), source)
        ids = np.fromiter(map(known, texts, repeat(0)), np.int64, len(texts))
        (missed,) = (ids == 0).nonzero()  # faster than flatnonzero, for single items
        if len(missed):
            new = list(texts)
            if len(missed) < len(new):
                new = [new[i] for i in missed.tolist()]
            ids[missed] = self._encode_new(written(new), source)
        return ids

    def _encode_new(self, texts: Sequence[str | None], source: str) -> IntArray:
        """Return the ids of texts that are not the canonical texts of entries."""
        if len(texts) < _VERY_FEW:
            return np.fromiter((self._read(text, source) for text in texts), np.int64, len(texts))
        if len(texts) < _MANY:
            strings = ["" if text is None else text for text in texts]
            ids = alike_ids(strings)
            if ids is None and len(texts) < _FEW:
                ids = few_ids(strings)
            if ids is not None:
                for i in np.flatnonzero(ids == 0).tolist():
                    ids[i] = self._read(strings[i], source)
                return ids
        try:
            array = pa.array(texts, pa.string())
        except UnicodeEncodeError:  # a surrogate, which UTF-8 cannot encode
            return np.fromiter((self._read(t, source) for t in texts), np.int64, len(texts))
        if isinstance(array, pa.ChunkedArray):  # too long for one
            return np.concatenate([self._encode_new(c.to_pylist(), source) for c in array.chunks])
        return self._encode_array(to_strings(array), source, False)

    def _encode_array(self, texts: pa.Array, source: str, distinct: bool) -> IntArray:
        """Return the ids of an Arrow array: numbers by their digits, others once each."""
        ids = inlined_ids(TextSpans.of_array(texts), lambda at: texts.take(pa.array(at)))
        rest = np.flatnonzero(ids == 0)
        if not len(rest):
            return ids
        others = texts if len(rest) == len(texts) else texts.take(pa.array(rest))
        if distinct:
            ids[rest] = self._encode_others(others, source)
        else:
            encoded = others.dictionary_encode()
            ids[rest] = spread(self._encode_others(encoded.dictionary, source), encoded)
        return ids

    def _encode_others(self, texts: pa.Array, source: str) -> IntArray:
        """Return the ids of distinct texts, none of them of an inlined literal."""
        strings = texts.to_pylist()
        ids = np.fromiter(map(self._known.get, strings, repeat(0)), np.int64, len(strings))
        missed = np.flatnonzero(ids == 0)
        if not len(missed):
            return ids
        if len(missed) < len(ids):
            texts, strings = texts.take(pa.array(missed)), [strings[i] for i in missed.tolist()]
        new = np.zeros(len(strings), np.int64)
        written = are_written(texts)
        places = np.flatnonzero(written)
        if len(places):
            new[places] = self._enter_all(texts, strings, places)
        for i in np.flatnonzero(~written).tolist():
            new[i] = self._read(strings[i], source)
        ids[missed] = new
        return ids

    def _read(self, text: str | None, source: str) -> int:
        """Return the id of one text in any valid form; 0 for other texts."""
        if text is None:
            return 0
        term_id = self._known.get(text, 0) or self._spelled.get(text, 0)
        if term_id:
            return term_id
        term_id = inlined_id(text)
        if not term_id:
            if is_written(text):
                return self._enter(text, form_of(text))
            term = parse_term(text, source)
            if term is None or type(term) is BlankNode:
                return 0 if term is None else self.id_of(term)
            term_id = self.id_of(term)
        if len(self._spelled) >= 1 << 16:
            self._spelled.clear()
        self._spelled[text] = term_id
        return term_id

    def _enter(self, text: str, form: int) -> int:
        """Add an entry; return its id."""
        if len(self._free):
            entry, self._free = int(self._free[-1]), self._free[:-1]
        else:
            entry, self._after = self._after, self._after + 1
            if entry == len(self._forms):
                self._grow(2 * entry)
        self._text_bytes += len(text)
        self._texts[entry] = text
        self._forms[entry] = form
        self._kinds[entry] = _UNKNOWN if form == TYPED_FORM else NO_NUMBER
        if form == BLANK_SORT:
            self._blanks[text[2:]] = entry
        else:
            self._known[text] = entry
        return entry

    def _enter_all(self, texts: pa.Array, strings: list[str], places: IntArray) -> IntArray:
        """Add entries for the canonical texts at these places; return their ids."""
        if len(places) < len(strings):
            texts, strings = texts.take(pa.array(places)), [strings[i] for i in places.tolist()]
        ids = self._places(len(strings))
        self._text_bytes += texts.nbytes
        forms = forms_of(texts)
        self._texts[ids] = strings
        self._forms[ids] = forms
        self._kinds[ids] = np.where(forms == TYPED_FORM, _UNKNOWN, NO_NUMBER)
        self._known.update(zip(strings, ids.tolist(), strict=True))
        return ids

    def _places(self, count: int) -> IntArray:
        """Assign unused ids; return them."""
        reused = self._free[len(self._free) - min(count, len(self._free)) :]
        self._free = self._free[: len(self._free) - len(reused)]
        first, self._after = self._after, self._after + count - len(reused)
        if self._after > len(self._forms):
            self._grow(max(2 * len(self._forms), self._after))
        return np.concatenate([reused, np.arange(first, self._after)])

    # -- Ids to terms -----------------------------------------------------------------------

    def term_of(self, term_id: int) -> Term | None:
        """Return the term of an id; None for 0."""
        if term_id < 0:
            return inlined.inlined_literal(int(term_id))
        term: Term | None = self._terms[term_id]
        if term is None and term_id:
            term = self._terms[term_id] = term_of_text(self._texts[term_id])
        return term

    def terms_of(self, ids: IntArray) -> list[Term | None]:
        """Return the terms of ids."""
        if len(ids) and ids.max() < 0:
            return [*inlined.inlined_literals(ids)]
        return [self.term_of(term_id) for term_id in ids.tolist()]

    def texts(self, ids: IntArray) -> pa.Array:
        """Return terms in N-Triples syntax; null for 0."""
        return self.dictionary(ids).dictionary_decode()

    def dictionary(self, ids: IntArray) -> pa.DictionaryArray:
        """Return terms in N-Triples syntax, dictionary-encoded."""
        if len(ids) < _LITTLE:
            return to_arrow(self._few_texts(ids.tolist()), _DICTIONARY)
        encoded = pa.array(ids, mask=ids == 0).dictionary_encode()
        distinct = self.bound_texts(encoded.dictionary.to_numpy())
        return pa.DictionaryArray.from_arrays(encoded.indices, distinct)

    def _few_texts(self, ids: list[int]) -> list[str | None]:
        """Return the texts of a few ids, None for 0."""
        inline = [term_id for term_id in ids if term_id < 0]
        written = iter(self._inlined_texts.listed(inline)) if inline else iter(())
        entries = self._texts
        return [entries[k] if k >= 0 else next(written) for k in ids]

    def bound_texts(self, ids: IntArray) -> pa.Array:
        """Return the texts of ids, none of them 0, without looking for equal ones.

        >>> terms = TermDictionary()
        >>> terms.bound_texts(terms.encode(["<a>", "<b>"])).to_pylist()
        ['<a>', '<b>']
        """
        inline = ids < 0
        if inline.all():
            return self._inlined_texts.of(ids)
        if not inline.any():
            return to_arrow(self._texts[ids])
        entries, others = np.flatnonzero(~inline), np.flatnonzero(inline)
        places = np.empty(len(ids), np.int64)
        places[np.concatenate([entries, others])] = np.arange(len(ids))
        parts = [to_arrow(self._texts[ids[entries]]), self._inlined_texts.of(ids[others])]
        return pa.concat_arrays(parts).take(pa.array(places))

    # -- Properties of terms ----------------------------------------------------------------

    def sorts(self, ids: IntArray) -> KindArray:
        """Return the sort of each term."""
        inline = ids < 0
        if not inline.any():
            return np.minimum(self._forms[ids], LITERAL_SORT)
        return np.where(
            inline, LITERAL_SORT, np.minimum(self._forms[np.maximum(ids, 0)], LITERAL_SORT)
        )

    def sort_of(self, term_id: int) -> int:
        """Return the sort of a term, as `sorts` does."""
        return min(int(self._forms[term_id]), LITERAL_SORT) if term_id >= 0 else LITERAL_SORT

    def forms(self, ids: IntArray) -> KindArray:
        """Return the form of each term (canonical_text.py): its sort, or the form of a literal.

        >>> terms = TermDictionary()
        >>> terms.forms(terms.encode(["<a>", '"b"', '"c"@en'])).tolist()
        [1, 3, 4]
        """
        forms: KindArray = np.where(ids < 0, TYPED_FORM, self._forms[np.maximum(ids, 0)])
        return forms

    def plain_strings(self, ids: IntArray) -> BoolArray:
        """Return whether terms are literals of xsd:string."""
        plain: BoolArray = self._forms[np.maximum(ids, 0)] == PLAIN_FORM
        return plain

    def numbers(self, ids: IntArray) -> NumericValues:
        """Return the numeric values of terms.

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
            values[inline], kinds[inline] = inlined.inlined_numbers(ids[inline])
        return NumericValues(values, kinds)

    def exact_integers(self, ids: IntArray) -> tuple[IntArray, BoolArray]:
        """Return the values of integers, and which terms are integers of 64 bits."""
        inline = ids < 0
        integer = inline & (inlined.tags(ids) == inlined.TAG_INTEGER)
        values = np.where(integer, inlined.integer_values(ids), 0)
        if not inline.all():
            entries = np.where(inline, 0, ids)
            self._fill(entries)
            exact = self._exact[entries]
            known = (self._kinds[entries] == INTEGER) & (exact != NOT_EXACT)
            values[known] = exact[known]
            integer |= known
        return values, integer

    def decimals(self, ids: IntArray) -> tuple[IntArray, BoolArray]:
        """Return integers and decimals in millionths, and which are exact and below 2**53."""
        values, fits = self.exact_integers(ids)
        fits &= np.abs(values) <= (1 << 53) // _MILLION
        values = np.where(fits, values * _MILLION, 0)
        inline = (ids < 0) & (inlined.tags(ids) == inlined.TAG_DECIMAL)
        if inline.any():
            mantissa, scale = inlined.scaled_parts(ids[inline])
            factor = 10 ** np.maximum(6 - scale, 0)
            exact = (scale <= 6) & (np.abs(mantissa) <= (1 << 53) // factor)
            values[inline] = np.where(exact, mantissa * factor, 0)
            fits[inline] = exact
        entries = np.maximum(ids, 0)
        millionths = self._exact[entries]
        known = (self._kinds[entries] == DECIMAL) & (millionths != NOT_EXACT)
        values[known] = millionths[known]
        return values, fits | known

    def _fill(self, entries: IntArray) -> None:
        """Fill in the numeric values of entries at their first lookup."""
        unknown = entries[self._kinds[entries] == _UNKNOWN]
        if not len(unknown):
            return
        left = np.unique(unknown)
        self._kinds[left] = NO_NUMBER
        texts = to_arrow(self._texts[left]) if len(left) >= _VERY_FEW else None
        strings = self._texts[left].tolist() if texts is None else []
        for name, end in NUMBER_ENDS.items():
            if texts is None:
                places = np.array([i for i, t in enumerate(strings) if t.endswith(end)], np.int64)
                closer = left[places]
            else:
                places = np.flatnonzero(bools_of(pc.ends_with(texts, end)))
                closer = left[places]
                if len(places):
                    values = values_of_texts(texts.take(pa.array(places)), name)
                    known = closer[values.known]
                    self._kinds[known] = _KINDS[name]
                    self._values[known] = values.values[values.known]
                    self._exact[known] = values.exact[values.known]
                    closer = closer[~values.known]
            for entry in closer.tolist():
                self._fill_one(entry)

    def _fill_one(self, entry: int) -> None:
        value = value_of(term_of_text(self._texts[entry]))
        if isinstance(value, int | Decimal | float) and type(value) is not bool:
            self._kinds[entry] = _KIND_OF[type(value)]
            self._values[entry] = double(value)
            self._exact[entry] = exact_of(value)

    # -- Numbers to terms -------------------------------------------------------------------

    def of_integers(self, values: IntArray) -> IntArray:
        """Return the ids of xsd:integer literals."""
        ids = inlined.integer_ids(values)
        return self._with_entries(ids, values, int)

    def of_doubles(self, values: FloatArray) -> IntArray:
        """Return the ids of canonical xsd:double literals."""
        return self._with_entries(inlined.double_ids(values), values, float)

    def of_decimals(self, scaled: IntArray, digits: int) -> IntArray:
        """Return the ids of canonical xsd:decimal literals: `scaled` / 10**`digits`."""
        ids = inlined.decimal_ids(scaled, digits)
        return self._with_entries(ids, scaled, lambda value: EXACT.scaleb(Decimal(value), -digits))

    def of_booleans(self, values: BoolArray) -> IntArray:
        """Return the ids of xsd:boolean literals."""
        return inlined.boolean_ids(values)

    def _with_entries(
        self, ids: IntArray, values: Any, exactly: Callable[[Any], Numeric]
    ) -> IntArray:
        """Return the ids, with entries for the values that are not inlined (0)."""
        if not ids.all():
            for i in np.flatnonzero(ids == 0).tolist():
                ids[i] = self.id_of(literal_of(exactly(values[i].item())))
        return ids

    def integers_of(self, ids: IntArray) -> IntArray:
        """Return the values of stamps, which are integers; the least int64 for unbound.

        >>> terms = TermDictionary()
        >>> terms.integers_of(terms.of_integers(np.array([5, 7]))).tolist()
        [5, 7]
        """
        if len(ids) and int(ids.max()) >= 0:
            values, known = self.exact_integers(ids)
            return np.where(known, values, NOT_EXACT)
        return inlined.integer_values(ids)

    # -- Order ------------------------------------------------------------------------------

    def order_ranks(self, ids: IntArray) -> IntArray:
        """Return numbers in the order of `algebra.order.order_key`; equal for equal ids.

        They order these ids only; compared with other ranks they are meaningless.

        >>> terms = TermDictionary()
        >>> terms.order_ranks(terms.encode(['"b"', "<a>", '"b"'])).tolist()
        [1, 0, 1]
        """
        if not len(ids) or (ids.max() < 0 and self._in_order(ids)):
            return ids
        distinct, codes = np.unique(ids, return_inverse=True)
        values, kinds = self.numbers(distinct)
        number = (kinds != NO_NUMBER) & ~np.isnan(values)
        before = self.sorts(distinct) < LITERAL_SORT
        numbers = np.flatnonzero(number)
        numbers = numbers[np.argsort(values[numbers], kind="stable")]
        ordered = values[numbers]
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        places = np.concatenate(
            [
                self._sorted(distinct, np.flatnonzero(before)),
                self._ties(distinct, numbers, same),
                self._sorted(distinct, np.flatnonzero(~(before | number))),
            ]
        )
        ranks = np.empty(len(distinct), np.int64)
        ranks[places] = np.arange(len(places))
        result: IntArray = ranks[codes]
        return result

    def _sorted(self, ids: IntArray, places: IntArray) -> IntArray:
        """Return places in the order of the terms there."""
        keys = {place: order_key(self.term_of(int(ids[place]))) for place in places.tolist()}
        return np.array(sorted(keys, key=keys.__getitem__), np.int64)

    def _ties(self, ids: IntArray, places: IntArray, same: IntArray) -> IntArray:
        """Return places of numbers in order, given their order by nearest doubles.

        `same` is where a place has the same double as the next: only these are compared exactly.
        """
        runs = np.split(same, np.flatnonzero(np.diff(same) > 1) + 1) if len(same) else []
        for run in runs:
            first, after = int(run[0]), int(run[-1]) + 2
            places[first:after] = self._sorted(ids, places[first:after])
        return places

    def _in_order(self, ids: IntArray) -> bool:
        """Return whether inlined ids are all integers, or all doubles."""
        tags = inlined.tags(ids)
        return bool(tags[0] <= inlined.TAG_DOUBLE and (tags == tags[0]).all())

    # -- Recycling --------------------------------------------------------------------------

    def due(self) -> bool:
        """Return whether recycling pays: the number of entries has doubled since the last time."""
        return len(self) >= max(1 << 16, 2 * self._floor)

    def recycle(self, used: Iterable[IntArray]) -> int:
        """Drop the entries whose ids are not in `used`; return their number.

        Their ids are reused for other terms.

        >>> terms = TermDictionary()
        >>> ids = terms.encode(["<a>", "<b>"])
        >>> terms.recycle([ids[:1]]), terms.encode(["<c>", "<a>"]).tolist()
        (1, [2, 1])
        """
        unused = self._forms[: self._after] != UNBOUND_SORT
        unused &= self._kept[: self._after] <= 0
        for ids in used:
            unused[ids[ids > 0]] = False
        freed = np.flatnonzero(unused)
        self._spelled.clear()
        for text, form in zip(self._texts[freed], self._forms[freed].tolist(), strict=True):
            if form == BLANK_SORT:
                del self._blanks[text[2:]]
            else:
                del self._known[text]
        for column in (self._texts, self._terms):
            column[freed] = None
        self._forms[freed] = UNBOUND_SORT
        self._exact[freed] = NOT_EXACT
        self._values[freed] = 0.0
        self._kinds[freed] = NO_NUMBER
        self._free = np.concatenate([self._free, freed])
        self._floor = len(self)
        self._measure_texts()
        return len(freed)

    # -- Writing and reading ------------------------------------------------------------------

    def save(self, used: Iterable[IntArray]) -> pa.Table:
        """Return the entries with ids in `used`, and the kept ones, as a table.

        >>> terms = TermDictionary()
        >>> ids = terms.encode(["<a>", "<b>"])
        >>> other = TermDictionary()
        >>> other.load(terms.save([ids[1:]]))
        >>> other.texts(ids[1:]).to_pylist(), other.encode(["<b>", "<c>"]).tolist()
        (['<b>'], [2, 1])
        """
        wanted = self._kept[: self._after] > 0
        for ids in used:
            wanted[ids[ids > 0]] = True
        (ids,) = wanted.nonzero()
        columns = {
            "id": pa.array(ids, pa.int64()),
            "text": _bytes_of(self._texts[ids].tolist()),
            "form": pa.array(self._forms[ids], pa.int8()),
            "kept": pa.array(self._kept[ids] > _FOR_EVER // 2, pa.bool_()),
        }
        return pa.table(columns).replace_schema_metadata(_SIGNATURE)

    def load(self, table: pa.Table) -> None:
        """Restore saved entries in an empty dictionary, with their ids.

        Constants are kept again once the plans that have them are lowered.
        """
        if self._after > 1:
            raise EngineError("cannot restore a term dictionary that has entries already")
        if (table.schema.metadata or {}) != {k.encode(): v.encode() for k, v in _SIGNATURE.items()}:
            raise EngineError("cannot restore the term dictionary: not a table of version 1")
        ids = table["id"].to_numpy()
        texts = _texts_of(table["text"])
        self._after = int(ids.max(initial=0)) + 1
        if self._after > len(self._forms):
            self._grow(2 * self._after)
        self._texts[ids] = texts
        self._forms[ids] = table["form"].to_numpy()
        self._kept[ids] = np.where(bools_of(table["kept"]), _FOR_EVER, 0)
        self._kinds[ids] = np.where(self._forms[ids] == TYPED_FORM, _UNKNOWN, NO_NUMBER)
        for entry, text, form in zip(ids.tolist(), texts, self._forms[ids].tolist(), strict=True):
            if form == BLANK_SORT:
                self._blanks[text[2:]] = entry
            else:
                self._known[text] = entry
        free = np.ones(self._after, np.bool_)
        free[0] = free[ids] = False
        self._free = free.nonzero()[0]
        self._floor = len(self)
        self._measure_texts()

    def _measure_texts(self) -> None:
        self._text_bytes = sum(map(len, self._known)) + sum(map(len, self._blanks))


_SIGNATURE = {"kind": "TermDictionary", "version": "1"}


def _bytes_of(texts: list[str]) -> pa.Array:
    """Return texts in UTF-8; those with a surrogate, which UTF-8 cannot encode, one by one."""
    try:
        return pa.array(texts, pa.large_string()).cast(pa.large_binary())
    except UnicodeEncodeError:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        return pa.array(encoded, pa.large_binary())


def _texts_of(column: pa.ChunkedArray) -> list[str]:
    try:
        texts: list[str] = column.cast(pa.large_string()).to_pylist()
    except pa.ArrowInvalid:
        texts = [text.decode("utf-8", "surrogatepass") for text in column.to_pylist()]
    return texts
