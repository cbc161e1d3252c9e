"""Rules for clauses, for separators of patterns, and for text that is not a query."""

from __future__ import annotations

import re

from streamsparql.errors import position
from streamsparql.translator.hints.place import Place
from streamsparql.translator.lexer import END

_SQL = re.compile(
    r"SELECT\s+(?:DISTINCT\s+|ALL\s+|TOP\s+\d+\s+)?(?P<columns>\*|[^?${}<>]{1,200}?)\s+FROM\s+"
    r"(?P<table>[\w.\"`]+)(?=\s|;|$)[^{}]*$",
    re.I,
)
_COLUMN = re.compile(r"(?<![\w.(])([A-Za-z_]\w*)(?![\w(])")
_UPDATE = "SPARQL Update is not supported; write a query"
_EMIT = "when rows are emitted is an option of the run: --emit, or emit= in Python"
_FIRST_WORDS = {
    **dict.fromkeys("INSERT DELETE LOAD CLEAR DROP COPY MOVE ADD UPDATE MERGE".split(), _UPDATE),
    "CREATE": "name streams in FROM STREAM, and pass them to the run; there is nothing to create",
    "WITH": "write a subquery in braces, where it is used: { SELECT .. { .. } }",
    "EMIT": _EMIT,
    "EXPLAIN": "use streamsparql explain, or query.explain()",
}
_JOINED = "the patterns of a group are joined: { ?x :a ?a . ?x :b ?b }"
_PATTERNS = {
    "LEFT": "write OPTIONAL { .. }",
    "FULL": "there is no full join; write { .. } UNION { .. }",
    "RIGHT": "swap the two sides, and write OPTIONAL { .. }",
    **dict.fromkeys(("JOIN", "INNER", "CROSS", "NATURAL", "INTERSECT"), _JOINED),
    "EXCEPT": "write MINUS { .. } or FILTER NOT EXISTS { .. }",
    **dict.fromkeys(("TOP", "FETCH"), "write LIMIT 5 at the end of the query"),
    "EMIT": _EMIT,
}
_TITLES = {"GROUP": "GROUP BY", "ORDER": "ORDER BY", "WHERE": "the braces of WHERE"}
_NODES = frozenset(
    """STRING_LITERAL1 STRING_LITERAL2 STRING_LITERAL_LONG1 STRING_LITERAL_LONG2 TRUE FALSE INTEGER
    DECIMAL DOUBLE INTEGER_POSITIVE DECIMAL_POSITIVE DOUBLE_POSITIVE INTEGER_NEGATIVE
    DECIMAL_NEGATIVE DOUBLE_NEGATIVE IRIREF PNAME_LN PNAME_NS VAR BLANK_NODE_LABEL ANON _NIL LPAR
    LSQB""".split()
)


def sql_text(at: Place) -> str:
    """Recognise SQL: columns and a table without question marks, and no braces."""
    start = next((t.start for t in at.before if t.text.upper() == "SELECT"), None)
    match = None if start is None else _SQL.match(at.text, start, start + 1000)
    if match is None or match["table"].upper() in ("STREAM", "NAMED", "GRAPH"):
        return ""
    named = dict.fromkeys(_COLUMN.findall(match["columns"]))
    columns = [name for name in named if name.upper() != "AS"][:3] or ["value"]
    properties = " ; ".join(f"<{name}> ?{name}" for name in columns)
    source = match["table"].strip('`"')
    return (
        f"this is SQL; a query binds a variable per column: SELECT ?{' ?'.join(columns)}"
        f" FROM STREAM <{source}> WINDOW RANGE 1 MINUTE {{ ?row {properties} }}"
    )


def first_word(at: Place) -> str:
    """Recognise the first word of a statement that is not a query."""
    return "" if "SELECT" not in at.terminals or at.open_brackets else _FIRST_WORDS.get(at.word, "")


def unclosed(at: Place) -> str:
    """Recognise brackets that are not closed."""
    if at.closing not in at.terminals or at.token.type not in (END, "RBRACE", "RPAR", "RSQB"):
        return ""
    opened = at.open_brackets[-1]
    line, column = position(at.text, opened.start)
    return f"close the {opened.text} at line {line}, column {column}"


