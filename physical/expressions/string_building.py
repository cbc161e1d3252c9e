"""Vectorised evaluation of strings that are built from pieces: CONCAT, STR, IRI, STRDT and casts.

    IRI(CONCAT("http://ex.org/", STR(?station), "/", ?id))

is a template: pieces, which are constants and columns, and the kind of the result: an IRI, a
string, or a literal of a datatype. Arrow joins the pieces, without intermediate terms. Undecided
rows (a piece that is not a string, a character that must be escaped, an invalid lexical form) are
evaluated one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.expressions import Call, Constant
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.limits import fit_at_once
from streamsparql.overriding import override
from streamsparql.physical.batch import UNBOUND, BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import bools_of
from streamsparql.physical.dictionary.term_dictionary import NO_NUMBER, TermDictionary
from streamsparql.physical.expressions.evaluation import Evaluation, OneByOne
from streamsparql.physical.expressions.rows import BatchRows

_STRING = "string"
_IRI = "iri"
_CANONICAL = {
    f"{XSD}integer": r"^(?:0|-?[1-9][0-9]{0,17})$",
    f"{XSD}boolean": r"^(?:true|false)$",
    f"{XSD}dateTime": r"^[1-9][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,8}[1-9])?Z?$",
}
"""Patterns of lexical forms that a cast to a datatype leaves unchanged."""
_DOUBLE = f"{XSD}double"
_NUMERAL = r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$"
_SAFE_TEXT = r'^[^"\\\x00-\x1f]*$'
_SAFE_IRI = (
    r'^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\x{85}\x{a0}\x{1680}'
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*$"
)


_CASTS = {*_CANONICAL, _DOUBLE}


class TemplateColumn(NamedTuple):
    """A variable among the pieces: a string or, with `any`, `STR` of any term but a blank node."""

    name: str
    any: bool = False
    replaced: tuple[str, str] | None = None
    """A text in the string, and what `REPLACE` puts in its place."""


class StringTemplate(NamedTuple):
    """Pieces, and the kind of the result: "string", "iri", or the IRI of a datatype."""

    pieces: tuple[str | TemplateColumn, ...]
    becomes: str = _STRING
    cast: bool = False


def string_template(expression: Expression) -> StringTemplate | None:
    """Return an expression as a template; None for other expressions.

    >>> string_template(Call("CONCAT", (Constant(Literal("a")), Variable("x"))))
    StringTemplate(pieces=('a', TemplateColumn(name='x', any=False, replaced=None)), \
becomes='string', cast=False)
    """
    match expression:
        case Call("IRI" | "URI", (text, *_)):
            pieces = _pieces(text)
            return None if pieces is None else StringTemplate(pieces, _IRI)
        case Call("STRDT", (text, Constant(IRI(datatype)))):
            pieces = _pieces(text)
            if pieces is None or datatype.endswith(("#string", "#langString")):
                return None
            return StringTemplate(pieces, datatype)
        case Call(IRI(datatype), (text,)) if datatype in _CASTS:
            pieces = _pieces(text)
            return None if pieces is None else StringTemplate(pieces, datatype, True)
        case Call("CONCAT", _) | Call("STR", _) | Call("REPLACE", _):
            pieces = _pieces(expression)
            return None if pieces is None else StringTemplate(pieces)
    return None


def _pieces(expression: Expression) -> tuple[str | TemplateColumn, ...] | None:
    match expression:
        case Constant(Literal(lexical, datatype, None)) if datatype == XSD_STRING_IRI:
            return (lexical,)
        case Variable(name):
            return (TemplateColumn(name),)
        case Call("STR", (Variable(name),)):
            return (TemplateColumn(name, True),)
        case Call("STR", (Constant(IRI(value)),)):
            return (value,)
        case Call("STR", (Call("CONCAT", _) as inner,)):
            return _pieces(inner)
        case Call(
            "REPLACE", (Variable(name), Constant(Literal() as old), Constant(Literal() as new))
        ):
            plain = _PLAIN_PATTERN.fullmatch(old.lexical) and _PLAIN_PATTERN.fullmatch(new.lexical)
            if plain and old.datatype == new.datatype == XSD_STRING_IRI:
                return (TemplateColumn(name, False, (old.lexical, new.lexical)),)
        case Call("CONCAT", args):
            parts = [_pieces(arg) for arg in args]
            known = [part for part in parts if part is not None]
            return sum(known, ()) if known and len(known) == len(parts) else None
    return None


XSD_STRING_IRI = IRI(f"{XSD}string")
_PLAIN_PATTERN = re.compile(r"[\w :,;/<>=!@#%&'~-]+", re.ASCII)
"""Regular expressions, and replacements, that denote themselves."""


class TemplateEvaluation(Evaluation):
    """The evaluation of a template: texts of all rows are joined and encoded at once.

    >>> from streamsparql.algebra.functions import Run
    >>> from streamsparql.physical.batch import Batch
    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> terms, iri = TermDictionary(), Call("IRI", (Call("CONCAT", (Variable("x"),)),))
    >>> ids = terms.encode(['"http://a"', '"not an iri"'])
    >>> rows = BatchRows(terms, Batch({"x": ids}, ids, ids))
    >>> iris = TemplateEvaluation(string_template(iri), OneByOne(iri, Run(), [])).ids(rows)
    >>> terms.texts(iris).to_pylist()
    ['<http://a>', None]
    """

    def __init__(self, template: StringTemplate, slow: OneByOne) -> None:
        super().__init__(slow)
        self._template = template

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        if len(rows) < _FEW:
            return self.slow.ids(rows)
        pieces, becomes, cast = self._template
        if cast and len(pieces) == 1 and isinstance(pieces[0], TemplateColumn):
            if pieces[0].any or pieces[0].replaced:
                return self._from_texts(rows)
            ids = _cast_numbers(rows.ids(pieces[0].name), becomes, rows.terms)
            others = np.flatnonzero(ids == UNBOUND)
            if len(others):
                ids[others] = self._from_texts(rows.take(others))
            return ids
        return self._from_texts(rows)

    def _from_texts(self, rows: BatchRows) -> IntArray:
        """Return the values of rows whose pieces are strings, and of any other rows."""
        if len(rows) < _FEW:
            return self.slow.ids(rows)
        pieces, becomes, cast = self._template
        sure = np.ones(len(rows), np.bool_)
        read = [p if isinstance(p, str) else self._lexical(p, rows, sure) for p in pieces]
        if not _fit(read, len(rows)):
            return self.slow.ids(rows)
        columns = [p if isinstance(p, str) else p.texts.take(p.codes) for p in read]
        texts = pc.binary_join_element_wise(*columns, "")
        if not isinstance(texts, pa.Array):  # constants alone
            return self.slow.ids(rows)
        pattern = _SAFE_IRI if becomes == _IRI else _SAFE_TEXT
        sure &= bools_of(pc.match_substring_regex(texts, pattern))
        if cast:
            form = _CANONICAL.get(becomes, _NUMERAL)
            sure &= bools_of(pc.match_substring_regex(texts, form))
        if sure.all():
            return self._encoded(texts, rows)
        ids = np.zeros(len(rows), np.int64)
        known, doubtful = np.flatnonzero(sure), np.flatnonzero(~sure)
        ids[known] = self._encoded(texts.take(pa.array(known)), rows)
        ids[doubtful] = self.slow.ids(rows.take(doubtful))
        return ids

    def _encoded(self, texts: pa.Array, rows: BatchRows) -> IntArray:
        """Return the terms of valid texts."""
        _, becomes, cast = self._template
        if cast and becomes == _DOUBLE:
            return rows.terms.of_doubles(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))
        return rows.terms.encode(pc.binary_join_element_wise(*_around(becomes, texts), ""))

    def _lexical(self, column: TemplateColumn, rows: BatchRows, sure: BoolArray) -> _Lexical:
        """Return the lexical forms of a column; set `sure` to false for undecided rows."""
        ids, terms = rows.ids(column.name), rows.terms
        encoded = terms.dictionary(ids)
        texts = encoded.dictionary
        plain = bools_of(pc.match_substring_regex(texts, r'^"[^"\\]*"$'))
        if column.any:
            iris = bools_of(pc.match_substring_regex(texts, r"^<[^\\]*>$"))
            typed = bools_of(pc.match_substring_regex(texts, r'^"[^"\\]*"(@|\^\^)'))
            inner = pc.replace_substring_regex(texts, r'"(?:@|\^\^)[^"]*$', '"')
            texts = pc.if_else(pa.array(typed), inner, texts)
            plain |= iris | typed
        lexical = pc.utf8_slice_codeunits(texts, 1, -1)
        if column.replaced is not None:
            old, new = column.replaced
            lexical = pc.replace_substring(lexical, old, new)
        codes = encoded.indices
        if codes.null_count:
            sure &= bools_of(codes.is_valid())
            codes = codes.fill_null(0)
            if not len(lexical):
                return _Lexical(pa.array([""], pa.string()), codes)
        sure &= plain[codes.to_numpy()]
        return _Lexical(lexical, codes)


class _Lexical(NamedTuple):
    """The distinct lexical forms of a column, and the place of each row's form."""

    texts: pa.Array
    codes: pa.Array

    def longest(self) -> int:
        """Return the greatest number of bytes of a form."""
        return pc.max(pc.binary_length(self.texts)).as_py() or 0


