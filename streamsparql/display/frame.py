"""A frame around a picture in a page: a large picture scrolls, or is fitted to the window.

A checkbox switches between the two, without a script. In print, pictures are fitted.
"""

from __future__ import annotations

_SVG = ".streamsparql-frame.streamsparql-frame"  # twice: overrides JupyterLab
_STYLE = (
    ".streamsparql-frame>div{overflow:auto;max-height:80vh}"
    ".streamsparql-frame:has(:checked)>div{max-height:none}"
    f"{_SVG} svg{{max-width:none}}{_SVG}:has(:checked) svg{{max-width:100%;height:auto}}"
    ".streamsparql-frame label{display:block;font:12px/1.5 system-ui,sans-serif;opacity:.75}"
    "@media print{.streamsparql-frame>div{overflow:visible;max-height:none}"
    f"{_SVG} svg{{max-width:100%;height:auto}}.streamsparql-frame label{{display:none}}}}"
)
_MAX_SIZE = (900.0, 640.0)
"""The largest size of a picture without a checkbox."""


def frame(svg: str, width: float = 0, height: float = 0) -> str:
    """Return the HTML of a picture in a frame.

    >>> frame("<svg/>").partition("</style>")[2]
    '<div>\\n<svg/>\\n</div></div>'
    """
    large = width > _MAX_SIZE[0] or height > _MAX_SIZE[1]
    fit = '<label><input type="checkbox"/> fit to the window</label>\n' if large else ""
    return f'<div class="streamsparql-frame"><style>{_STYLE}</style>{fit}<div>\n{svg}\n</div></div>'
