"""Rewriting rules as values: the function, and where it may be applied.

The file of a rule ends with its declaration, `RULE`. The head of the file states the rule's law,
its side condition and its source; `Rule.law` reads them from there.
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
    """What a rule rests on, in the words at the head of its file."""

    summary: str
    statement: str
    condition: str
    source: str


class Rule(NamedTuple):
    """A rewriting rule, the operators that it is tried at, and the places where it is sound.

    >>> from streamsparql.algebra.rules.drop_reduced import RULE
    >>> RULE.name, RULE.over_events, RULE.law.statement
    ('drop_reduced', True, '`Reduced(P) = P`.')
    """

    apply: Callable[..., Plan | None]
    """Return the plan that replaces a subplan, None where the rule does not apply."""
    at: tuple[type[Plan], ...]
    """The operators that can be the root of the subplan."""
    bottom_up: bool = False
    """Try it after the inputs have been rewritten, instead of before."""
    below_exists: bool = True
    """It is sound in the pattern of an EXISTS, where an outer row can be read."""
    over_events: bool = False
    """It is sound below Detect, where plans are about events."""
    inside_chains: bool = True
    """Try it also at a join that is an input of another join."""
    by_cost: bool = False
    """`apply` takes `costs=`, the estimates that it chooses by."""

    @property
    def name(self) -> str:
        """The name of the function, which traces and explanations show."""
        return str(self.function.__name__)

    @property
    def law(self) -> Law:
        """The law that the rule applies, its side condition and its source."""
        return _law(sys.modules[self.function.__module__].__doc__ or "")

    @property
    def function(self) -> Any:
        """The function itself, without the estimates that it has been bound to."""
        return getattr(self.apply, "func", self.apply)

    def with_costs(self, costs: Costs) -> Rule:
        """Return the rule with the estimates that it chooses by; itself if it chooses by none."""
        return self._replace(apply=partial(self.apply, costs=costs)) if self.by_cost else self


@cache
def _law(head: str) -> Law:
    text = re.split(r"\n\s*>>> ", head)[0].strip()
    parts = re.split(r"(?:^|(?<=\s))(Law|Source|Side condition(?:, [^:\n]*)?):\s", text)
    found = {parts[k].split(",")[0]: _plain(parts[k + 1]) for k in range(1, len(parts) - 1, 2)}
    return Law(
        summary=parts[0].split("\n\n")[0].strip(),
        statement=found.get("Law", ""),
        condition=found.get("Side condition", ""),
        source=found.get("Source", "").split("\n\n")[0].replace("\n", " ").rstrip("."),
    )


def _plain(text: str) -> str:
    """Return a part of a docstring without the margin of its continuation lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
