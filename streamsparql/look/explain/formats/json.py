"""Plans for programs: one JSON object, described in docs/explain.md.

Nodes are a list, with their inputs by number, and not nested: so what is shared is there once, and
a plan may be deeper than parsers of JSON can nest.
"""

from __future__ import annotations

import json
from typing import Any

from streamsparql.look.explain.boxes.box import Box, Reference, places
from streamsparql.look.explain.explanation import Explanation

FORMAT = 1
"""The version of the format. It counts up when a key changes its meaning or goes away."""


def render(explanation: Explanation) -> str:
    """The object, a key per stage."""
    known: dict[str, Any] = {"format": FORMAT, "query": explanation.about()}
    if explanation.measured:
        known["analysis"] = dict(explanation.measured)
    known |= {name: {"nodes": nodes(box)} for name, box in explanation.stages}
    if "optimized" in known:
        known["optimized"]["rules"] = dict(explanation.rules)
    return json.dumps(known, ensure_ascii=False, indent=2)


def nodes(root: Box) -> list[dict[str, Any]]:
    """The nodes of a stage in reading order, the root first.

    >>> [node["inputs"] for node in nodes(Box("Distinct", children=(Box("Table", "?x: (1)"),)))]
    [[{'node': 1}], []]
    """
    found = places(root)
    boxes = [index for index, place in enumerate(found) if isinstance(place.item, Box)]
    ids = {index: number for number, index in enumerate(boxes)}
    shared = {found[index].item.number: ids[index] for index in boxes}

    def input_(item: Box | Reference, node: int) -> dict[str, Any]:
        return {"node": node, "role": item.role} if item.role else {"node": node}

    made = []
    for index in boxes:
        item, _, children, reads = found[index]
        assert isinstance(item, Box)
        inputs = [{"node": shared[reads]}] if reads else []
        for child in children:
            below = found[child].item
            inputs.append(input_(below, ids.get(child, shared.get(below.number, 0))))
        node: dict[str, Any] = {
            "id": ids[index],
            "kind": item.kind,
            "family": item.family,
            "title": item.title,
            "facts": dict(item.facts),
            "inputs": inputs,
        }
        if item.measures is not None:
            node["measured"] = item.measures.numbers()
        made.append(node)
    return made
