"""The input of a renderer: a query, or those of a session, a summary, the boxes of its stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.phrases import with_units
from streamsparql.text.visible import visible
from streamsparql.translator.translate import ReportPolicy, Translation


@dataclass(frozen=True)
class Explanation:
    """The stages of a query by name, in the order of compilation.

    `whole` is set where all stages are requested: text then starts with a summary of the query.
    `color` and `width` are those of a terminal. `rules` are the rewriting rules that were applied,
    with their counts. `notes` summarise the measurements of a run for readers, `measured` for
    programs. `scope` says which stages `all` has, and which others there are.
    """

    translation: Translation | None
    """The translation of the query; None for a session."""
    stages: tuple[tuple[str, Box], ...]
    whole: bool
    color: bool = False
    width: int = 100
    rules: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    queries: tuple[tuple[str, str], ...] = ()
    """The queries of a session: their names and texts."""

    @property
    def headed(self) -> bool:
        """Whether the stages have headings."""
        return self.whole or len(self.stages) > 1

    @property
    def text(self) -> str:
        """The text of the query, or of all queries of a session."""
        if self.translation is None:
            return "\n\n".join(f"# {name}\n{text.strip()}" for name, text in self.queries)
        return self.translation.text

    def about(self) -> dict[str, Any]:
        """Return the facts about the query, for JSON; the names and texts of several."""
        query = self.translation
        if query is None:
            return {"queries": [{"name": name, "text": text} for name, text in self.queries]}
        report = query.report
        return {
            "text": query.text,
            "dialect": query.dialect.name,
            "entailment": query.entailment,
            "form": query.form,
            "variables": list(query.variables),
            "streams": [iri.value for iri in query.streams],
            "graphs": [iri.value for iri in query.graphs],
            "report": {
                "kind": report.kind,
                "every": report.every,
                "origin": report.origin,
                "name": report.name,
            },
            "prefixes": dict(sorted(query.names.prefixes.items())),
        }

    def summary(self) -> list[tuple[str, str]]:
        """Return the facts about the query as named lines, for readers, without empty ones."""
        query = self.translation
        if query is None:
            return []
        lines = [
            ("dialect", query.dialect.title),
            ("entailment", (query.entailment or "").upper()),
            ("form", query.form.upper()),
            ("variables", " ".join(f"?{name}" for name in query.variables)),
            *(("stream", str(iri)) for iri in query.streams),
            *(("graph", str(iri)) for iri in query.graphs),
            ("report", _report_line(query.report)),
            ("stages", self.scope),
        ]
        prefixes = sorted(query.names.prefixes.items())
        lines += [("prefix", f"{prefix}: <{iri}>") for prefix, iri in prefixes]
        return [(name, visible(text)) for name, text in lines if text]


def _report_line(report: ReportPolicy) -> str:
    name = f", as {report.name}" if report.name else ""
    if report.kind is None:
        return f"rows with their validity{name}"
    period = f"every {with_units(report.every)}" if report.every else "at every change"
    period += f" from {with_units(report.origin)}" if report.origin else ""
    return f"{report.kind.upper()} {period}{name}"
