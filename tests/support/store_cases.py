"""Queries of `cases/*.rq`, each with an equivalent query over a store and its content per instant.

If a store cannot parse a query at all, because of a window in a group or an operator of the dialect,
the case has a second query for the store (`== store`), and names the graphs that have the content of
such windows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from support.engine import Data, Item
from support.window_content import Content, content

from streamsparql.algebra.terms import IRI, Triple, integer
from streamsparql.rdflib_terms import term

CASES = Path(__file__).parents[1] / "cases"
PREFIX = "PREFIX : <http://e/>\n"
HOME = "http://e/"


class Slot(NamedTuple):
    """A window: the graph of the store that has its content ("": the default graph).

    `matching` is the predicate of the only triples that the window counts, or "". Unless it is
    `alone`, the graph also has the triples of the default graph.
    """

    graph: str
    stream: str
    window: Content
    matching: str = ""
    alone: bool = True


class Case(NamedTuple):
    """A query, the query for the store (`plain`), and the windows whose content the store has."""

    name: str
    dialect: str
    text: str
    plain: str
    slots: tuple[Slot, ...]


def cases() -> Iterator[Case]:
    """Yield the cases of all files."""
    for path in sorted(CASES.glob("*.rq")):
        dialect = path.stem
        _, *parts = path.read_text().split("\n## ")
        for part in parts:
            title, _, rest = part.partition("\n")
            yield _case(f"{dialect}: {title}", dialect, rest.strip())


def _case(name: str, dialect: str, text: str) -> Case:
    clause = r"^:(\w+) = :(\w+)( alone)?(?: matching :(\w+))? (WINDOW .*)\n"
    slots = [
        Slot(graph, stream, content(window, dialect), matching, bool(alone))
        for graph, stream, alone, matching, window in re.findall(clause, text, re.M)
    ]
    text = re.sub(r"^:\w+ = .*\n", "", text, flags=re.M)
    text, _, plain = text.partition("\n== store\n")
    slots += _slots(text, dialect)
    return Case(name, dialect, PREFIX + text, PREFIX + (plain or _plain(text)), tuple(slots))


def _slots(text: str, dialect: str) -> Iterator[Slot]:
    """Yield the windows of a query's FROM lines, and of CQELS's blocks."""
    for named, stream, window in re.findall(r"^FROM (NAMED )?STREAM :(\w+) (.*)$", text, re.M):
        yield Slot(stream if named else "", stream, content(window, dialect))
    for name, stream, window in re.findall(r"^FROM NAMED WINDOW :(\w) ON :(\w+) (.*)$", text, re.M):
        yield Slot(name, stream, content(_milliseconds(window), dialect))
    for k, (stream, window) in enumerate(re.findall(r"STREAM :(\w+) (\[.*?\]) \{", text)):
        yield Slot(f"b{k}", stream, content(window, dialect))


def _milliseconds(window: str) -> str:
    """Replace durations of milliseconds by bare numbers, and ELEMENTS by TRIPLES."""
    window = re.sub(r"PT0\.0*(\d+)S", r"\1", window)
    return window.replace("ELEMENTS", "TRIPLES")


def _plain(text: str) -> str:
    """Remove streaming clauses and static FROM: the store has only the data that counts."""
    text = re.sub(r"^(FROM|REGISTER) .*\n", "", text + "\n", flags=re.M)
    blocks = iter(range(100))
    text = re.sub(r"STREAM :\w+ \[.*?\] \{", lambda _: f"GRAPH :b{next(blocks)} {{", text)
    return re.sub(r"WINDOW ([:?]\w) \{", r"GRAPH \1 {", text)


ALL = list(cases())


# -- Data ---------------------------------------------------------------------------------------


def random_data(case: Case, random: Random) -> Data:
    """Draw streams, a default graph and named graphs; no duplicates where windows are multisets."""
    universe = _universe()
    random.shuffle(universe)
    graph, graphs = universe[:7], {HOME + g: random.sample(universe, 8) for g in ("g1", "g2")}
    rest = universe[7:]
    parts = {"s": rest[: len(rest) // 2], "t": rest[len(rest) // 2 :]}
    if case.dialect in ("csparql", "cqels", "rspql"):
        parts = {name: random.choices(universe, k=30) for name in parts}
    streams = {HOME + name: _timed(items, random) for name, items in parts.items()}
    return Data(streams, graph, graphs)


def _universe() -> list[tuple[str, str, str]]:
    nodes = [f"<{HOME}{name}>" for name in "abcd"]
    values = {
        "p": nodes,
        "q": nodes,
        "v": [str(integer(n)) for n in range(1, 5)],
        "n": ['"ab"', '"cd"', '"ef"'],
        "k": [f"<{HOME}K>", f"<{HOME}L>"],
    }
    return [(s, f"<{HOME}{p}>", o) for s in nodes for p, some in values.items() for o in some]


def _timed(items: list[tuple[str, str, str]], random: Random) -> list[Item]:
    t, timed = random.randint(0, 5), []
    for item in items:
        timed.append((item, t))
        t += random.choice([0, 0, 1, 1, 2, 3, 12])
    return timed


def store_content(
    case: Case, data: Data, t: int
) -> tuple[frozenset[Triple], dict[IRI, frozenset[Triple]]]:
    """Return the content of the store for an instant: the default graph, and the named graphs."""
    background = frozenset(map(_triple, data.graph))
    default, stamps = set(background), dict[Triple, int]()
    graphs: dict[str, frozenset[Triple]] = {}
    for name in ("g1", "g2"):
        if re.search(rf"FROM NAMED :{name}", case.text):
            graphs[name] = frozenset(map(_triple, data.graphs[HOME + name]))
    for slot in case.slots:
        items = [
            (_triple(item), stamp)
            for item, stamp in data.streams[HOME + slot.stream]
            if not slot.matching or item[1] == f"<{HOME}{slot.matching}>"
        ]
        positions = slot.window([stamp for _, stamp in items], t)
        triples = {items[k][0] for k in positions}
        if slot.graph:
            graphs[slot.graph] = frozenset(triples if slot.alone else triples | background)
        else:
            default |= triples
            stamps |= {items[k][0]: items[k][1] for k in positions}
    if ":stamps" in case.plain:
        graphs["stamps"] = _reified(stamps)
    return frozenset(default), {IRI(HOME + name): graph for name, graph in graphs.items()}


def _triple(item: tuple[str, str, str]) -> Triple:
    return Triple(*map(term, item))


def _reified(stamps: dict[Triple, int]) -> frozenset[Triple]:
    """Return triples that describe each triple of the default graph and its timestamp."""
    described: set[Triple] = set()
    for k, (triple, t) in enumerate(stamps.items()):
        about = {
            "of": triple.subject,
            "by": triple.predicate,
            "is": triple.object,
            "at": integer(t),
        }
        described |= {Triple(IRI(f"{HOME}r{k}"), IRI(HOME + name), x) for name, x in about.items()}
    return frozenset(described)
