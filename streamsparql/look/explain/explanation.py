"""What a format renders: a query, what is known about it, and the boxes of its stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamsparql.look.explain.boxes.box import Box
from streamsparql.look.explain.boxes.phrases import duration
from streamsparql.text.visible import visible
from streamsparql.translator.translate import ReportPolicy, Translation


@dataclass(frozen=True)
class Explanation:
    """The stages of a query, by name, in the order in which they follow from each other.

    `whole` says that a reader asked for all there is: formats then add what is known of the query.
    `color` and `width` are those of a terminal. `rules` are the rewriting rules that were used, and
    how often. `notes` say what a run over data measured of the whole, for readers, and `measured`
    the same for programs.
    """

    translation: Translation
    stages: tuple[tuple[str, Box], ...]
    whole: bool
    color: bool = False
    width: int = 100
    rules: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headed(self) -> bool:
        """Whether the stages have headings, to be told apart."""
        return self.whole or len(self.stages) > 1

    @property
    def text(self) -> str:
        """The query's text."""
        return self.translation.text

    def about(self) -> dict[str, Any]:
        """What is known about the query, for programs."""
        known = self.translation
        report = known.report
        return {
            "text": known.text,
            "dialect": known.dialect.name,
            "form": known.form,
            "variables": list(known.variables),
            "streams": [iri.value for iri in known.streams],
            "graphs": [iri.value for iri in known.graphs],
            "report": {
                "kind": report.kind,
                "every": report.every,
                "origin": report.origin,
                "name": report.name,
            },
            "prefixes": dict(sorted(known.names.prefixes.items())),
        }

    def summary(self) -> list[tuple[str, str]]:
        """What is known about the query, for readers; what there is none of is left out."""
        known = self.translation
        lines = [
            ("dialect", known.dialect.title),
            ("form", known.form.upper()),
            ("variables", " ".join(f"?{name}" for name in known.variables)),
            *(("stream", str(iri)) for iri in known.streams),
            *(("graph", str(iri)) for iri in known.graphs),
            ("report", _report(known.report)),
        ]
        prefixes = sorted(known.names.prefixes.items())
        lines += [("prefix", f"{prefix}: <{iri}>") for prefix, iri in prefixes]
        return [(name, visible(text)) for name, text in lines if text]


def _report(report: ReportPolicy) -> str:
    name = f", as {report.name}" if report.name else ""
    if report.kind is None:
        return f"rows with their validity{name}"
    often = f"every {duration(report.every)}" if report.every else "at every change"
    often += f" from {duration(report.origin)}" if report.origin else ""
    return f"{report.kind.upper()} {often}{name}"
