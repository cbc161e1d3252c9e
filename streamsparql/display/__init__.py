"""Display of objects, as text and in notebooks, without importing the code that draws them.

Plans, operators, results and open queries derive from `Displayed`. `streamsparql.look.displays`
implements the functions below for each of these classes. It is imported when the first object is
displayed, so running a query imports no drawing code, and no class is patched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

DISPLAYS = "streamsparql.look.displays"
"""The module that registers the implementations."""


class Display(Generic[_P, _R]):
    """A function that dispatches on the class of its first argument to implementations elsewhere.

    Classes are registered by name, so that registering does not import them.

    >>> @Display
    ... def length(shown: object) -> int:
    ...     return -1
    >>> length.register("builtins.str")(len)
    <built-in function len>
    >>> length("abc"), length(5)
    (3, -1)
    """

    def __init__(self, default: Callable[_P, _R]) -> None:
        update_wrapper(self, default)
        self._default = default
        self.implementations: dict[str, Callable[_P, _R]] = {}
        """The implementations by the full name of the class."""

    def register(self, name: str) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
        """Register the decorated function for the class with this full name and its subclasses."""

        def registered(implementation: Callable[..., _R]) -> Callable[..., _R]:
            self.implementations[name] = implementation
            return implementation

        return registered

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the implementation for the class of the first argument."""
        import_module(DISPLAYS)
        for each in type(args[0]).__mro__:
            implementation = self.implementations.get(f"{each.__module__}.{each.__qualname__}")
            if implementation is not None:
                return implementation(*args, **kwargs)
        return self._default(*args, **kwargs)


class Description(NamedTuple):
    """A description of an operator for readers."""

    kind: str
    """The name of its class."""
    title: str
    """Its parameters, with the query's prefixes."""
    computes: str
    """The name of its logical operator, if that is another one; else an empty string."""
    family: str
    meaning: str
    facts: tuple[tuple[str, str], ...]
    """Its parameters by name, exact."""


class PlanComparison(Protocol):
    """The result of comparing two plans: true if no difference was found."""

    def __bool__(self) -> bool: ...


@Display
def display_text(shown: object) -> str:
    """Return the text that `print` shows for an object."""
    return object.__repr__(shown)


@Display
def display_html(shown: object) -> str:
    """Return the HTML that a notebook shows."""
    raise NotImplementedError(type(shown))


@Display
def describe(operator: Any, prefixes: Mapping[str, str]) -> Description:
    """Return the description of an operator, with a query's prefixes."""
    raise NotImplementedError(type(operator))


@Display
def draw_timeline(result: Any, limit: int, report: Any, every: Any, timestamps: str | None) -> Any:
    """Return a picture of the validity of a result's rows."""
    raise NotImplementedError(type(result))


@Display
def explain_empty(result: Any, report: Any, every: Any) -> Any:
    """Return the reasons why a result, or its reports, have no rows."""
    raise NotImplementedError(type(result))


@Display
def draw_trace(trace: Any) -> Any:
    """Return a picture of the timelines of a trace's operators."""
    raise NotImplementedError(type(trace))


@Display
def draw_session(
    session: Any,
    format: str,  # noqa: A002
    color: bool,
    width: int,
    counts: bool,
) -> str:
    """Return the plans of a session in a format of `explain`."""
    raise NotImplementedError(type(session))


@Display
def lint_query(query: Any) -> Sequence[Warning]:
    """Return the warnings about a compiled query."""
    raise NotImplementedError(type(query))


@Display
def compare(plan: Any, other: Any, trials: int, seed: int) -> PlanComparison:
    """Search for data on which the snapshots of two plans differ."""
    raise NotImplementedError(type(plan))


class Displayed:
    """An object that is printed, and shown in notebooks, by the registered displays."""

    def __str__(self) -> str:
        return display_text(self)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return display_html(self)


_PREFIXES_ATTRIBUTE = "_prefixes"


def with_prefixes(root: _R, prefixes: Mapping[str, str]) -> _R:
    """Set the prefixes with which a plan, logical or physical, is displayed; return the plan."""
    root.__dict__.setdefault(_PREFIXES_ATTRIBUTE, prefixes)
    return root


def prefixes_of(root: Any) -> Mapping[str, str]:
    """Return the prefixes with which a plan is displayed."""
    prefixes: Mapping[str, str] = root.__dict__.get(_PREFIXES_ATTRIBUTE, {})
    return prefixes
