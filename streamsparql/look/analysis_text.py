"""The measurements of a run, explained: a summary, and the physical plan with figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import Any

from streamsparql.errors import StreamSparqlError
from streamsparql.look.explain.boxes.box import Box, Measures, build_tree
from streamsparql.look.explain.boxes.phrases import with_units
from streamsparql.look.explain.boxes.physical import described_box
from streamsparql.look.explain.explanation import Explanation
from streamsparql.run.measured import ItemsRead, Measurements
from streamsparql.text.instants import instant
from streamsparql.text.numbers import count, seconds


def explain_analysis(
    analysis: Measurements,
    format: str,  # noqa: A002 -- the public name
    stage: str = "all",
    color: bool = False,
    width: int = 100,
) -> str:
    """Return an analysis in a format; `color` and `width` are those of a terminal."""
    from streamsparql.look.explain import RENDERERS, known_name

    render = RENDERERS[known_name(format, RENDERERS, "format")]
    return render(_explanation(analysis, stage, color, width))


def analysis_html(analysis: Measurements) -> str:
    """Return an analysis for a notebook: the summary, and the pictures of its stages."""
    from streamsparql.look.explain.formats import html

    explanation = _explanation(analysis, "all", False, 120)
    notes = "<br/>".join(f"{escape(name)}: {escape(text)}" for name, text in explanation.notes)
    pictures = "\n".join(html.stage_html(box) for _, box in explanation.stages)
    return f"<p>{notes}</p>\n{pictures}"


def _explanation(analysis: Measurements, stage: str, color: bool, width: int) -> Explanation:
    stages = {"physical": operators_box(analysis)} if analysis.operators else {}
    if analysis.cut is not None:
        stages["spark"] = _spark(analysis)
    if stage != "all":
        stages = {stage: stages[_measured_stage(stage, stages)]}
    query = analysis.query
    return Explanation(
        query.translation,
        tuple(stages.items()),
        whole=False,
        color=color,
        width=width,
        notes=tuple(_notes(analysis)),
        measured=analysis_json(analysis),
    )


def _measured_stage(stage: str, stages: Mapping[str, Box]) -> str:
    if stage in stages:
        return stage
    if stage == "spark":
        raise StreamSparqlError(
            "no measurements for stage 'spark': the run was not on Spark; use engine='spark'"
        )
    raise StreamSparqlError(
        f"a run has no measurements for stage {stage!r}; expected physical, spark or all"
    )


def operators_box(analysis: Measurements) -> Box:
    """Return the boxes of the physical plan with measurements; each operator is drawn once."""
    operators = analysis.operators
    last = len(operators) - 1

    def box(k: int) -> Box:
        each = operators[k]
        logical = each.computes if each.description.family != "access" else ""
        prefix = f"{logical}: " if logical and each.title else logical
        measures = Measures(
            each.rows_in,
            each.rows_out,
            each.seconds,
            each.share,
            each.state,
            each.steps,
            each.orders,
        )
        box = described_box(each.description)
        return replace(box, title=prefix + each.title, measures=measures)

    return build_tree(last, lambda k: (("", below) for below in operators[k].inputs), box, False)


# -- Spark -----------------------------------------------------------------------------------------


def _spark(analysis: Measurements) -> Box:
    from streamsparql.look.explain.boxes.spark_run import spark_box

    return spark_box(analysis.query, analysis.cut, _stage_measures(analysis))


def _stage_measures(analysis: Measurements) -> dict[str, Measures]:
    """Return the measurements of stages and slabs, by the names of their boxes."""
    total = analysis.times.total
    states = [slab.state for slab in analysis.slabs]
    measures = {}
    for stage in analysis.stages:
        state = max(states, default=0) if stage.name == "slabs" else None
        share = stage.seconds / total if total else 0.0
        rows_in = () if stage.rows_in is None else (stage.rows_in,)
        measures[stage.name] = Measures(rows_in, stage.rows_out, stage.seconds, share, state)
    for slab in analysis.slabs:
        name = f"{slab.number + 1}/{len(analysis.slabs)}"
        measures[name] = Measures((slab.items,), slab.rows, slab.seconds, None, slab.state)
    return measures


# -- the summary above the plan --------------------------------------------------------------------


def _notes(analysis: Measurements) -> Iterator[tuple[str, str]]:
    items, times, total = analysis.items, analysis.times, analysis.times.total
    yield "items", _items_line(analysis)
    yield "rows", f"{count(analysis.rows)} emitted"
    if analysis.schema:
        yield "schema", analysis.schema
    if analysis.cut is None:
        parts = ("preparing", "reading", "computing", "writing")
        shares = [(getattr(times, part) / total if total else 0.0, part) for part in parts]
        text = ", ".join(f"{share * 100:.0f} % {part}" for share, part in shares)
        yield "time", f"{seconds(total)}: {text}"
    else:
        text = ", ".join(f"{stage.name} {seconds(stage.seconds)}" for stage in analysis.stages)
        yield "time", f"{seconds(total)}: {text}"
        tasks = f"reading {seconds(times.reading)}, computing {seconds(times.computing)}"
        yield "in tasks", f"{tasks}, writing {seconds(times.writing)}, summed over all tasks"
        if analysis.skew is not None and len(analysis.slabs) > 1:
            yield "skew", f"the slowest slab took {analysis.skew:.1f} times as long as the median"
    if items.read:
        yield "rate", f"{count(round(analysis.rate))} items/s"
    where = " in the largest slab" if analysis.cut is not None else ""
    yield "state", f"peak {_rows(analysis.state)}{where}; {_terms(analysis.terms)}"
    if analysis.span is not None:
        first, last = analysis.span
        yield "span", f"{instant(first)} to {instant(last)}, {with_units(last - first)}"


def _items_line(analysis: Measurements) -> str:
    items = analysis.items
    if isinstance(items, ItemsRead):
        return (
            f"{count(items.read)} read by the slabs; an item that several slabs read counts in each"
        )
    accepted = f"{count(items.accepted)} accepted"
    if items.unmatched:
        accepted += f" ({count(items.unmatched)} unmatched)"
    rest = [f"{count(n)} {name}" for name in ("late", "rejected") if (n := getattr(items, name))]
    triples = analysis.graph_rejects
    if triples:
        rest.append(f"{count(triples)} graph triple{'s' * (triples != 1)} rejected")
    return f"{count(items.read)} read: {', '.join([accepted, *rest])}"


def _rows(n: int) -> str:
    return f"{count(n)} row{'s' * (n != 1)}"


def _terms(n: int) -> str:
    return f"{count(n)} term{'s' * (n != 1)} in the dictionary"


# -- for programs ----------------------------------------------------------------------------------


def analysis_json(analysis: Measurements) -> dict[str, Any]:
    """Return the totals, for JSON; the measurements of operators are on the nodes."""
    totals: dict[str, Any] = {
        "engine": analysis.engine,
        "items": analysis.items._asdict(),
        "graph_rejects": analysis.graph_rejects,
        "rows": analysis.rows,
        "seconds": analysis.times._asdict(),
        "rate": analysis.rate,
        "state": analysis.state,
        "terms": analysis.terms,
        "schema": analysis.schema,
        "span": None if analysis.span is None else list(analysis.span),
    }
    if analysis.cut is not None:
        totals["stages"] = [stage._asdict() for stage in analysis.stages]
        totals["slabs"] = [slab._asdict() for slab in analysis.slabs]
        totals["skew"] = analysis.skew
    return totals
