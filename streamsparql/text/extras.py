"""The command that installs an extra of this package, from its checkout or from an index."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install(extras: str) -> str:
    """Return the command that installs extras, which works for a checkout and for an index.

    >>> install("spark,java").startswith("pip install '")
    True
    >>> install("spark,java").endswith("[spark,java]'")
    True
    """
    return f"pip install '{_origin()}[{extras}]'"


def _origin() -> str:
    """Return the folder or file that this package was installed from, or its name in an index."""
    try:
        text = distribution("streamsparql").read_text("direct_url.json")
    except PackageNotFoundError:  # imported from a checkout that is not installed
        return _if_exists(Path(__file__).parents[2])
    return "streamsparql" if text is None else origin_of(json.loads(text).get("url", ""))


def origin_of(url: str) -> str:
    """Return what pip accepts for a URL that it has recorded.

    >>> origin_of("file:///"), origin_of("file:///nowhere/at/all"), origin_of("")
    ('/', 'streamsparql', 'streamsparql')
    """
    parts = urlsplit(url)
    return _if_exists(Path(unquote(parts.path))) if parts.scheme == "file" else "streamsparql"


def _if_exists(path: Path) -> str:
    return str(path) if path.exists() and "'" not in str(path) else "streamsparql"
