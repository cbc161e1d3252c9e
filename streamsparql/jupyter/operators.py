"""Operators of physical plans learn here how a notebook shows them.

What computes plans knows nothing of pictures, and what explains them does not load what computes.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamsparql.explain.html import fragment
from streamsparql.explain.physical import physical_box
from streamsparql.explain.text import Ink, tree
from streamsparql.physical.operator import Operator
from streamsparql.plans import prefixes_of, with_prefixes


def _as_html(root: Operator) -> str:
    """An operator, with all that it reads."""
    return fragment(physical_box(root, prefixes_of(root)))


def _as_text(root: Operator) -> str:
    return "\n".join(tree(physical_box(root, prefixes_of(root)), Ink(False), 100))


def learned(root: Operator, prefixes: Mapping[str, str]) -> Operator:
    """The operator; a notebook now shows it, and any other, as a picture, and it prints as text."""
    Operator._repr_html_ = _as_html  # type: ignore[attr-defined]
    Operator.__str__ = _as_text  # type: ignore[method-assign, assignment]
    found: Operator = with_prefixes(root, prefixes)
    return found
