"""The applications of rewriting rules that lead from a plan to the optimised one.

`query.rewrites()` is a sequence: each `Application` has its rule with the law, side condition and
source that the rule's file declares, the subplan before and after, and its position in the plan.
With `check=True` each application is checked on random streams, by the definitions of both
subplans, and under outer rows if it is in the pattern of an EXISTS.

>>> import streamsparql
>>> text = "SELECT ?x { ?x <p> ?y . ?x <q> ?z FILTER(?y = 1 && 1 + 1 = 2) }"
>>> applied = streamsparql.compile(text).rewrites()
>>> [application.rule for application in applied][:3]
['fold_constants', 'push_filters_into_joins', 'prune_columns']
>>> applied[1].law.statement
'`Filter(c, P1 join .. join Pn) = P1 join .. Filter(c, Pk) .. join Pn`; so for SEQ and EQUALS.'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import overload

from streamsparql.algebra import event, graph
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.fixpoint import Rewriting, Spot
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rewrite import phases, rewrite
from streamsparql.algebra.rules.rule import Law
from streamsparql.display import Displayed
from streamsparql.look.equivalence import Equivalence, equivalent

__all__ = ["Application", "Law", "Rewrites", "rewrites"]


@dataclass(frozen=True)
class Application(Displayed):
    """One application of a rule: a subplan, and the one that replaced it.

    `path` are the operators above it, from the result down, each with the index of the input that
    leads to it. `inside_exists` is true in the pattern of an EXISTS, `below_detect` where rows are
    events. `checked` is the result of a check, None before one.
    """

    number: int
    rule: str
    law: Law
    before: Plan = field(repr=False)
    after: Plan = field(repr=False)
    path: tuple[tuple[Plan, int], ...] = field(default=(), repr=False)
    inside_exists: bool = False
    below_detect: bool = False
    checked: Equivalence | None = field(default=None, repr=False)
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The rule's name, with spaces."""
        return self.rule.replace("_", " ")

    @property
    def place(self) -> str:
        """The path to the subplan as text, `the whole plan` if it is empty."""
        if not self.path:
            return "the whole plan"
        operators = [
            type(plan).__name__ + (f" ({_input_name(index)})" if len(plan.inputs) > 1 else "")
            for plan, index in self.path
        ]
        if len(operators) > _MAX_OPERATORS:
            operators = [
                *operators[:2],
                f"… {len(operators) - _MAX_OPERATORS + 1} more …",
                *operators[3 - _MAX_OPERATORS :],
            ]
        return " › ".join(operators)

    def whole(self) -> tuple[Plan, Plan]:
        """Return the whole plan with the subplan before the application, and after it.

        The rest of the plan is as it was when the rewriting descended to this position.
        """
        before, after = self.before, self.after
        for plan, index in reversed(self.path):
            before, after = (_with_input(plan, index, each) for each in (before, after))
        return before, after

    def check(self, trials: int = 50, seed: int = 0) -> Application:
        """Return the application with `checked` set: both subplans are compared on random data."""
        checked = equivalent(
            self.before,
            self.after,
            trials,
            seed,
            inside_exists=self.inside_exists and not isinstance(self.before, graph.Ask),
            below_detect=self.below_detect,
        )
        return replace(self, checked=checked)


@dataclass(frozen=True)
class Rewrites(Displayed, Sequence[Application]):
    """The applications of rules that lead from `plan` to `result`, in order.

    `checked` is the comparison of these two plans, None before a check.
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
        """Return the applications of one rule."""
        name = rule.replace(" ", "_")
        return replace(self, applications=tuple(x for x in self if x.rule == name))

    @property
    def counts(self) -> dict[str, int]:
        """The number of applications of each rule, in the order of the first one."""
        return dict(Counter(x.rule for x in self))

    @property
    def wrong(self) -> tuple[Application, ...]:
        """The applications that were checked and have a counterexample."""
        return tuple(x for x in self if x.checked is not None and not x.checked)


def rewrites(
    plan: Plan,
    prefixes: Mapping[str, str] | None = None,
    *,
    rewriting: Rewriting | None = None,
    check: bool = False,
    trials: int = 50,
    seed: int = 0,
) -> Rewrites:
    """Return the applications of rules to a plan, or those of a `rewriting` that was done.

    With `check` each application, and the result, is checked on random data.
    """
    done = rewrite(plan) if rewriting is None else rewriting
    known = dict(prefixes or {})
    applications = []
    for number, step in enumerate(done.trace, 1):
        path = _path_to(step.spot)
        application = Application(
            number,
            step.rule,
            law(step.rule),
            step.before,
            step.after,
            path,
            _is_inside_exists(path),
            any(isinstance(above, event.Detect | Closure) for above, _ in path),
            prefixes=known,
        )
        applications.append(application.check(trials, seed + number) if check else application)
    checked = equivalent(plan, done.plan, trials, seed) if check else None
    return Rewrites(plan, done.plan, tuple(applications), checked)


# -- positions -------------------------------------------------------------------------------------

_MAX_OPERATORS = 6
"""The number of operators in the text of a path."""


def _path_to(spot: Spot | None) -> tuple[tuple[Plan, int], ...]:
    path: list[tuple[Plan, int]] = []
    while spot is not None:
        path.append((spot.plan, spot.index))
        spot = spot.above
    return tuple(reversed(path))


def _is_inside_exists(path: tuple[tuple[Plan, int], ...]) -> bool:
    """Return whether a path leads into the pattern of an EXISTS."""
    return any(index >= len(plan.operands) for plan, index in path)


def _input_name(index: int) -> str:
    return ("left", "right")[index] if index < 2 else f"input {index + 1}"


def _with_input(plan: Plan, index: int, new: Plan) -> Plan:
    inputs = plan.inputs
    return plan.with_inputs(*inputs[:index], new, *inputs[index + 1 :])


# -- laws ------------------------------------------------------------------------------------------


@cache
def law(rule: str) -> Law:
    """Return the law of a rule, from the head of its file; an empty one if the rule is unknown.

    >>> law("merge_projections").condition.splitlines()[0]
    'V is a subset of W; else P could bind a variable of V that W hides. The rule is'
    """
    laws = {known.name: known.law for phase in phases() for known in phase.rules}
    return laws.get(rule, Law("", "", "", ""))
