"""Rewrite rules as values: the function, and where it may be applied.

The module of a rule ends with its declaration, `RULE`. The module docstring states the law, its
side condition and its source; `Rule.law` parses them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.plan import Plan

if TYPE_CHECKING:
    from streamsparql.algebra.cost import Costs


class Law(NamedTuple):
    """The law of a rule, as stated in the docstring of its module."""

    summary: str
    statement: str
    condition: str
    source: str


class Rule(NamedTuple):
    """A rewrite rule, the operators at which it is tried, and the contexts in which it is sound.

    >>> from streamsparql.algebra.rules.drop_reduced import RULE
    >>> RULE.name, RULE.over_events, RULE.law.statement
    ('drop_reduced', True, '`Reduced(P) = P`.')
    """

    apply: Callable[..., Plan | None]
    """The rule: return the plan that replaces a subplan, or None if the rule does not apply."""
    at: tuple[type[Plan], ...]
    """The operators at the root of such a subplan."""
    bottom_up: bool = False
    """Whether it is tried after the inputs have been rewritten, rather than before."""
    below_exists: bool = True
    """Whether it is sound in the pattern of an EXISTS, which may read an outer row."""
    over_events: bool = False
    """Whether it is sound below Detect, where plans are about events."""
    inside_chains: bool = True
    """Whether it is also tried at a join that is an input of another join."""
    by_cost: bool = False
    """Whether `apply` accepts `costs=`, the estimates by which it chooses."""

    @property
    def name(self) -> str:
        """The name of the function, which traces and explain show."""
        return str(self.function.__name__)

    @property
    def law(self) -> Law:
        """The law, its side condition and its source."""
        return _parse_law(sys.modules[self.function.__module__].__doc__ or "")

    @property
    def function(self) -> Any:
        """The function itself, without bound estimates."""
        return getattr(self.apply, "func", self.apply)

    def with_costs(self, costs: Costs) -> Rule:
        """Return the rule with estimates bound to it; itself if it does not choose by cost."""
        return self._replace(apply=partial(self.apply, costs=costs)) if self.by_cost else self


@cache
def _parse_law(docstring: str) -> Law:
    text = re.split(r"\n\s*>>> ", docstring)[0].strip()
    parts = re.split(r"(?:^|(?<=\s))(Law|Source|Side condition(?:, [^:\n]*)?):\s", text)
    sections = {
        parts[k].split(",")[0]: _strip_lines(parts[k + 1]) for k in range(1, len(parts) - 1, 2)
    }
    return Law(
        summary=parts[0].split("\n\n")[0].strip(),
        statement=sections.get("Law", ""),
        condition=sections.get("Side condition", ""),
        source=sections.get("Source", "").split("\n\n")[0].replace("\n", " ").rstrip("."),
    )


def _strip_lines(text: str) -> str:
    """Strip a section of a docstring and the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
