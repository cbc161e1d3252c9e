"""Relative IRIs, resolved against a base (RFC 3986, section 5.2)."""

from __future__ import annotations

import re
from typing import NamedTuple


def resolve_iri(base: str, relative: str) -> str:
    """A reference resolved against a base IRI. With no base it stays as it is.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g#s")
    'http://a/b/g#s'
    """
    if not base:
        return relative
    start, given = _parts(base), _parts(relative)
    if given.scheme is not None:
        return relative  # SPARQL 1.1 section 4.1.1.2 resolves relative IRIs, and leaves others be
    path = _without_dots(given.path)
    if given.authority is not None:
        return str(given._replace(scheme=start.scheme, path=path))
    if not given.path:
        query = start.query if given.query is None else given.query
        return str(start._replace(query=query, fragment=given.fragment))
    if not given.path.startswith("/"):
        path = _without_dots(_merged(start, given.path))
    return str(given._replace(scheme=start.scheme, authority=start.authority, path=path))


class _Reference(NamedTuple):
    """An IRI reference in its five parts. A part that is None is absent, which "" is not."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    def __str__(self) -> str:
        scheme = "" if self.scheme is None else self.scheme + ":"
        authority = "" if self.authority is None else "//" + self.authority
        query = "" if self.query is None else "?" + self.query
        fragment = "" if self.fragment is None else "#" + self.fragment
        return scheme + authority + self.path + query + fragment


_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def _parts(reference: str) -> _Reference:
    match = _PARTS.fullmatch(reference)
    assert match is not None, "every text is a reference"
    return _Reference(*match.groups())


def _merged(base: _Reference, path: str) -> str:
    if base.authority is not None and not base.path:
        return "/" + path
    return base.path[: base.path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    path = re.sub(r"^(?:\.\.?/)+|^\.\.?$", "", path)
    segments = re.findall(r"/[^/]*|^[^/]+", path)
    kept: list[str] = []
    for segment in segments:
        if segment == "/..":
            del kept[-1:]
        elif segment != "/.":
            kept.append(segment)
    if segments and segments[-1] in ("/.", "/.."):
        kept.append("/")
    return "".join(kept)
