"""What a path tells before anything is opened: where the file is, its format, whether it ends."""

from __future__ import annotations

import os
import stat
from urllib.parse import unquote

PACKED = (".gz", ".zst")
"""The extensions of packed files, which stand after that of the format."""


def path_of(given: str | os.PathLike[str]) -> str:
    """The path that is given, or that a `file:` IRI names.

    >>> path_of("a/b.nq"), path_of("file:///a/my%20graph.ttl"), path_of("file://localhost/b.ttl")
    ('a/b.nq', '/a/my graph.ttl', '/b.ttl')
    >>> path_of("file:/b.ttl"), path_of("file://a/b.ttl")
    ('/b.ttl', 'a/b.ttl')
    """
    text = os.fspath(given)
    for start, kept in (("file://localhost/", 1), ("file:///", 1), ("file://", 0), ("file:/", 1)):
        if text.startswith(start):
            return unquote(text[len(start) - kept :])
    return text


def extension_of(path: str) -> str:
    """The extension that tells the format, in small letters, without its dot.

    >>> extension_of("day=1/Part-0.NQ.gz"), extension_of("rows.csv"), extension_of("README")
    ('nq', 'csv', '')
    """
    stem, extension = os.path.splitext(path.lower())
    return (os.path.splitext(stem)[1] if extension in PACKED else extension)[1:]


def is_packed(path: str) -> bool:
    """Whether the name of a file says that it is packed.

    >>> is_packed("a.nq.gz"), is_packed("a.nq")
    (True, False)
    """
    return path.lower().endswith(PACKED)


def is_endless(path: str) -> bool:
    """Whether a path is of what is read as it comes, and once: standard input, pipes, devices.

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