def _fit(pieces: Sequence[str | _Lexical], rows: int) -> bool:
    """Return whether the joined pieces of all rows are so small that they need no checks."""
    if fit_at_once(sum(len(p) if isinstance(p, str) else p.texts.nbytes for p in pieces), rows):
        return True
    return fit_at_once(sum(len(p) if isinstance(p, str) else p.longest() for p in pieces), rows)


def _cast_numbers(ids: IntArray, becomes: str, terms: TermDictionary) -> IntArray:
    """Return the casts of numbers and booleans; 0 for other terms, and for undecided casts."""
    if becomes == _DOUBLE:
        values, kinds = terms.numbers(ids)
        numbers = kinds != NO_NUMBER
        return np.where(numbers, terms.of_doubles(np.where(numbers, values, 0.0)), UNBOUND)
    if becomes == f"{XSD}integer":
        exact, known = terms.exact_integers(ids)
        return np.where(known, terms.of_integers(np.where(known, exact, 0)), UNBOUND)
    if becomes == f"{XSD}boolean":
        both = terms.of_booleans(np.array([False, True]))
        return np.where(np.isin(ids, both), ids, UNBOUND)
    return np.zeros(len(ids), np.int64)


def _around(becomes: str, texts: pa.Array) -> tuple[str | pa.Array, ...]:
    """Return texts with their delimiters in N-Triples."""
    if becomes == _IRI:
        return "<", texts, ">"
    if becomes == _STRING:
        return '"', texts, '"'
    return '"', texts, f'"^^{IRI(becomes)}'


_FEW = 4
