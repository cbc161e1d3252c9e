"""Style sheets with light and dark colours: for files, pages, and notebooks that have a theme.

A sheet has one rule per line; a colour that depends on the theme is written `#light/#dark`. Old
browsers and converters to PDF, which cannot choose, use the light colours. Other browsers follow
the reader's preference, unless the surrounding page marks its theme, as JupyterLab, VS Code and
documentation sites do. Printed pages are light.
"""

from __future__ import annotations

import re

_PAIR = re.compile(r"(#[0-9a-f]{3,8})/(#[0-9a-f]{3,8})")
_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')


def themed(root: str, rules: str) -> str:
    """Return a style sheet that applies inside elements of the class `root`.

    >>> print(themed("our", "text,.soft{fill:#000/#fff}").splitlines()[0])
    .our text,.our .soft{fill:#000}
    """
    lines = [_inside(root, rule) for rule in rules.splitlines() if rule]
    coloured = [_PAIR.sub(r"light-dark(\1,\2)", line) for line in lines if _PAIR.search(line)]
    return "\n".join(
        [
            *(_PAIR.sub(r"\1", line) for line in lines),
            "@supports (color:light-dark(#000,#fff)){",
            *coloured,
            f".{root}{{color-scheme:light dark}}",
            f"{_under(_DARK, root)}{{color-scheme:dark}}",
            f"{_under(_LIGHT, root)}{{color-scheme:light}}",
            f"@media print{{.{root}.{root}.{root}{{color-scheme:light}}}}",
            "}",
        ]
    )


def _inside(root: str, rule: str) -> str:
    """Restrict a rule to elements inside `root`: a style sheet applies to the whole page.

    `&` in a selector stands for the root itself.
    """
    selectors, brace, body = rule.partition("{")
    scoped = [
        each.replace("&", f".{root}") if "&" in each else f".{root} {each}"
        for each in selectors.split(",")
    ]
    return ",".join(scoped) + brace + body


def _under(marks: tuple[str, ...], root: str) -> str:
    return ",".join(f"{mark} .{root}" for mark in marks)
