"""Rules for operators and constants of other languages."""

from __future__ import annotations

import re

from streamsparql.translator.hints.functions import function_like
from streamsparql.translator.hints.place import Place

_OPERAND = r"(\??[\w:.]+|\"[^\"]*\"|'[^']*')"
_MATCHES = "write CONTAINS(?x, 'a'), STRSTARTS(?x, 'a') or REGEX(?x, 'a.*z')"
_OPERATORS = {
    "AND": "write &&",
    "OR": "write ||",
    "<>": "write !=",
    "LIKE": _MATCHES,
    "ILIKE": "write REGEX(?x, 'a', 'i')",
    "RLIKE": _MATCHES,
    "SIMILAR": _MATCHES,
    "MATCHES": _MATCHES,
    "OVER": "there are no window functions; group in a subquery: { SELECT ?k (.. AS ?n) .. }",
    "^": "there is no power; multiply: ?x * ?x",
}
_CASTS = {
    **dict.fromkeys(("INT", "INTEGER", "BIGINT", "SMALLINT", "LONG", "INT64"), "xsd:integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL", "FLOAT64"), "xsd:double"),
    **dict.fromkeys(("DECIMAL", "NUMERIC", "NUMBER"), "xsd:decimal"),
    **dict.fromkeys(("VARCHAR", "CHAR", "TEXT", "STRING"), "STR"),
    **dict.fromkeys(("BOOL", "BOOLEAN"), "xsd:boolean"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "DATE", "TIMESTAMPTZ"), "xsd:dateTime"),
}
"""The casts by the types of SQL."""


def sql_between(at: Place) -> str:
    """Recognise `?x BETWEEN 1 AND 5`."""
    if at.word != "BETWEEN" or not at.after_operand:
        return ""
    value = at.last_text()
    if bounds := re.match(rf"\s*{_OPERAND}\s+AND\s+{_OPERAND}", at.after, re.I):
        return f"write {value} >= {bounds[1]} && {value} <= {bounds[2]}"
    return f"write {value} >= 1 && {value} <= 5"


def is_null(at: Place) -> str:
    """Recognise `?x IS NULL`."""
    if at.word not in ("IS", "ISNULL", "NOTNULL") or not at.after_operand:
        return ""
    value = at.last_text() if at.last_text().startswith("?") else "?x"
    test = re.match(r"\s*(NOT\s+)?(NULL|TRUE|FALSE)?", at.after, re.I)
    assert test is not None, "each part is optional"
    if test[2] and test[2].upper() != "NULL":
        return f"write {value} = {test[2].lower()}"
    return f"write {'' if test[1] or at.word == 'NOTNULL' else '!'}BOUND({value})"


def remainder(at: Place) -> str:
    """Recognise `?x % 2`, `?x MOD 2` and `MOD(?x, 2)`."""
    if at.word not in ("%", "MOD", "DIV"):
        return ""
    if at.at_operand and len(at.arguments) == 2:
        left, right = at.arguments
    elif at.after_operand and (operand := re.match(rf"\s*{_OPERAND}", at.after)):
        left, right = at.last_text(), operand[1]
    else:
        return ""
    whole = f"FLOOR({left} / {right})"
    if at.word == "DIV":
        return f"write {whole}"
    return f"there is no remainder operator; write {left} - {right} * {whole}"


def case(at: Place) -> str:
    """Recognise `CASE WHEN .. THEN .. ELSE .. END`."""
    if at.word != "CASE" or not at.at_operand:
        return ""
    parts = re.match(
        r"\s*WHEN\s+(.+?)\s+THEN\s+(\S+)\s+ELSE\s+(\S+)\s+END\b", at.after, re.I | re.S
    )
    if parts and "WHEN" not in parts[1].upper().split():
        return f"write IF({parts[1]}, {parts[2]}, {parts[3]})"
    return "write IF(condition, value, IF(condition, value, other value))"


def sql_cast(at: Place) -> str:
    """Recognise `CAST(?x AS INTEGER)`."""
    if at.word not in ("CAST", "CONVERT", "TRY_CAST", "SAFE_CAST") or not at.at_operand:
        return ""
    parts = re.match(r"\s*\(\s*(\S+)\s+AS\s+(\w+)", at.after, re.I)
    if parts is None:
        return "write xsd:integer(?x), xsd:decimal(?x), xsd:dateTime(?x) or STR(?x)"
    return f"write {_CASTS.get(parts[2].upper(), f'xsd:{parts[2].lower()}')}({parts[1]})"


def operators(at: Place) -> str:
    """Recognise other operators, negations, lists and methods."""
    if at.after_operand and at.word in _OPERATORS:
        return (_like(at) if at.word == "LIKE" else "") or _OPERATORS[at.word]
    if at.terminals == {"IN"} and at.last() == "NOT":
        return "negate the whole condition: !( .. )"
    if at.last() == "NOT" and "EXISTS" in at.terminals and "IN" not in at.terminals:
        return "write !( .. ) to negate a condition; NOT belongs to NOT EXISTS and NOT IN"
    if at.last() == "IN" and "LPAR" in at.terminals:
        return "write the values in brackets: IN (1, 2)"
    if at.word == "FILTER" and at.last() == ")" and "AS" in at.terminals:
        tested = re.match(r"\s*\(\s*WHERE\s+([^()]+)\)", at.after, re.I)
        condition = tested[1] if tested else "condition"
        return f"to count under a condition, write SUM(IF({condition}, 1, 0))"
    if at.token.text == "." and at.after_operand:
        return _method(at)
    return ""


def _like(at: Place) -> str:
    """Return the function for a pattern with % at its start, at its end, or at both."""
    pattern = re.match(r"\s*'(%?)([^%_']+)(%?)'", at.after)
    if pattern is None or not pattern[1] + pattern[3]:
        return ""
    kind = ("CONTAINS" if pattern[3] else "STRENDS") if pattern[1] else "STRSTARTS"
    return f"write {kind}({at.last_text()}, '{pattern[2]}')"


def _method(at: Place) -> str:
    """Recognise `?x.name` and `?x.name(..)`."""
    name, value = re.match(r"(\w+)(\s*\()?", at.after), at.last_text()
    if name is None or not value.startswith("?"):
        return ""
    if name[2]:
        function = function_like(at, name[1]) or "STRSTARTS"
        return f"functions are not methods; write {function}({value}, ..)"
    return f"a property is a triple pattern: {value} :{name[1]} ?{name[1]}"


def constants(at: Place) -> str:
    """Recognise NULL, intervals and times of SQL."""
    if at.word in ("NULL", "NIL", "NONE") and "VAR" in at.terminals:
        return "RDF has no null: leave the pattern out, or test a variable with !BOUND(?x)"
    if at.word == "INTERVAL" and at.at_operand:
        return "a length of time belongs in a window: WINDOW RANGE 5 MINUTE"
    literal = at.token.type.startswith("STRING") and at.last() in ("TIMESTAMP", "DATE", "TIME")
    if literal or (at.word in ("DATE", "DATETIME") and re.match(r"\s*['\"]", at.after)):
        return 'write a time as "2026-01-31T12:00:00Z"^^xsd:dateTime'
    return ""
