"""Write the TextMate grammar of queries from the words and patterns of the parse table.

    python editors/make_grammar.py

tests/project/test_editors.py compares the file with what this program would write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streamsparql.translator.parse_table import PATTERNS, WORDS

TARGET = Path(__file__).parent / "vscode" / "syntaxes" / "streamsparql.tmLanguage.json"

SCOPES = {
    "keyword.other.window": "RANGE SLIDE FIXED ELEMS STEP TUMBLING WINDOW ON NOW ALL TO",
    "keyword.other.stream": "REGISTER COMPUTED EVERY QUERY STREAM RSTREAM ISTREAM DSTREAM",
    "keyword.operator.word": "IN NOT EXISTS SEQ EQUALS OPTIONALSEQ EQUALSOPTIONAL UNION MINUS",
    "constant.language": "TRUE FALSE UNDEF",
}
"""The terminals of keywords whose scope is not that of other keywords."""

FUNCTIONS = frozenset(
    """
    AGGREGATE_FUNCTION BNODE BOUND COUNT FUNCTION_0 FUNCTION_1 FUNCTION_2 FUNCTION_2_3 FUNCTION_3
    FUNCTION_N GROUP_CONCAT OCCURRENCE REPLACE TIMESTAMP
    """.split()
)
"""The terminals of built-in functions, which are names of functions before a parenthesis only."""

STRINGS = [
    ("string.quoted.triple", '"""', '"""'),
    ("string.quoted.triple", "'''", "'''"),
    ("string.quoted.double", '"', r'"|$'),
    ("string.quoted.single", "'", r"'|$"),
]

NUMBERS = ("DOUBLE", "DECIMAL", "INTEGER")


def grammar() -> dict[str, Any]:
    """Return the TextMate grammar."""
    scopes = {name: scope for scope, names in SCOPES.items() for name in names.split()}
    words: dict[str, list[str]] = {}
    for word, terminals in WORDS.items():
        kinds = {
            "support.function" if name in FUNCTIONS else scopes.get(name, "keyword.control")
            for name in terminals
            if name != "A"
        }
        for kind in kinds:
            words.setdefault(kind, []).append(word)
    functions = words.pop("support.function")
    return {
        "name": "Streaming SPARQL",
        "scopeName": "source.streamsparql",
        "fileTypes": ["rq", "sparql"],
        "patterns": [
            _match("comment.line.number-sign", r"#.*$"),
            _match("string.other.iri", PATTERNS["IRIREF"]),
            *(_string(*string) for string in STRINGS),
            _match("variable.other", r"[?$][\w·]+(?:-(?![\w.-]*[:(])[A-Za-z_]\w*)*"),
            _match("entity.name.tag.blank", r"_:[\w](?:[\w.-]*[\w-])?"),
            _prefixed_name(),
            _match("storage.type.datatype", r"\^\^"),
            _match("storage.modifier.language", r"@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*"),
            _match("constant.numeric.duration", r"\b" + PATTERNS["XSD_DURATION"]),
            _match(
                "constant.numeric.duration",
                rf"(?<![\w.])(?:[0-9]+\s*{PATTERNS['TIME_UNIT']})+",
            ),
            _match("constant.numeric", "|".join(PATTERNS[name] for name in NUMBERS)),
            {
                "match": rf"(?i)\b(REGISTER)\s+(QUERY|STREAM)\s+({PATTERNS['NAME']})",
                "captures": {
                    "1": {"name": _scope("keyword.other.stream")},
                    "2": {"name": _scope("keyword.other.stream")},
                    "3": {"name": _scope("entity.name.function")},
                },
            },
            _match("support.function", rf"(?i)\b(?:{_any(functions)})\b(?=\s*\()"),
            *(
                _match(kind, rf"(?i)\b(?:{_any(keywords)})\b")
                for kind, keywords in sorted(words.items())
            ),
            _match("support.function", rf"(?i)\b(?:{_any(functions)})\b"),
            _match("keyword.other.type", r"(?<![\w:.-])a(?![\w:.-])"),
            _match("keyword.operator", r"&&|\|\||!=|<=|>=|[=<>!?+*/^|-]"),
            _match("punctuation", r"[{}()\[\].,;]"),
        ],
    }


def text() -> str:
    """Return the grammar as the text of its file."""
    return json.dumps(grammar(), indent=2, ensure_ascii=True) + "\n"


def _scope(kind: str) -> str:
    return f"{kind}.streamsparql"


def _match(kind: str, pattern: str) -> dict[str, Any]:
    return {"name": _scope(kind), "match": pattern}


def _string(kind: str, begin: str, end: str) -> dict[str, Any]:
    escape = _match(
        "constant.character.escape", r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
    )
    wrong = _match("invalid.illegal.escape", r"\\.")
    return {"name": _scope(kind), "begin": begin, "end": end, "patterns": [escape, wrong]}


def _prefixed_name() -> dict[str, Any]:
    """Return the pattern of a prefixed name: its prefix is a namespace, its local part a name."""
    return {
        "match": r"((?:[A-Za-z\u00C0-\uFFFD](?:[\w.-]*[\w-])?)?:)"
        r"((?:[\w:]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])"
        r"(?:(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])*"
        r"(?:[\w:-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]))?)?",
        "captures": {
            "1": {"name": _scope("entity.name.namespace")},
            "2": {"name": _scope("entity.name.tag.local")},
        },
    }


def _any(words: list[str]) -> str:
    """Return a pattern of any of these words, longer ones first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
