"""Vectorised evaluation of what is written together from texts: CONCAT, STR, IRI, STRDT and casts.

    IRI(CONCAT("http://ex.org/", STR(?station), "/", ?id))

is a row of pieces, constants and columns, and what the whole becomes: an IRI, a string, a literal
of a datatype. The pieces are joined by Arrow, and no term is made of what is between. What it
cannot tell (a piece that is no string, a character that has to be escaped, a text that is none of
the datatype) is evaluated one by one, for those rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.expressions import Call, Constant
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, XSD, Literal
from streamsparql.overriding import override
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import bools_of
from streamsparql.physical.expressions.evaluation import Evaluation, OneByOne
from streamsparql.physical.expressions.rows import BatchRows

_STRING = "string"
_IRI = "iri"
_CANONICAL = {
    f"{XSD}integer": r"^(?:0|-?[1-9][0-9]{0,17})$",
    f"{XSD}boolean": r"^(?:true|false)$",
    f"{XSD}dateTime": r"^[1-9][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z?$",
}
"""What texts a cast to a datatype leaves as they are, beyond doubt."""
_DOUBLE = f"{XSD}double"
_NUMERAL = r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$"
_SAFE_TEXT = r'^[^"\\\x00-\x1f]*$'
_SAFE_IRI = (
    r'^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\x{85}\x{a0}\x{1680}'
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*$"
)


_CASTS = {*_CANONICAL, _DOUBLE}


class TemplateColumn(NamedTuple):
    """A variable among the pieces: a string as it is, or `STR` of anything but a blank node."""

    name: str
    any: bool = False


class StringTemplate(NamedTuple):
    """Pieces, and what they become: "string", "iri", or a literal of the datatype of that name."""

    pieces: tuple[str | TemplateColumn, ...]
    becomes: str = _STRING
    cast: bool = False


def string_template(expression: Expression) -> StringTemplate | None:
    """An expression as pieces; None where it is something else.

    >>> string_template(Call("CONCAT", (Constant(Literal("a")), Variable("x"))))
    StringTemplate(pieces=('a', TemplateColumn(name='x', any=False)), becomes='string', cast=False)
    """
    match expression:
        case Call("IRI" | "URI", (text, *_)):
            found = _pieces(text)
            return None if found is None else StringTemplate(found, _IRI)
        case Call("STRDT", (text, Constant(IRI(datatype)))):
            found = _pieces(text)
            if found is None or datatype.endswith(("#string", "#langString")):
                return None
            return StringTemplate(found, datatype)
        case Call(IRI(datatype), (Variable(name),)) if datatype in _CASTS:
            return StringTemplate((TemplateColumn(name),), datatype, True)
        case Call("CONCAT", _) | Call("STR", _):
            found = _pieces(expression)
            return None if found is None else StringTemplate(found)
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
        case Call("CONCAT", args):
            found = [_pieces(arg) for arg in args]
            known = [some for some in found if some is not None]
            return sum(known, ()) if known and len(known) == len(found) else None
    return None


XSD_STRING_IRI = IRI(f"{XSD}string")


class TemplateEvaluation(Evaluation):
    """Texts of several rows, joined and encoded at once.

    >>> from streamsparql.algebra.functions import Run
    >>> from streamsparql.physical.batch import Batch
    >>> from streamsparql.physical.dictionary.term_dictionary import TermDictionary
    >>> terms, made = TermDictionary(), Call("IRI", (Call("CONCAT", (Variable("x"),)),))
    >>> ids = terms.encode(['"http://a"', '"no iri"'])
    >>> rows = BatchRows(terms, Batch({"x": ids}, ids, ids))
    >>> found = TemplateEvaluation(string_template(made), OneByOne(made, Run(), [])).ids(rows)
    >>> terms.texts(found).to_pylist()
    ['<http://a>', None]
    """

    def __init__(self, string_template: StringTemplate, slow: OneByOne) -> None:
        super().__init__(slow)
        self._wording = string_template

    @override
    def ids(self, rows: BatchRows) -> IntArray:
        if len(rows) < _FEW:
            return self.slow.ids(rows)
        pieces, becomes, cast = self._wording
        sure = np.ones(len(rows), np.bool_)
        columns = [p if isinstance(p, str) else self._lexical(p, rows, sure) for p in pieces]
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
        found = np.zeros(len(rows), np.int64)
        known, doubtful = np.flatnonzero(sure), np.flatnonzero(~sure)
        found[known] = self._encoded(texts.take(pa.array(known)), rows)
        found[doubtful] = self.slow.ids(rows.take(doubtful))
        return found

    def _encoded(self, texts: pa.Array, rows: BatchRows) -> IntArray:
        """The terms that texts become, of which there is no doubt."""
        _, becomes, cast = self._wording
        if cast and becomes == _DOUBLE:
            return rows.terms.of_doubles(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))
        return rows.terms.encode(pc.binary_join_element_wise(*_around(becomes, texts), ""))

    def _lexical(self, column: TemplateColumn, rows: BatchRows, sure: BoolArray) -> pa.Array:
        """The texts of a column's terms; those that need a closer look are no longer `sure`."""
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
        codes = encoded.indices
        if codes.null_count:
            sure &= bools_of(codes.is_valid())
            codes = codes.fill_null(0)
            if not len(lexical):
                return pa.array([""] * len(rows), pa.string())
        at = codes.to_numpy()
        sure &= plain[at]
        return lexical.take(codes)


def _around(becomes: str, texts: pa.Array) -> tuple[str | pa.Array, ...]:
    """What is before a text and after it, where it has become what it becomes."""
    if becomes == _IRI:
        return "<", texts, ">"
    if becomes == _STRING:
        return '"', texts, '"'
    return '"', texts, f'"^^{IRI(becomes)}'


_FEW = 4
