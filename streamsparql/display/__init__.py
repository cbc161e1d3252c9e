"""How objects show themselves, without importing what draws them.

Plans, operators, results and open queries derive from `Displayed`. What they look like, as text and
as HTML, is in `streamsparql.look.displays`, which is imported when the first of them is shown: it
registers an implementation of the functions below for each class. So running imports nothing of
looking, and no class is patched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from importlib import import_module
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
Shown = TypeVar("Shown")

DISPLAYS = "streamsparql.look.displays"
"""The module that registers the implementations."""


class Display(Generic[P, Shown]):
    """A function that is implemented elsewhere, for each class of its first argument.

    Classes are registered by name, so that registering loads none of them.

    >>> @Display
    ... def length(shown: object) -> int:
    ...     return -1
    >>> length.register("builtins.str")(len)
    <built-in function len>
    >>> length("abc"), length(5)
    (3, -1)
    """

    def __init__(self, default: Callable[P, Shown]) -> None:
        update_wrapper(self, default)
        self._default = default
        self.implementations: dict[str, Callable[P, Shown]] = {}
        """The implementations by the full name of the class."""

    def register(self, name: str) -> Callable[[Callable[..., Shown]], Callable[..., Shown]]:
        """Register the decorated function for the class of this name, and those derived from it."""

        def registered(implementation: Callable[..., Shown]) -> Callable[..., Shown]:
            self.implementations[name] = implementation
            return implementation

        return registered

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Shown:
        """Call the implementation for the class of the first argument."""
        import_module(DISPLAYS)
        for each in type(args[0]).__mro__:
            implementation = self.implementations.get(f"{each.__module__}.{each.__qualname__}")
            if implementation is not None:
                return implementation(*args, **kwargs)
        return self._default(*args, **kwargs)


class Description(NamedTuple):
    """An operator in a reader's words."""

    kind: str
    """The name of its class."""
    title: str
    """Its parameters, in the query's words."""
    computes: str
    """The logical operator that it computes, where that has another name."""
    family: str
    meaning: str
    facts: tuple[tuple[str, str], ...]
    """Its parameters by name, exact."""


class Comparison(Protocol):
    """What a comparison of two plans returns: true where no difference was found."""

    def __bool__(self) -> bool: ...


@Display
def as_text(shown: object) -> str:
    """Return the text that an object prints as."""
    return object.__repr__(shown)


@Display
def as_html(shown: object) -> str:
    """Return the HTML that a notebook shows."""
    raise NotImplementedError(type(shown))


@Display
def describe(operator: Any, prefixes: Mapping[str, str]) -> Description:
    """Return an operator's description, written with a query's prefixes."""
    raise NotImplementedError(type(operator))


@Display
def timeline(
    result: Any, limit: int, report: str | None, every: int | None, timestamps: str | None
) -> Any:
    """Return a picture of when the rows of a result hold."""
    raise NotImplementedError(type(result))


@Display
def compare(plan: Any, other: Any, trials: int, seed: int) -> Comparison:
    """Search for data over which two plans have different snapshots."""
    raise NotImplementedError(type(plan))


class Displayed:
    """An object that prints, and shows itself in a notebook, as the displays say."""

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return as_html(self)


_PREFIXES = "_prefixes"


def with_prefixes(root: Shown, prefixes: Mapping[str, str]) -> Shown:
    """Let a plan, logical or physical, show itself with a query's prefixes; return it."""
    root.__dict__.setdefault(_PREFIXES, prefixes)
    return root


def prefixes_of(root: Any) -> Mapping[str, str]:
    """Return the prefixes that a plan shows itself with."""
    prefixes: Mapping[str, str] = root.__dict__.get(_PREFIXES, {})
    return prefixes
