"""The reasons why a result has no rows, as a value: what `Result.why_empty` returns."""

from __future__ import annotations

from dataclasses import dataclass

from streamsparql.display import Displayed
from streamsparql.errors import Span, escape_controls, position, snippet


@dataclass(frozen=True)
class Reason:
    """One reason: a pattern, a join, a filter, a window or an input that leaves no rows.

    `code` names its kind, `message` says it in one line, `hint` what to do; `details` are facts of
    the data. `span` is the place in the query's text, if it has one.
    """

    code: str
    message: str
    details: tuple[str, ...] = ()
    hint: str = ""
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


@dataclass(frozen=True)
class WhyEmpty(Displayed):
    """The reasons why a result has no rows; false if it has rows.

    `print` it, or show it in a notebook. `text` is the query, `notes` say what is not part of the
    result or not known.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <Temp> ?o }"
    >>> why = streamsparql.compile(text).run([("<a>", "<temp>", '"1"', 3)]).why_empty()
    >>> print(why)
    no rows: nothing matches ?s <Temp> ?o; did you mean <temp>?
       1 | SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <Temp> ?o }
         |                                                      ^^^^^^^^^^^^
      <s> has 1 item: <temp> (1)
    >>> bool(why), why.reasons[0].code
    (True, 'no-match')
    """

    text: str
    empty: bool = True
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    outcome: str = "no rows"
    """What the result is, in a few words: no rows, no reports, false at every instant."""

    def __bool__(self) -> bool:
        return self.empty

    def lines(self) -> list[str]:
        """Return the reasons as lines of text, each with its place in the query's text."""
        if not self.empty:
            return [self.outcome]
        lines: list[str] = []
        for reason in self.reasons:
            lines.append(f"{self.outcome if not lines else 'and'}: {reason}")
            if reason.span is not None:
                lines += snippet(self.text, reason.span).splitlines()
            lines += [f"  {detail}" for detail in reason.details]
        lines += [f"  {note}" for note in self.notes]
        return [escape_controls(line) for line in lines]

    def place(self, reason: Reason) -> str:
        """Return the place of a reason in the query's text, as text; empty if it has none."""
        if reason.span is None:
            return ""
        return "line {}, column {}".format(*position(self.text, reason.span.start))
