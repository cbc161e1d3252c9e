"""The result of `Query.analyze` and `explain --analyze`: the measurements of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields

from streamsparql.look.analysis_text import analysis_html, explain_analysis
from streamsparql.run.measured import Measurements


@dataclass(frozen=True, repr=False)
class Analysis(Measurements):
    """The measurements of a run of a query.

    `print` it, or `explain` it in any format; `operators` has the numbers of each operator: those
    that read streams first, the one that emits the result last.

    >>> import streamsparql
    >>> text = "SELECT ?o FROM STREAM <s> WINDOW RANGE 10 MS FIXED { ?s <p> ?o }"
    >>> items = [("<a>", "<p>", "<b>", 3), ("<a>", "<q>", "<b>", 4)]
    >>> analysis = streamsparql.compile(text).analyze(items)
    >>> analysis.rows, analysis.items.read, analysis.items.unmatched
    (1, 2, 1)
    """

    @classmethod
    def of(cls, measurements: Measurements) -> Analysis:
        """Return an analysis of measurements."""
        return cls(**{f.name: getattr(measurements, f.name) for f in fields(measurements)})

    def explain(
        self,
        format: str = "text",  # noqa: A002 -- the public name, as of Query.explain
        stage: str = "all",
        *,
        color: bool = False,
        width: int = 100,
    ) -> str:
        """Return the plan with the measurements: text, json, dot, mermaid, svg or html.

        The stages are physical, spark where the run was on Spark, and all for both. `color` and
        `width` are those of a terminal.
        """
        return explain_analysis(self, format, stage, color, width)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<Analysis: {self.items.read} items, {self.rows} rows, {self.times.total:.3f} s>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return analysis_html(self)
