"""Plans for programs: one JSON object, described in docs/explain.md.

The nodes are a flat list, with inputs by number, so a shared node occurs once, and a plan may be
deeper than the nesting that JSON parsers allow.
"""

from __future__ import annotations

import json
from typing import Any

from streamsparql.errors import escape_controls
from streamsparql.look.explain.boxes.box import Box, Reference, places
from streamsparql.look.explain.explanation import Explanation

FORMAT = 1
"""The version of the format: increased when a key is removed or changes its meaning."""


def render_json(explanation: Explanation) -> str:
    """Return the object, with a key per stage."""
    about = explanation.about()
    document: dict[str, Any] = {"format": FORMAT}
    document |= {"query": about} if explanation.translation is not None else about
    if explanation.measured:
        document["analysis"] = dict(explanation.measured)
    document |= {name: {"nodes": nodes(box)} for name, box in explanation.stages}
    if "optimized" in document:
        document["optimized"]["rules"] = dict(explanation.rules)
    return escape_controls(json.dumps(document, ensure_ascii=False, indent=2))


def nodes(root: Box) -> list[dict[str, Any]]:
    """Return the nodes of a stage in reading order, the root first.

    >>> [node["inputs"] for node in nodes(Box("Distinct", children=(Box("Table", "?x: (1)"),)))]
    [[{'node': 1}], []]
    """
    all_places = places(root)
    boxes = [index for index, place in enumerate(all_places) if isinstance(place.item, Box)]
    ids = {index: number for number, index in enumerate(boxes)}
    shared = {all_places[index].item.number: ids[index] for index in boxes}

    def input_(item: Box | Reference, node: int) -> dict[str, Any]:
        return {"node": node, "role": item.role} if item.role else {"node": node}

    objects = []
    for index in boxes:
        item, _, children, reads = all_places[index]
        assert isinstance(item, Box)
        inputs = [{"node": shared[reads]}] if reads else []
        for child in children:
            below = all_places[child].item
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
        objects.append(node)
    return objects
