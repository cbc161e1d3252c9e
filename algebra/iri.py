"""Resolution of relative IRIs against a base (RFC 3986, section 5.2)."""

from __future__ import annotations

import re
from typing import NamedTuple


def resolve_iri(base: str, relative: str) -> str:
    """Resolve a reference against a base IRI; an empty base leaves it unchanged.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g#s")
    'http://a/b/g#s'
    """
    if not base:
        return relative
    start, reference = _parse_reference(base), _parse_reference(relative)
    if reference.scheme is not None:
        return relative  # SPARQL 1.1 section 4.1.1.2 resolves relative IRIs only
    path = _remove_dot_segments(reference.path)
    if reference.authority is not None:
        return str(reference._replace(scheme=start.scheme, path=path))
    if not reference.path:
        query = start.query if reference.query is None else reference.query
        return str(start._replace(query=query, fragment=reference.fragment))
    if not reference.path.startswith("/"):
        path = _remove_dot_segments(_merge_paths(start, reference.path))
    return str(reference._replace(scheme=start.scheme, authority=start.authority, path=path))


class _Reference(NamedTuple):
    """An IRI reference in its five parts; None is an absent part, "" an empty one."""

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


def _parse_reference(reference: str) -> _Reference:
    match = _PARTS.fullmatch(reference)
    assert match is not None, "the pattern matches every string"
    return _Reference(*match.groups())


def _merge_paths(base: _Reference, path: str) -> str:
    if base.authority is not None and not base.path:
        return "/" + path
    return base.path[: base.path.rfind("/") + 1] + path


def _remove_dot_segments(path: str) -> str:
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
