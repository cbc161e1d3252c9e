"""Operators of physical plans learn here to show themselves, as logical plans do in `plans`.

What computes plans knows nothing of pictures, and what explains them does not load what computes.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamsparql.look.explain.boxes.physical import physical_box
from streamsparql.look.explain.formats.html import fragment
from streamsparql.look.explain.formats.plain_text import plain
from streamsparql.look.plan_displays import prefixes_of, with_prefixes
from streamsparql.physical.operator import Operator


def _as_html(root: Operator) -> str:
    """An operator, with all that it reads."""
    return fragment(physical_box(root, prefixes_of(root)))


def _as_text(root: Operator) -> str:
    return plain(physical_box(root, prefixes_of(root)))


def learned(root: Operator, prefixes: Mapping[str, str]) -> Operator:
    """The operator; it, and any other, is now a picture in a notebook, and prints as a tree."""
    Operator._repr_html_ = _as_html  # type: ignore[attr-defined]
    Operator.__str__ = _as_text  # type: ignore[method-assign, assignment]
    found: Operator = with_prefixes(root, prefixes)
    return found
