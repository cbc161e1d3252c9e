"""From a query's text to its syntax tree, or to a syntax error with a hint.

A failure of the parser has a token and the terminals that were expected in its place. `_describe`
turns terminals into labels for users ("an expression", "a variable", FILTER), and `hints`
recognises common mistakes.
"""

from __future__ import annotations

import re

from streamsparql.errors import QueryError, QuerySyntaxError
from streamsparql.translator import syntax
from streamsparql.translator.build import CALLBACKS
from streamsparql.translator.hints import hint
from streamsparql.translator.hints.place import Place
from streamsparql.translator.lalr_parser import ParseFailure, ParseTable, load_table, parse_text
from streamsparql.translator.lexer import END


def parse(text: str) -> syntax.QueryUnit:
    """Return the syntax tree of a query in any of the five dialects; raise `QuerySyntaxError`.

    >>> parse("SELECT * { ?s ?p ?o }").form.select.star
    True
    """
    table = load_table()
    start = 1 if text.startswith("\ufeff") else 0
    text = " " * start + text[start:]
    try:
        query: syntax.QueryUnit = parse_text(table, text, CALLBACKS)
    except ParseFailure as failure:
        raise _syntax_error(table, text, failure) from None
    except QueryError as error:
        raise error.about(text) from None
    return query


# -- what was expected -----------------------------------------------------------------------------

_LITERALS = frozenset(
    """STRING_LITERAL1 STRING_LITERAL2 STRING_LITERAL_LONG1 STRING_LITERAL_LONG2 TRUE FALSE INTEGER
    DECIMAL DOUBLE INTEGER_POSITIVE DECIMAL_POSITIVE DOUBLE_POSITIVE INTEGER_NEGATIVE
    DECIMAL_NEGATIVE DOUBLE_NEGATIVE""".split()
)
_IRIS = frozenset(("IRIREF", "PNAME_LN", "PNAME_NS"))
_CALLS = frozenset(
    """FUNCTION_0 FUNCTION_1 FUNCTION_2 FUNCTION_3 FUNCTION_N FUNCTION_2_3 REPLACE BNODE BOUND COUNT
    AGGREGATE_FUNCTION GROUP_CONCAT EXISTS NOT TIMESTAMP OCCURRENCE""".split()
)
_SIGNED = frozenset(name for name in _LITERALS if name.endswith(("_POSITIVE", "_NEGATIVE")))
_SUM = frozenset(("PLUS", "HYPHEN"))
_COMPARISONS = frozenset(
    ("EQUAL", "LESSTHAN", "MORETHAN", "NOT_EQUAL", "LESS_OR_EQUAL", "MORE_OR_EQUAL")
)
_NODES = _LITERALS | _IRIS | {"VAR", "BLANK_NODE_LABEL", "ANON", "_NIL", "LPAR", "LSQB"}

# (label, the terminals that must all be possible, the terminals that the label then replaces)
_GROUPS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    (
        "an expression",
        _IRIS | {"VAR", "INTEGER", "FUNCTION_1", "LPAR"},
        _LITERALS | _IRIS | _CALLS | {"VAR", "LPAR", "BANG", "PLUS", "HYPHEN"},
    ),
    ("a triple pattern", _IRIS | {"VAR", "ANON", "LSQB", "OPTIONAL"}, _NODES),
    ("a term", _IRIS | {"VAR", "ANON", "LSQB"}, _NODES),
    ("a property or a path", _IRIS | {"A", "BANG"}, _IRIS | {"A", "BANG", "CIRCUMFLEX", "LPAR"}),
    ("a comparison", _COMPARISONS, _COMPARISONS | {"IN", "NOT"}),
    ("a sum", _SUM | {"SLASH", "STAR"}, _SUM | _SIGNED | {"SLASH", "STAR"}),
    ("a duration", frozenset(("INTEGER", "XSD_DURATION")), _LITERALS | {"XSD_DURATION"}),
    ("a function call", frozenset(("FUNCTION_1", "FUNCTION_2")), _CALLS),
    ("an IRI", _IRIS, _IRIS),
    ("a literal", frozenset(("STRING_LITERAL1", "INTEGER")), _LITERALS),
    ("a string", frozenset(("STRING_LITERAL1", "STRING_LITERAL_LONG1")), _LITERALS),
    ("a signed number", _SIGNED, _SIGNED),
)
_LABELS = {
    END: "the end of the query",
    "ANON": "[]",
    "BLANK_NODE_LABEL": "a blank node",
    "GROUP": "GROUP BY",
    "INTEGER": "a whole number",
    "INTEGER_NEGATIVE": "a negative number",
    "IRIREF": "an IRI in < >",
    "LANGTAG": "a language tag",
    "NAME": "a name",
    "ORDER": "ORDER BY",
    "PNAME_NS": "a prefix such as ex:",
    "TIME_UNIT": "a time unit (ms, s, m, h, d)",
    "VAR": "a variable",
    "XSD_DURATION": "a duration such as PT10S",
    "_NIL": "()",
    "_ROWS": "TRIPLES",
}
_SHOWN = 9


def _describe(table: ParseTable, terminals: frozenset[str]) -> tuple[str, ...]:
    left, labels = set(terminals), []
    for label, needed, covered in _GROUPS:
        if needed <= left:
            labels.append(label)
            left -= covered
    words, marks = [], []
    for name in sorted(left):
        written = _LABELS.get(name) or table.written.get(name, name)
        if name in _LABELS:
            labels.append(written)
        elif written[0].isalpha():
            words.append(written)
        else:
            marks.append(f"'{written}'")
    return (*labels, *words, *marks)


def _syntax_error(table: ParseTable, text: str, failure: ParseFailure) -> QuerySyntaxError:
    token = failure.token
    if token.type == END:
        token = token._replace(start=len(text.rstrip()), end=len(text.rstrip()))
        message = "unexpected end of the query"
    else:
        word = re.compile(r"\w+").match(text, token.start)
        if not token.type or (word and word.end() > token.end):
            end = word.end() if word else token.start + 1
            token = token._replace(text=text[token.start : end], end=end)
        message = f"unexpected {_quoted(token.text)}"
    expected = _describe(table, failure.expected)
    shown = expected[:_SHOWN]
    if len(expected) > _SHOWN:
        shown += (f"or {len(expected) - _SHOWN} others",)
    place = Place(table, text, token, failure.expected, expected, _CALLS, _IRIS)
    return QuerySyntaxError(message, token.span, text, expected=shown, hint=hint(place))


def _quoted(text: str) -> str:
    line = text.splitlines()[0] if text.splitlines() else text
    return repr(line if len(line) <= 40 else line[:37] + "...")
