"""The five languages. A dialect is a record of its differences; `DIALECTS` has them all.

The meaning of window clauses, whether a window is a bag or a set, the default report: each is a
field of `Dialect`. Everything else is the same for all dialects: one grammar, one translation, one
algebra. To add a dialect, add a layer to the grammar, a record to `DIALECTS`, and its own
constructs to `detect`.
"""

from __future__ import annotations

from streamsparql.errors import StreamSparqlError
from streamsparql.translator.dialects.base import Dialect
from streamsparql.translator.dialects.bracketed import CQELS, CSPARQL, RSPQL
from streamsparql.translator.dialects.detect import ForeignConstruct, detect, foreign_constructs
from streamsparql.translator.dialects.epsparql import EPSPARQL
from streamsparql.translator.dialects.streaming import STREAMING

DIALECTS = {dialect.name: dialect for dialect in (STREAMING, CSPARQL, CQELS, EPSPARQL, RSPQL)}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of that name; case, hyphens and spaces do not matter.

    >>> dialect_named("RSP-QL").name
    'rspql'
    """
    key = name.lower().replace("-", "").replace(" ", "").replace("_", "")
    for dialect in DIALECTS.values():
        if key in (dialect.name, *dialect.aliases):
            return dialect
    raise StreamSparqlError(
        f"unknown dialect {name!r}; the dialects are {', '.join(('auto', *DIALECTS))}"
    )


__all__ = [
    "CQELS",
    "CSPARQL",
    "DIALECTS",
    "EPSPARQL",
    "RSPQL",
    "STREAMING",
    "Dialect",
    "ForeignConstruct",
    "detect",
    "dialect_named",
    "foreign_constructs",
]
