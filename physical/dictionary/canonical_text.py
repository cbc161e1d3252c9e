"""Canonical texts of terms: what `str(term)` writes, and the form of a term by its text.

The dictionary stores terms as canonical texts: each term has exactly one. Most input texts are
canonical already; a regular expression recognises them without parsing.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.ntriples import unescape_ntriples
from streamsparql.algebra.terms import IRI, XSD_STRING, BlankNode, Literal, Term
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.inline_ids import KindArray, bools_of
from streamsparql.physical.dictionary.inline_parsing import TextSpans

UNBOUND_SORT, IRI_SORT, BLANK_SORT, LITERAL_SORT = range(4)
"""The sorts of terms."""

PLAIN_FORM, TAGGED_FORM, TYPED_FORM = 3, 4, 5
"""Forms of terms: sorts, with literals divided into strings, language-tagged strings and others.
The form of a literal follows from the end of its text."""

_STRING_END = f'"^^{XSD_STRING}'
# Characters that an IRI does not contain unescaped: those that str(term) escapes, white space.
_NO_IRI = (
    r'\x00-\x20<>"{}|^`\\\x{85}\x{a0}\x{1680}'
    r"\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
)
_WRITTEN = rf'^(?:<[^{_NO_IRI}]*>|"[^"\\\x00-\x1f]*"(?:@[a-z0-9-]+|\^\^<[^{_NO_IRI}]+>)?)$'
_WRITTEN_ONE = re.compile(
    r"""<[^\x00-\x20<>"{}|^`\\\s]*>
      | "[^"\\\x00-\x1f]*"(?:@[a-z0-9-]+|\^\^<[^\x00-\x20<>"{}|^`\\\s]+>)?""",
    re.X,
)


def is_written(text: str) -> bool:
    """Return whether a text surely is an IRI or a literal as `str` writes it.

    >>> is_written("<a>"), is_written('"a"@EN'), is_written("_:a")
    (True, False, False)
    """
    return _WRITTEN_ONE.fullmatch(text) is not None and not text.endswith(_STRING_END)


def are_written(texts: pa.Array) -> BoolArray:
    """Return `is_written` of each text."""
    matches = pc.match_substring_regex(texts, _WRITTEN)
    return bools_of(pc.and_not(matches, pc.ends_with(texts, _STRING_END)).fill_null(False))


_FORMS = {"<": IRI_SORT, "_": BLANK_SORT}
_ENDS = {'"': PLAIN_FORM, ">": TYPED_FORM}
_LITERAL = re.compile(r'"((?:[^"\\]++|\\.)*+)"(?:@(.*)|\^\^<(.*)>)?', re.S)


def form_of(text: str) -> int:
    """Return the form of a term by its valid text."""
    return _FORMS.get(text[0]) or _ENDS.get(text[-1], TAGGED_FORM)


def form_of_term(term: Term, text: str) -> int:
    """Return the form of any term: a computed language tag may contain any character."""
    tagged = type(term) is Literal and term.language is not None
    return TAGGED_FORM if tagged else form_of(text)


_FORM_BY_END = np.full(256, TAGGED_FORM, np.int8)
_FORM_BY_END[ord('"')] = PLAIN_FORM
_FORM_BY_END[ord(">")] = TYPED_FORM


def forms_of(texts: pa.Array) -> KindArray:
    """Return the forms of canonical texts without blank nodes."""
    data, begin, end = TextSpans.of_array(texts)
    forms = _FORM_BY_END[data[end - 1]]
    forms[data[begin] == ord("<")] = IRI_SORT
    return forms


def term_of_text(text: str) -> Term:
    """Return the term of a canonical text, which may contain any characters.

    >>> term_of_text('"a b"@fr').language
    'fr'
    """
    if text[0] == "<":
        return IRI(unescape_ntriples(text[1:-1]))
    if text[0] == "_":
        return BlankNode(text[2:])
    match = _LITERAL.fullmatch(text)
    assert match
    lexical = unescape_ntriples(match[1])
    if match[2] is not None:
        return Literal(lexical, language=match[2])
    return (
        Literal(lexical) if match[3] is None else Literal(lexical, IRI(unescape_ntriples(match[3])))
    )


_STRING = pa.string()


def to_arrow(
    texts: npt.NDArray[np.object_] | list[str | None], kind: pa.DataType = _STRING
) -> pa.Array:
    """Return texts as an Arrow array; surrogates, which UTF-8 cannot encode, become escapes."""
    try:
        return pa.array(texts, kind)
    except UnicodeEncodeError:
        return pa.array([text and _SURROGATE.sub(_escaped, text) for text in texts], kind)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04X}"


def spread(ids: IntArray, encoded: pa.DictionaryArray) -> IntArray:
    """Return the ids of dictionary-encoded texts, given those of the distinct texts; 0 for null."""
    codes = encoded.indices
    if codes.null_count:
        codes = codes.cast(pa.int64()).fill_null(len(ids))
        ids = np.append(ids, 0)
    spread_ids: IntArray = ids[codes.to_numpy()]
    return spread_ids


def to_strings(texts: pa.Array) -> pa.Array:
    """Return strings of type `string`, with null as the empty text, which is not a term either."""
    strings = texts if texts.type == pa.string() else texts.cast(pa.string())
    return strings.fill_null("") if strings.null_count else strings
