"""Hints for syntax errors: the mistake that the text at an unexpected token shows, and its repair.

Most mistakes are habits of another language: SQL, Turtle, or a language of this family. Each rule
is a function from the `Place` of the unexpected token to a hint, or to an empty string. `RULES`
lists them; the first hint is shown.
"""

from __future__ import annotations

from collections.abc import Callable

from streamsparql.translator.hints import clauses, expressions, functions, names, windows
from streamsparql.translator.hints.place import Place

RULES: tuple[Callable[[Place], str], ...] = (
    names.characters,
    names.prologue,
    clauses.sql_text,
    clauses.first_word,
    clauses.unclosed,
    windows.event_operators,
    windows.durations,
    windows.misplaced_windows,
    expressions.sql_between,
    expressions.is_null,
    expressions.remainder,
    expressions.case,
    expressions.sql_cast,
    expressions.operators,
    expressions.constants,
    clauses.naming,
    functions.aggregates,
    functions.brackets,
    clauses.order,
    clauses.ends,
    functions.unknown,
    clauses.patterns,
    names.bare_iri,
    names.spelling,
    names.bare_name,
)


def hint(place: Place) -> str:
    """Return the hint of the first rule that recognises the mistake; empty if there is none."""
    return next(filter(None, (rule(place) for rule in RULES)), "")
