"""Rules for calls: functions that have another name or are missing, aggregates, brackets."""

from __future__ import annotations

import re
from difflib import get_close_matches

from streamsparql.translator.hints.place import Place
from streamsparql.translator.lexer import END

_RENAMED = {
    **dict.fromkeys(("LENGTH", "LEN", "CHAR_LENGTH"), "STRLEN"),
    "UPPER": "UCASE",
    "LOWER": "LCASE",
    **dict.fromkeys(("SUBSTRING", "MID"), "SUBSTR"),
    **dict.fromkeys(("STARTSWITH", "STARTS_WITH"), "STRSTARTS"),
    **dict.fromkeys(("ENDSWITH", "ENDS_WITH"), "STRENDS"),
    **dict.fromkeys(("INSTR", "CHARINDEX", "STRPOS"), "CONTAINS"),
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_LIKE", "REGEXP_CONTAINS"), "REGEX"),
    "REGEXP_REPLACE": "REPLACE",
    "CEILING": "CEIL",
    **dict.fromkeys(("NVL", "IFNULL"), "COALESCE"),
    **dict.fromkeys(("IIF", "IFF"), "IF"),
    "HOUR": "HOURS",
    "MINUTE": "MINUTES",
    "SECOND": "SECONDS",
    "TYPEOF": "DATATYPE",
    **dict.fromkeys(("MEAN", "AVERAGE"), "AVG"),
    "ANY_VALUE": "SAMPLE",
}
"""Functions of SQL that have another name here, and the same arguments."""

_TIME = (
    "windows group by time: FROM STREAM <s> WINDOW RANGE 1 HOUR FIXED; HOURS(?t) and DAY(?t) are"
    " parts of a time"
)
_PARTS = "write YEAR(?x), MONTH(?x), DAY(?x), HOURS(?x) or MINUTES(?x)"
_RANKS = "there are no window functions; ORDER BY with LIMIT ranks the rows of each instant"
_EARLIER = "a row has no earlier row; join two windows: docs/time.md"
_VALIDITY = "each row has its validity: the columns start and end"
_MISSING = {
    "LEFT": "write SUBSTR(?x, 1, 3)",
    "ISNULL": "write !BOUND(?x)",
    "NULLIF": "write IF(?x = ?y, ?unbound, ?x)",
    **dict.fromkeys(("EXTRACT", "DATE_PART", "DATEPART"), _PARTS),
    **dict.fromkeys(
        ("STRING_AGG", "LISTAGG", "ARRAY_AGG"), "write GROUP_CONCAT(?x; SEPARATOR=', ')"
    ),
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), "write SUM(IF(condition, 1, 0))"),
    **dict.fromkeys(("CURRENT_TIMESTAMP", "GETDATE"), "write NOW(): the start of the run"),
    **dict.fromkeys(("DATE_TRUNC", "DATE_BIN", "TIME_BUCKET"), _TIME),
    **{
        name: f"there is no {name}; the functions of numbers are ABS, CEIL, FLOOR and ROUND"
        for name in ("SQRT", "POWER", "POW", "EXP", "LN", "LOG", "LOG10", "SIN", "COS", "SIGN")
    },
    **{
        name: f"there is no {name}; the aggregates are COUNT, SUM, AVG, MIN, MAX, SAMPLE and"
        " GROUP_CONCAT"
        for name in ("MEDIAN", "STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP", "PERCENTILE_CONT")
    },
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"), _RANKS),
    **dict.fromkeys(("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "FIRST", "LAST"), _EARLIER),
    "GREATEST": "write IF(?x > ?y, ?x, ?y)",
    "LEAST": "write IF(?x < ?y, ?x, ?y)",
    "TRIM": "write REPLACE(?x, '^ +| +$', '')",
    **dict.fromkeys(("WINDOW_START", "WINDOW_END"), _VALIDITY),
}
"""Functions of SQL that are missing, with what replaces them."""

WINDOW_FUNCTIONS = (
    "TUMBLE", "TUMBLING", "TUMBLE_START", "TUMBLE_END", "HOP", "HOPPING", "HOP_START", "HOP_END",
    "SLIDING", "CUMULATE", "SESSION",
)  # fmt: skip
"""Windows that other languages write as functions."""


def unknown(at: Place) -> str:
    """Recognise a call of a function that has another name here, or is missing."""
    if not (at.calls & at.terminals) or not at.is_word:
        return ""
    if at.word in _MISSING:
        return _MISSING[at.word]
    if not at.after.lstrip().startswith("(") or at.word in WINDOW_FUNCTIONS:
        return ""
    if at.word in _RENAMED:
        return f"write {_RENAMED[at.word]}({', '.join(at.arguments) or '..'})"
    if near := function_like(at, at.word):
        return f"did you mean {near}?"
    return f"there is no function {at.word}; docs/language.md lists the functions"


def function_like(at: Place, name: str) -> str:
    """Return the function that a name means, by another name or almost by its own; or nothing."""
    if name.upper() in _RENAMED:
        return _RENAMED[name.upper()]
    kinds = at.calls - {"EXISTS", "NOT"}
    known = [word for word, types in at.table.words.items() if kinds & {*types} and word.isupper()]
    close = get_close_matches(name.upper().replace("_", ""), known, 1, 0.75)
    return close[0] if close else ""


def aggregates(at: Place) -> str:
    """Recognise wrong arguments of aggregates."""
    opened = at.open_brackets[-1].start if at.open_brackets else -1
    kind = next((token.type for token in reversed(at.before) if token.end <= opened), "")
    if kind == "GROUP_CONCAT" and at.token.text == ",":
        separator = re.match(r"\s*(\"[^\"]*\"|'[^']*')", at.after)
        return f"write GROUP_CONCAT(?x; SEPARATOR={separator[1] if separator else repr(', ')})"
    if kind in ("COUNT", "AGGREGATE_FUNCTION") and at.token.text == ",":
        return "an aggregate has one argument; CONCAT joins several values to one"
    return "write COUNT(*)" if at.token.type == "_NIL" and at.last() == "COUNT" else ""


def brackets(at: Place) -> str:
    """Recognise calls, conditions and keys that lack their brackets."""
    if at.terminals <= {"LPAR", "_NIL"} and at.before:
        return _called_without(at)
    condition = "LPAR" in at.terminals and at.calls & at.terminals and "VAR" not in at.terminals
    if at.token.type == "VAR" and condition:
        return "write the condition in brackets: ( .. )"
    return ""


def _called_without(at: Place) -> str:
    name, kind = at.last(), at.before[-1].type
    if name == "BIND":
        return "write BIND(expression AS ?name)"
    if name in ("ASC", "DESC"):
        key = at.last_text(2) if at.token.type != "VAR" else at.token.text
        return f"write {name}({key if key.startswith('?') else '..'})"
    if kind == "COUNT":
        return "write COUNT(*) or COUNT(?x)"
    return f"write {name}(..)" if at.token.type != END else ""
