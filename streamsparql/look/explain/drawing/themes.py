"""Style sheets for light and dark: in files, in pages, and in notebooks with a theme of their own.

A sheet has one rule per line; a colour that differs is written `#light/#dark`. What cannot choose
(an old browser, a converter to PDF) takes the light ones. Others follow the reader's preference,
unless the page around says what it is: JupyterLab, VS Code and documentation sites mark theirs.
Prints are light.
"""

from __future__ import annotations

import re

_PAIR = re.compile(r"(#[0-9a-f]{3,8})/(#[0-9a-f]{3,8})")
_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')


def themed(root: str, rules: str) -> str:
    """A style sheet for what stands inside of elements of the class `root`.

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
    """A rule that holds in our elements only: a style sheet in a page reaches all of it.

    `&` in a selector stands for the root itself.
    """
    selectors, brace, body = rule.partition("{")
    made = [
        one.replace("&", f".{root}") if "&" in one else f".{root} {one}"
        for one in selectors.split(",")
    ]
    return ",".join(made) + brace + body


def _under(marks: tuple[str, ...], root: str) -> str:
    return ",".join(f"{mark} .{root}" for mark in marks)
