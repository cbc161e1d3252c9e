"""A check for well-formed HTML."""

from __future__ import annotations

from html.parser import HTMLParser


class Balanced(HTMLParser):
    """A parser that checks that tags are properly nested, and collects tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_html(page: str) -> Balanced:
    """Check that all tags are closed; return the parser with the tags and the text."""
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser
