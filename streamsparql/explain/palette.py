"""The colours of operator families, the same in all formats, and the style sheet of pictures."""

from __future__ import annotations

from typing import NamedTuple


class Shades(NamedTuple):
    """The ground of a box, its frame, and the writing of its kind."""

    ground: str
    frame: str
    ink: str


class Colour(NamedTuple):
    """A family's colour in light pictures, in dark ones, and as a terminal's code."""

    light: Shades
    dark: Shades
    ansi: int

    def shades(self, dark: bool = False) -> Shades:
        """The shades on light or on dark."""
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
"""By the algebra's module that an operator is defined in."""

PAPER = ("#ffffff", "#0f1419")
INK = ("#1d252d", "#dfe5ec")
FAINT = ("#5b6875", "#9aa7b5")
LINE = ("#9aa5b1", "#56616d")
"""What has no family, on light and on dark."""

SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_FORMS = f"""\
.kind{{font:600 12px {SANS};font-variant:small-caps}}
.role{{font-weight:400;font-style:italic}}
.title{{font:11px {MONO}}}
.stage{{font:600 15px {SANS}}}
.number{{font:700 9px {SANS};text-anchor:middle}}
.edge{{fill:none;stroke-width:1.2}}
.box{{stroke-width:1}}"""


def _colours(dark: bool) -> str:
    rules = [
        f".ground,.number{{fill:{PAPER[dark]}}}",
        f".title,.stage{{fill:{INK[dark]}}}",
        f".kind,.badge{{fill:{FAINT[dark]}}}",
        f".edge{{stroke:{LINE[dark]}}}",
    ]
    for family, colour in FAMILIES.items():
        ground, frame, ink = colour.shades(dark)
        rules.append(f".of-{family} .box{{fill:{ground};stroke:{frame}}}")
        rules.append(f".of-{family} .kind,.of-{family} .badge{{fill:{ink}}}")
    return _inside("\n".join(rules))


def _inside(rules: str) -> str:
    """Rules that hold inside our pictures only: a style sheet in a page reaches all of it."""
    selectors = (rule.partition("{") for rule in rules.splitlines())
    return "\n".join(
        ",".join(f".streamsparql-plan {one}" for one in before.split(",")) + brace + body
        for before, brace, body in selectors
    )


STYLE = f"""\
{_inside(_FORMS)}
{_colours(dark=False)}
@media (prefers-color-scheme:dark){{
{_colours(dark=True)}
}}"""
"""The style sheet of a picture."""
