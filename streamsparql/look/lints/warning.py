"""A lint's warning about a query."""

from __future__ import annotations

from dataclasses import dataclass, fields

from streamsparql.errors import Span, escape_controls, position, snippet


@dataclass(unsafe_hash=True)
class LintWarning(UserWarning):
    """A warning about a query, with its place in the text; a category of Python warnings, too.

    `others` are further places with the same problem.
    """

    code: str
    message: str
    span: Span | None
    text: str
    hint: str = ""
    others: tuple[Span, ...] = ()

    def __reduce__(self) -> tuple[type[LintWarning], tuple[object, ...]]:
        """Pickle the fields: an exception would pickle the arguments of its constructor."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        lines = [f"warning: {self.message} [{self.code}]"]
        if self.span is not None:
            line, column = position(self.text, self.span.start)
            lines[0] = f"line {line}, column {column}: {lines[0]}"
            lines.append(snippet(self.text, self.span))
        if self.others:
            lines.append(f"also at {self.other_places}")
        return escape_controls("\n".join(lines + ([f"hint: {self.hint}"] if self.hint else [])))

    @property
    def other_places(self) -> str:
        """The further places as text, at most a few of them."""
        shown = self.others[:_SHOWN]
        places = ["line {}, column {}".format(*position(self.text, span.start)) for span in shown]
        more = len(self.others) - len(shown)
        return "; ".join(places) + (f"; and {more} more" if more else "")


_SHOWN = 4
