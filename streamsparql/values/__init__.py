"""Native values: terms as Python values, and columns of terms as typed Arrow columns.

Numbers, booleans, strings, dates, times and durations have a native type; IRIs, blank nodes and all
other literals are text. docs/embedding.md has the table for users.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from streamsparql.errors import EngineError

Values: TypeAlias = Literal["native", "terms"]
"""How a table represents terms: by native values, or in N-Triples syntax."""


def check_values(values: str) -> None:
    """Raise an error for an unknown representation of terms.

    >>> check_values("python")
    Traceback (most recent call last):
    streamsparql.errors.EngineError: values must be native or terms, not 'python'
    """
    if values not in ("native", "terms"):
        raise EngineError(f"values must be native or terms, not {values!r}")
