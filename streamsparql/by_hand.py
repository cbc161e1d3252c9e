"""Plans built in Python, operator by operator: the public names of `streamsparql.look.by_hand`."""

from __future__ import annotations

from streamsparql.look.by_hand import Draft, access, draft, graph, unit, values

__all__ = ["Draft", "access", "draft", "graph", "unit", "values"]
