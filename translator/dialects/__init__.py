"""The five languages. A dialect is a record of its differences; `DIALECTS` has them all.

A dialect says what its window clauses mean, whether a window holds a bag or a set, and how results
are reported unless the query says otherwise. Everything else is the same for all: one grammar, one
translation, one algebra.
"""

from __future__ import annotations

from streamsparql.errors import StreamSparqlError
from streamsparql.translator.dialects.base import Dialect
from streamsparql.translator.dialects.bracketed import CQELS, CSPARQL, RSPQL
from streamsparql.translator.dialects.detect import Foreign, detect, foreign
from streamsparql.translator.dialects.epsparql import EPSPARQL
from streamsparql.translator.dialects.streaming import STREAMING

DIALECTS = {d.name: d for d in (STREAMING, CSPARQL, CQELS, EPSPARQL, RSPQL)}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name; case, hyphens and spaces do not matter.

    >>> dialect_named("RSP-QL").name
    'rspql'
    """
    key = name.lower().replace("-", "").replace(" ", "").replace("_", "")
    key = {"native": "streaming", "streamingsparql": "streaming", "sparql": "streaming"}.get(
        key, key
    )
    if key not in DIALECTS:
        known = ", ".join(("auto", *DIALECTS))
        raise StreamSparqlError(f"there is no dialect {name!r}; known are {known}")
    return DIALECTS[key]


__all__ = ["DIALECTS", "Dialect", "Foreign", "detect", "dialect_named", "foreign"]
