"""What users can do with plans that the algebra itself knows nothing of: look at one, compare two.

The algebra imports neither pictures nor random data, so its plans learn both here. Whatever hands
plans to users imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamsparql.algebra.plan import Plan

if TYPE_CHECKING:
    from streamsparql.look.equivalence import Equivalence
    from streamsparql.look.explain.boxes.box import Box

_PREFIXES = "_prefixes"


def with_prefixes(root: Any, prefixes: Mapping[str, str]) -> Any:
    """A plan, logical or physical, which shows itself with a query's prefixes from now on."""
    root.__dict__.setdefault(_PREFIXES, prefixes)
    return root


def prefixes_of(root: Any) -> Mapping[str, str]:
    """The prefixes that a plan shows itself with."""
    found: Mapping[str, str] = root.__dict__.get(_PREFIXES, {})
    return found


def box_of(plan: Plan) -> Box:
    """What a plan is drawn from."""
    from streamsparql.look.explain.boxes.logical import plan_box

    return plan_box(plan, prefixes_of(plan))


def _as_html(plan: Plan) -> str:
    """How a notebook shows a plan."""
    from streamsparql.look.explain.formats.html import fragment

    return fragment(box_of(plan))


def _as_text(plan: Plan) -> str:
    """How a plan prints: as a tree.

    >>> import streamsparql
    >>> print(streamsparql.compile("ASK { ?x <p> ?y }").logical)
    Ask
    TriplePatternMatching  ?x <p> ?y
    AccessGraph  default graph
    """
    from streamsparql.look.explain.formats.plain_text import plain

    return plain(box_of(plan))


def _equivalent(plan: Plan, other: Plan, trials: int = 200, seed: int = 0) -> Equivalence:
    """Whether another plan has the same snapshots: a search for data over which they differ.

    >>> import streamsparql
    >>> one, other = (
    ...     streamsparql.compile(f"ASK {{ ?x <p> ?y FILTER(?y {op} 5) }}") for op in (">", ">="))
    >>> bool(one.logical.equivalent(other.logical))
    False
    """
    from streamsparql.look.equivalence import equivalent

    return equivalent(plan, other, trials, seed)


Plan._repr_html_ = _as_html
Plan.__str__ = _as_text  # type: ignore[assignment]
Plan.equivalent = _equivalent
