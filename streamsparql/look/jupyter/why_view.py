"""The notebook display of the reasons why a result has no rows."""

from __future__ import annotations

from html import escape

from streamsparql.display.why_empty import Reason, WhyEmpty
from streamsparql.look.explain.drawing.palette import MONO, SANS

_STYLE = (
    f".streamsparql-why{{font:13px/1.6 {SANS};margin:.3rem 0 .6rem}}"
    ".streamsparql-why ul{margin:.1rem 0 .3rem;padding-left:1.4rem}"
    f".streamsparql-why code{{font-family:{MONO};font-size:12px;background:none;color:inherit}}"
    ".streamsparql-why .details{opacity:.8}"
)


def why_html(why: WhyEmpty) -> str:
    """Return the reasons as a list: the message and the hint, then the facts of the data."""
    if not why.empty:
        return f"<p>{escape(why.outcome)}</p>"
    items = "".join(f"<li>{_reason_html(why, reason)}</li>" for reason in why.reasons)
    notes = "".join(f'<div class="details">{escape(note)}</div>' for note in why.notes)
    return (
        f'<div class="streamsparql-why"><style>{_STYLE}</style>'
        f"<b>{escape(why.outcome)}</b><ul>{items}</ul>{notes}</div>"
    )


def _reason_html(why: WhyEmpty, reason: Reason) -> str:
    place = why.place(reason)
    written = "" if reason.span is None else reason.span.of(why.text)
    shown = f": <code>{escape(written)}</code>" if written and "\n" not in written else ""
    lines = [escape(str(reason))]
    if place:
        lines.append(f'<span class="details">{escape(place)}{shown}</span>')
    lines += [f'<span class="details">{escape(detail)}</span>' for detail in reason.details]
    return "<br/>".join(lines)
