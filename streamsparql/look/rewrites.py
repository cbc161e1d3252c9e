"""What the rewriting rules did to a plan, one application after the other.

`query.rewrites()` is a sequence: each `Application` has its rule with the law that it is an
instance of, the law's side condition and source (they stand at the head of the rule's own file),
the subplan before and after, and where that stands. With `check=True` each application is tried on
random streams, through the definitions of both subplans, under rows of an outer EXISTS where it
stands in the pattern of one.

>>> import streamsparql
>>> text = "SELECT ?x { ?x <p> ?y . ?x <q> ?z FILTER(?y = 1 && 1 + 1 = 2) }"
>>> found = streamsparql.compile(text).rewrites()
>>> [application.rule for application in found][:3]
['fold_constants', 'push_filters_into_joins', 'prune_columns']
>>> found[1].law.statement
'`Filter(c, P1 join .. join Pn) = P1 join .. Filter(c, Pk) .. join Pn`.'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import overload

from streamsparql.algebra import event, graph
from streamsparql.algebra.fixpoint import Rewriting, Spot
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases, rewrite
from streamsparql.algebra.rules.rule import Law
from streamsparql.look.equivalence import Equivalence, equivalent

__all__ = ["Application", "Law", "Rewrites", "rewrites"]


@dataclass(frozen=True)
class Application:
    """One use of a rule: a subplan, and the one that took its place.

    `where` are the operators above it, from the result down, each with the number of the input that
    leads on. `asked` says that it is in the pattern of an EXISTS, `below_detect` that it is about
    events. `checked` is there after a check.
    """

    number: int
    rule: str
    law: Law
    before: Plan = field(repr=False)
    after: Plan = field(repr=False)
    where: tuple[tuple[Plan, int], ...] = field(default=(), repr=False)
    asked: bool = False
    below_detect: bool = False
    checked: Equivalence | None = field(default=None, repr=False)
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The rule's name for readers."""
        return self.rule.replace("_", " ")

    @property
    def place(self) -> str:
        """Where it happened, in words."""
        if not self.where:
            return "the whole plan"
        shown = [
            type(plan).__name__ + (f" ({_nth(index)})" if len(plan.inputs) > 1 else "")
            for plan, index in self.where
        ]
        if len(shown) > _MOST_ABOVE:
            shown = [
                *shown[:2],
                f"… {len(shown) - _MOST_ABOVE + 1} more …",
                *shown[3 - _MOST_ABOVE :],
            ]
        return " › ".join(shown)

    def whole(self) -> tuple[Plan, Plan]:
        """The whole plan with the subplan before, and with the one after.

        What stands beside it is as it was when the rules came down to this place.
        """
        before, after = self.before, self.after
        for plan, index in reversed(self.where):
            before, after = (_with_input(plan, index, one) for one in (before, after))
        return before, after

    def check(self, trials: int = 50, seed: int = 0) -> Application:
        """The same, tried on random data."""
        checked = equivalent(
            self.before,
            self.after,
            trials,
            seed,
            asked=self.asked and not isinstance(self.before, graph.Ask),
            below_detect=self.below_detect,
        )
        return replace(self, checked=checked)

    def __str__(self) -> str:
        from streamsparql.look.jupyter.rewriting_view import application_text

        return application_text(self)

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from streamsparql.look.jupyter.rewriting_view import applications

        return applications((self,), "")


@dataclass(frozen=True)
class Rewrites(Sequence[Application]):
    """The applications of rules that lead from a plan to another one, in order.

    `checked` is the comparison of the first plan with the last, after a check.
    """

    plan: Plan = field(repr=False)
    result: Plan = field(repr=False)
    applications: tuple[Application, ...] = ()
    checked: Equivalence | None = None

    def __len__(self) -> int:
        return len(self.applications)

    @overload
    def __getitem__(self, index: int) -> Application: ...

    @overload
    def __getitem__(self, index: slice) -> Rewrites: ...

    def __getitem__(self, index: int | slice) -> Application | Rewrites:
        if isinstance(index, slice):
            return replace(self, applications=self.applications[index])
        return self.applications[index]

    def __iter__(self) -> Iterator[Application]:
        return iter(self.applications)

    def of(self, rule: str) -> Rewrites:
        """The applications of one rule."""
        name = rule.replace(" ", "_")
        return replace(self, applications=tuple(x for x in self if x.rule == name))

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule was used, in the order of first use."""
        return dict(Counter(x.rule for x in self))

    @property
    def wrong(self) -> tuple[Application, ...]:
        """The applications that a check found a counterexample for."""
        return tuple(x for x in self if x.checked is not None and not x.checked)

    def __str__(self) -> str:
        from streamsparql.look.jupyter.rewriting_view import applications_text, summary

        return applications_text(self.applications, summary(self))

    def _repr_html_(self) -> str:
        """How a notebook shows them: each before and after, side by side."""
        from streamsparql.look.jupyter.rewriting_view import applications, summary

        return applications(self.applications, summary(self))


def rewrites(
    plan: Plan,
    prefixes: Mapping[str, str] | None = None,
    *,
    rewriting: Rewriting | None = None,
    check: bool = False,
    trials: int = 50,
    seed: int = 0,
) -> Rewrites:
    """What the rules do to a plan, or did in a `rewriting`; `check` tries it on random data."""
    done = rewrite(plan) if rewriting is None else rewriting
    known = dict(prefixes or {})
    found = []
    for number, step in enumerate(done.trace, 1):
        where = _where(step.spot)
        application = Application(
            number,
            step.rule,
            law(step.rule),
            step.before,
            step.after,
            where,
            _asked(where),
            any(isinstance(above, event.Detect | event.Closure) for above, _ in where),
            prefixes=known,
        )
        found.append(application.check(trials, seed + number) if check else application)
    whole = equivalent(plan, done.plan, trials, seed) if check else None
    return Rewrites(plan, done.plan, tuple(found), whole)


# -- where -----------------------------------------------------------------------------------------

_MOST_ABOVE = 6


def _where(spot: Spot | None) -> tuple[tuple[Plan, int], ...]:
    found: list[tuple[Plan, int]] = []
    while spot is not None:
        found.append((spot.plan, spot.index))
        spot = spot.above
    return tuple(reversed(found))


def _asked(where: tuple[tuple[Plan, int], ...]) -> bool:
    """Whether a place is in the pattern of an EXISTS."""
    return any(index >= len(plan.operands) for plan, index in where)


def _nth(index: int) -> str:
    return ("left", "right")[index] if index < 2 else f"input {index + 1}"


def _with_input(plan: Plan, index: int, new: Plan) -> Plan:
    inputs = plan.inputs
    return plan.with_inputs(*inputs[:index], new, *inputs[index + 1 :])


# -- laws ------------------------------------------------------------------------------------------


@cache
def law(rule: str) -> Law:
    """The law of a rule, from the head of its file.

    >>> law("merge_projections").condition.splitlines()[0]
    'V is a subset of W; else P could bind a variable of V that W hides. The rule is'
    """
    laws = {known.name: known.law for phase in phases() for known in phase.rules}
    return laws.get(rule, Law("", "", "", ""))
