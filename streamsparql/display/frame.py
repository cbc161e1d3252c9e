"""A frame around a picture in a page: what is larger than the page scrolls, or is fitted into it.

There is no script: a box to tick does it. On paper, where nothing scrolls, a picture is fitted.
"""

from __future__ import annotations

_SVG = ".streamsparql-frame.streamsparql-frame"  # twice: JupyterLab shrinks all pictures
_STYLE = (
    ".streamsparql-frame>div{overflow:auto;max-height:80vh}"
    ".streamsparql-frame:has(:checked)>div{max-height:none}"
    f"{_SVG} svg{{max-width:none}}{_SVG}:has(:checked) svg{{max-width:100%;height:auto}}"
    ".streamsparql-frame label{display:block;font:12px/1.5 system-ui,sans-serif;opacity:.75}"
    "@media print{.streamsparql-frame>div{overflow:visible;max-height:none}"
    f"{_SVG} svg{{max-width:100%;height:auto}}.streamsparql-frame label{{display:none}}}}"
)
LARGE = (900.0, 640.0)
"""What is broader or taller can be fitted to the window."""


def frame(svg: str, width: float = 0, height: float = 0) -> str:
    """A picture in its frame.

    >>> frame("<svg/>").partition("</style>")[2]
    '<div>\\n<svg/>\\n</div></div>'
    """
    large = width > LARGE[0] or height > LARGE[1]
    fit = '<label><input type="checkbox"/> fit to the window</label>\n' if large else ""
    return f'<div class="streamsparql-frame"><style>{_STYLE}</style>{fit}<div>\n{svg}\n</div></div>'
