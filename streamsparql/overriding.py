"""`typing.override` for Python 3.11, for methods that their base class documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import override as override
else:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def override(method: Method) -> Method:
        """Mark a method that does what the method of its base class documents.

        >>> class Base:
        ...     def size(self) -> int:
        ...         return 0
        >>> class Derived(Base):
        ...     @override
        ...     def size(self) -> int:
        ...         return 1
        >>> Derived().size()
        1
        """
        return method
