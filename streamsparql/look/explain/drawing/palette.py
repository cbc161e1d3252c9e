"""The colours of operator families, the same in all formats, and the style sheet of pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamsparql.look.explain.drawing.themes import themed


class Shades(NamedTuple):
    """The colours of a box: its ground, its frame, and the text of its kind."""

    ground: str
    frame: str
    ink: str


class Colour(NamedTuple):
    """A colour for light pictures, for dark ones, and as an ANSI code for terminals."""

    light: Shades
    dark: Shades
    ansi: int

    def shades(self, dark: bool = False) -> Shades:
        """Return the shades for a light or a dark theme."""
        return self.dark if dark else self.light


_GREEN = Colour(
    Shades("#e8f5e4", "#74ad62", "#2c6420"), Shades("#1b3018", "#4d8040", "#a3da91"), 32
)
_YELLOW = Colour(
    Shades("#fdf3dc", "#d1a13a", "#7a5200"), Shades("#382c10", "#8f7026", "#f0c969"), 33
)
FAMILIES: dict[str, Colour] = {
    "access": Colour(
        Shades("#e3f4f4", "#4fa3a5", "#0f5e61"), Shades("#12312f", "#2f7d78", "#7fd8d2"), 36
    ),
    "window": _YELLOW,
    "align": _YELLOW,
    "match": _GREEN,
    "path": _GREEN,
    "join": Colour(
        Shades("#f0eafb", "#9b82cf", "#53378f"), Shades("#2a2140", "#6c55a3", "#c7b3f5"), 35
    ),
    "filter": Colour(
        Shades("#fdeae8", "#d98880", "#8c2f25"), Shades("#3b1d1b", "#98504a", "#f3aca5"), 31
    ),
    "shape": Colour(
        Shades("#eef1f5", "#93a1b3", "#3a4859"), Shades("#232b35", "#5b6a7d", "#b9c6d6"), 34
    ),
    "group": Colour(
        Shades("#e5effc", "#7aa5dc", "#1f4f8c"), Shades("#16283f", "#45709f", "#9ec8fa"), 94
    ),
    "graph": Colour(
        Shades("#e4f3fb", "#6cb2d3", "#135a7d"), Shades("#122d3b", "#3d7c99", "#8fd2f2"), 96
    ),
    "event": Colour(
        Shades("#fceaf3", "#d483ac", "#86305c"), Shades("#391c2b", "#955377", "#f2acd0"), 95
    ),
}
"""The colours by the family of a node or an operator."""

HEAT: dict[int, Colour] = {
    1: Colour(Shades("#e3ebf4", "#5b86b8", "#24476e"), Shades("#1c2b3c", "#557fae", "#a9c8ea"), 34),
    2: Colour(Shades("#fce8c5", "#d98e1f", "#7a4a00"), Shades("#42300f", "#c98a2b", "#f5cd85"), 33),
    3: Colour(Shades("#fbd3cb", "#d2452f", "#8a1f10"), Shades("#4d1a13", "#e0604a", "#ffb9ab"), 31),
}
"""The colours of `Measures.heat`: from 3, from 10 and from 25 % of the time."""

PAPER = ("#ffffff", "#0f1419")
INK = ("#1d252d", "#dfe5ec")
FAINT = ("#5b6875", "#9aa7b5")
LINE = ("#9aa5b1", "#56616d")
"""The colours of everything else, on light and on dark."""

SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_FONTS = f"""\
.kind{{font:600 12px {SANS};font-variant:small-caps}}
.role{{font-weight:400;font-style:italic}}
.title{{font:11px {MONO}}}
.note{{font:italic 11px {SANS}}}
.stage{{font:600 15px {SANS}}}
.number{{font:700 9px {SANS};text-anchor:middle}}
.measured{{font:11px {SANS};font-variant-numeric:tabular-nums}}
.edge{{fill:none;stroke-width:1.2}}
.box{{stroke-width:1}}"""


def _colours() -> Iterable[str]:
    paper, ink, faint, line = map("/".join, (PAPER, INK, FAINT, LINE))
    yield f".ground,.number{{fill:{paper}}}"
    yield f".title,.stage{{fill:{ink}}}"
    yield f".kind,.badge,.measured,.note{{fill:{faint}}}"
    yield f".edge{{stroke:{line}}}"
    for family, colour in FAMILIES.items():
        ground, frame, ink = _pairs(colour)
        yield f".of-{family} .box{{fill:{ground};stroke:{frame}}}"
        yield f".of-{family} .kind,.of-{family} .badge{{fill:{ink}}}"
    for heat, colour in HEAT.items():
        ground, frame, ink = _pairs(colour)
        yield f".hot-{heat} .strip{{fill:{ground}}}"
        yield f".hot-{heat} .bar{{fill:{frame}}}"
        yield f".hot-{heat} .box.box{{stroke:{frame};stroke-width:{1 + heat / 2:g}}}"
        yield f".hot-{heat} .measured{{fill:{ink}}}"
    yield f".hot-0 .strip{{fill:{paper};fill-opacity:.6}}"
    yield f".hot-0 .bar{{fill:{line}}}"


def _pairs(colour: Colour) -> Shades:
    """Return the shades as pairs `#light/#dark`, for `themed`."""
    return Shades(*map("/".join, zip(colour.light, colour.dark, strict=True)))


PLAN_STYLE = themed("streamsparql-plan", "\n".join([_FONTS, *_colours()]))
"""The style sheet of a picture of a plan."""