def naming(at: Place) -> str:
    """Recognise names of columns that lack AS, a question mark or their brackets."""
    if at.last() == "AS" and at.is_word and "VAR" in at.terminals:
        return f"a variable starts with a question mark: ?{at.token.text}"
    if "AS" not in at.terminals:
        return ""
    if at.token.type == "VAR":
        return f"write AS before {at.token.text}"
    if at.token.text != ")" or not at.open_brackets:
        return ""
    if at.last(2) == "(" and at.last(3) in ("DISTINCT", "REDUCED"):
        return f"write {at.last(3)} {at.last_text()}, without brackets"
    opened = at.open_brackets[-1]
    inside = at.text[opened.end : at.token.start].strip()
    called = next((t for t in reversed(at.before) if t.start < opened.start), None)
    if called is not None and called.text.upper() == "BIND":
        assigned = re.match(r"(\?\w+)\s*=\s*(.+)", inside, re.S)
        value, name = (assigned[2], assigned[1]) if assigned else (inside, "?name")
        return f"write BIND({value} AS {name})"
    alias = re.match(r"\s*AS\s*(\?\w+)", at.after, re.I)
    return f"write the name inside the brackets: ({inside} AS {alias[1] if alias else '?name'})"


def order(at: Place) -> str:
    """Recognise clauses in the wrong order or twice, and keys with commas or without BY."""
    if at.open_brackets or not at.clauses:
        return ""
    if "SELECT" not in at.terminals:
        if at.word == "WHERE" and "GROUP" in at.clauses:
            return "a condition on groups is HAVING( .. )"
        if at.word == "WHERE" and "WHERE" in at.clauses:
            return "a query has one WHERE; write both patterns in its braces"
        if later := at.later_clause(at.word):
            return f"write {_TITLES.get(at.word, at.word)} before {_TITLES.get(later, later)}"
    if at.last() in ("GROUP", "ORDER") and "BY" in at.terminals:
        return f"write {at.last()} BY"
    if at.token.text == "," and at.clauses[-1] in ("GROUP", "ORDER"):
        return f"write the keys of {at.clauses[-1]} BY without commas"
    if at.token.text == "," and at.clauses[-1] == "LIMIT":
        number = re.match(r"\s*(\d+)", at.after)
        return f"write LIMIT {number[1] if number else 10} OFFSET {at.last_text()}"
    return ""


def ends(at: Place) -> str:
    """Recognise marks after the end of a query, and a pattern without braces."""
    if at.open_brackets:
        return ""
    if at.token.text in (";", ".") and END in at.terminals:
        return f"a query ends without a {'semicolon' if at.token.text == ';' else 'full stop'}"
    if at.token.text == "}" and END in at.terminals:
        return "remove this }: it closes nothing"
    if {"LBRACE", "WHERE"} <= at.terminals and at.token.type in ("VAR", "LPAR"):
        return "write the pattern in braces: WHERE { .. }"
    return ""


def patterns(at: Place) -> str:
    """Recognise joins of SQL, and wrong separators between triples."""
    if at.word in _PATTERNS and at.is_word:
        return _PATTERNS[at.word]
    if at.word == "UNION" and not at.open_brackets:
        return "write the alternatives in the braces of WHERE: { { .. } UNION { .. } }"
    if {"DOT", "SEMICOLON"} <= at.terminals and at.token.type in _NODES:
        for back, mark in ((3, ";"), (2, ",")):
            if at.last(back) == mark:
                subject = at.last_text(back - 1)
                return f"write '.' instead of '{mark}' before {subject}: a subject follows"
        return "write a '.' between two triple patterns"
    if at.word == "GRAPH" and "VAR" in at.terminals and "UNION" not in at.terminals:
        return "a CONSTRUCT template has triples only; remove the GRAPH"
    if at.word == "CONSTRUCT" and "OPTIONAL" in at.terminals:
        return "a subquery is a SELECT"
    return ""
