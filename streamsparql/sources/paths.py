"""Properties of a path that are known before it is opened: location, format, whether it ends."""

from __future__ import annotations

import os
import stat
from urllib.parse import unquote

COMPRESSED_EXTENSIONS = (".gz", ".zst")
"""The extensions of compressed files, which follow that of the format."""


def path_of(source: str | os.PathLike[str]) -> str:
    """Return a path, or the path that a `file:` IRI names.

    >>> path_of("a/b.nq"), path_of("file:///a/my%20graph.ttl"), path_of("file://localhost/b.ttl")
    ('a/b.nq', '/a/my graph.ttl', '/b.ttl')
    >>> path_of("file:/b.ttl"), path_of("file://a/b.ttl")
    ('/b.ttl', 'a/b.ttl')
    """
    text = os.fspath(source)
    for start, kept in (("file://localhost/", 1), ("file:///", 1), ("file://", 0), ("file:/", 1)):
        if text.startswith(start):
            return unquote(text[len(start) - kept :])
    return text


def extension_of(path: str) -> str:
    """Return the extension that determines the format, in lower case, without its dot.

    >>> extension_of("day=1/Part-0.NQ.gz"), extension_of("rows.csv"), extension_of("README")
    ('nq', 'csv', '')
    """
    stem, extension = os.path.splitext(path.lower())
    return (os.path.splitext(stem)[1] if extension in COMPRESSED_EXTENSIONS else extension)[1:]


def is_compressed(path: str) -> bool:
    """Return whether the name of a file shows that it is compressed.

    >>> is_compressed("a.nq.gz"), is_compressed("a.nq")
    (True, False)
    """
    return path.lower().endswith(COMPRESSED_EXTENSIONS)


def is_endless(path: str) -> bool:
    """Return whether a path can be read once, as data arrives: standard input, a pipe, a device.

    >>> is_endless("-"), is_endless("nowhere.nq")
    (True, False)
    """
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)
