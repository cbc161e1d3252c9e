"""An Arrow column of native values, and what the metadata of its field say about it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa

KINDS_KEY = "streamsparql.kinds"
"""The key, in the metadata of a field, of the kinds of its values."""
TYPE_KEY = "streamsparql.as"
"""The key of the type that represents the values, if some of them are of another kind."""
ZONE_KEY = "streamsparql.zone"
"""The key of the time zone that all values of xsd:date or xsd:time have."""


class NativeColumn(NamedTuple):
    """An Arrow column, and the metadata of its field."""

    values: pa.Array | pa.ChunkedArray
    metadata: dict[str, str]

    @classmethod
    def of(cls, values: pa.Array, kinds: Collection[str], represented_as: str = "") -> NativeColumn:
        """Return a column of values of some kinds, represented as their own type by default.

        >>> NativeColumn.of(pa.array([1.0]), {"integer", "double"}, "double").metadata
        {'streamsparql.kinds': 'double, integer', 'streamsparql.as': 'double'}
        """
        metadata = {KINDS_KEY: ", ".join(sorted(kinds))}
        return cls(values, {**metadata, TYPE_KEY: represented_as} if represented_as else metadata)

    def field(self, name: str) -> pa.Field:
        """Return the field of a table."""
        return pa.field(name, self.values.type, metadata=self.metadata or None)
