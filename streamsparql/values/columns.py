"""Columns of term ids as Arrow columns of native types.

A column has the type of its values: all of them integers, doubles, times and so on. Numbers of
several types are promoted as in SPARQL, integer to decimal to double; other mixtures are text. If
the type cannot hold all values of the column exactly, it is text, too, with one exception, which
promotion implies: a decimal among doubles is the nearest double. The metadata of a field name the
kinds of its values, and the type that represents them if it is not their own.

Inlined numbers are decoded by numpy, other terms once per distinct term: numbers, strings, IRIs and
usual dateTimes by Arrow, the rest one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import unescape_ntriples
from streamsparql.algebra.terms import XSD, Literal, Term
from streamsparql.algebra.xsd.numeric import NUMERIC_PARSERS
from streamsparql.algebra.xsd.values import value_of
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.canonical_text import (
    BLANK_SORT,
    IRI_SORT,
    PLAIN_FORM,
    TAGGED_FORM,
    TYPED_FORM,
    to_arrow,
)
from streamsparql.physical.dictionary.inline_ids import TRUE_ID, KindArray, bools_of
from streamsparql.physical.dictionary.term_dictionary import NO_NUMBER, TermDictionary
from streamsparql.values.native_column import NativeColumn
from streamsparql.values.number_columns import (
    LEXICAL,
    NUMBER_NAMES,
    number_column,
    number_kinds,
)
from streamsparql.values.time_columns import family_of, usual_time_column, value_column

_CHUNK = 1 << 20
"""The number of rows of a chunk of text: an Arrow array of strings has at most 2 GB."""


def native_column(ids: IntArray, terms: TermDictionary, exact: bool = True) -> NativeColumn:
    """Return a column of terms as native values; null for unbound.

    Decimals are Arrow decimals if `exact`, else the nearest doubles.

    >>> terms = TermDictionary()
    >>> ids = terms.encode([f'"{text}"^^<{XSD}decimal>' for text in ("2.5", "10.25")])
    >>> [str(native_column(ids, terms, exact).values.type) for exact in (True, False)]
    ['decimal128(38, 2)', 'double']
    """
    bound = ids != 0
    if not bound.any():
        return NativeColumn(pa.nulls(len(ids)), {})
    if ids.max() <= 0:
        column = _inlined_column(ids, bound, terms, exact)
        if column is not None:
            return column
    encoded = pa.array(ids, mask=None if bound.all() else ~bound).dictionary_encode()
    distinct: IntArray = encoded.dictionary.to_numpy()
    column = _typed_column(distinct, terms, exact) or _text_column(distinct, terms)
    return column._replace(values=_taken(column.values, encoded.indices))


def _taken(values: pa.Array, places: pa.Array) -> pa.Array | pa.ChunkedArray:
    if not pa.types.is_string(values.type) or len(places) <= _CHUNK:
        return values.take(places)
    chunks = [values.take(places.slice(k, _CHUNK)) for k in range(0, len(places), _CHUNK)]
    return pa.chunked_array(chunks)


def _inlined_column(
    ids: IntArray, bound: BoolArray, terms: TermDictionary, exact: bool
) -> NativeColumn | None:
    """Return inlined numbers, or booleans, as a column; None for a mixture of both."""
    every = bool(bound.all())
    shown = ids if every else np.where(bound, ids, ids.min())
    numbers = terms.numbers(shown)
    kinds = number_kinds(numbers)
    if kinds == {NO_NUMBER}:
        column: NativeColumn | None = NativeColumn.of(pa.array(shown == TRUE_ID), ["boolean"])
    else:
        column = None if NO_NUMBER in kinds else number_column(shown, numbers, kinds, terms, exact)
    if column is None or every:
        return column
    null = pa.scalar(None, column.values.type)
    return column._replace(values=pc.if_else(pa.array(bound), column.values, null))


def _typed_column(ids: IntArray, terms: TermDictionary, exact: bool) -> NativeColumn | None:
    """Return distinct terms as a column of a type other than text; None if there is none."""
    if (terms.forms(ids) != TYPED_FORM).any():
        return None
    numbers = terms.numbers(ids)
    kinds = number_kinds(numbers)
    if NO_NUMBER not in kinds:
        return number_column(ids, numbers, kinds, terms, exact)
    if len(kinds) > 1:
        return None
    column = usual_time_column(terms.bound_texts(ids))
    return column or value_column([value_of(_known(term)) for term in terms.terms_of(ids)])


def _known(term: Term | None) -> Term:
    assert term is not None
    return term


# -- text -----------------------------------------------------------------------------------------

_NAMES = {IRI_SORT: "iri", BLANK_SORT: "blank node", PLAIN_FORM: "string"}
_OTHER = "other literal"
"""The kind of literals whose datatype has no native type, such as xsd:gYear or geo:wktLiteral."""
_TYPES = ("boolean", "dateTime", "dateTimeStamp", "date", "time", "duration", "dayTimeDuration")
_NATIVE = {f"{XSD}{name}" for name in (*_TYPES, *NUMERIC_PARSERS)}
"""The datatypes whose values have a native type."""


def _text_column(ids: IntArray, terms: TermDictionary) -> NativeColumn:
    """Return distinct terms as a column of text."""
    forms, texts = terms.forms(ids), terms.bound_texts(ids)
    present = np.bincount(forms)
    names = {_NAMES[form] for form in np.flatnonzero(present).tolist() if form in _NAMES}
    if len(present) > TAGGED_FORM and present[TAGGED_FORM]:
        names |= _languages(texts.filter(pa.array(forms == TAGGED_FORM)))
    typed = set[str]()
    if len(present) > TYPED_FORM and present[TYPED_FORM]:
        typed = _literal_names(ids[forms == TYPED_FORM], terms)
    own = len(names | typed) == 1 and typed <= {_OTHER}
    return NativeColumn.of(_plain_texts(texts, forms), names | typed, "" if own else "text")


def _languages(texts: pa.Array) -> set[str]:
    tags = pc.extract_regex(texts, rf"{LEXICAL}(?P<tag>@.*)$")
    return set(pc.unique(pc.struct_field(tags, "tag")).to_pylist())


def _literal_names(ids: IntArray, terms: TermDictionary) -> set[str]:
    kinds = terms.numbers(ids).kinds
    names = {NUMBER_NAMES[kind] for kind in np.unique(kinds).tolist() if kind != NO_NUMBER}
    others = terms.terms_of(ids[kinds == NO_NUMBER])
    return names | {_name_of(term) for term in others if isinstance(term, Literal)}


def _name_of(literal: Literal) -> str:
    """Return the kind of a typed literal that is not a number.

    >>> from streamsparql.algebra.terms import IRI
    >>> _name_of(Literal("2026", IRI(XSD + "gYear"))), _name_of(Literal("x", IRI(XSD + "byte")))
    ('other literal', 'ill-typed literal')
    """
    value = value_of(literal)
    family = family_of(value)
    if family is not None:
        return family.name
    return "ill-typed literal" if value is None and literal.datatype.value in _NATIVE else _OTHER


def _plain_texts(texts: pa.Array, forms: KindArray) -> pa.Array:
    """Return IRIs and lexical forms: texts without brackets, quotes, datatypes and languages."""
    blank, ended = forms == BLANK_SORT, forms >= TAGGED_FORM
    plain = pc.binary_slice(texts.view(pa.binary()), 1, -1).view(pa.string())
    if ended.any():
        lexical = pc.struct_field(pc.extract_regex(texts, LEXICAL), "lexical")
        plain = pc.if_else(pa.array(ended), lexical, plain)
    escaped = bools_of(pc.match_substring(plain, "\\")) & ~blank
    if escaped.any():
        mask = pa.array(escaped)
        plain = pc.replace_with_mask(plain, mask, _unescaped(plain.filter(mask)))
    return pc.if_else(pa.array(blank), texts, plain) if blank.any() else plain


def _unescaped(texts: pa.Array) -> pa.Array:
    """Return canonical texts without escapes; usual ones have none but those of `_ESCAPED`.

    >>> _unescaped(pa.array(['say \\\\"a\\\\"'])).to_pylist()
    ['say "a"']
    """
    if pc.any(pc.match_substring_regex(texts, r"\\[^\"nrt]")).as_py():
        return to_arrow([unescape_ntriples(text) for text in texts.to_pylist()])
    for escape, char in _ESCAPED.items():
        texts = pc.replace_substring(texts, escape, char)
    return texts


_ESCAPED = {'\\"': '"', "\\n": "\n", "\\r": "\r", "\\t": "\t"}
