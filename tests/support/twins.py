"""Twins: a session, or an open query, and one that is saved and restored at random moments.

Both receive the same calls; whatever they return must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import rdflib
from support.engine import Data, Item, disordered

import streamsparql
from streamsparql.run.input import RunInput
from streamsparql.run.live import Live
from streamsparql.run.rows import Report
from streamsparql.sources import Accounting


class Twins:
    """A random script over a session and its twin, which is restored from files."""

    def __init__(self, data: Data, seed: int, file: Path, **options: Any) -> None:
        self.random = random = Random(seed)
        delay = random.choice([0, 0, 2, 7])
        jump = random.choice([None, 3, 10_000])
        data = disordered(data, random.choice([0, delay, 9]), seed)
        self.left = {name: list(items) for name, items in data.streams.items()}
        self.file = file
        self.both = [
            streamsparql.Session(data.graph, data.graphs, max_jump=jump, max_delay=delay, **options)
            for _ in range(2)
        ]
        started = self.both[0]._engine.input.started
        for session in self.both:  # NOW() is the same in both
            object.__setattr__(session._engine.input, "started", started)
            session._engine._run = self.both[0]._engine._run
        self.called: list[dict[str, list[Any]]] = [{}, {}]
        self.restored = 0

    def register(self, text: str, name: str | None = None) -> None:
        options: dict[str, Any] = {}
        if self.random.random() < 0.4:
            options["report"] = self.random.choice(["rstream", "istream", "dstream"])
            if self.random.random() < 0.5:
                options["every"] = self.random.randint(1, 7)
        calling = self.random.random() < 0.3
        name = name or f"q{self.random.randrange(1 << 40)}"
        for session, called in zip(self.both, self.called, strict=True):
            on_row = called.setdefault(name, []).append if calling else None
            session.register(text, name, on_row=on_row, **options)

    def same(self, act: Callable[[streamsparql.Session], Any]) -> Any:
        one, other = (in_order(act(session)) for session in self.both)
        assert one == other, f"{one}\n{other}\nafter {self.restored} restores"
        return one

    def read(self, name: str) -> None:
        self.same(lambda session: session.queries[name].rows())

    def push(self) -> None:
        names = [n for n in self.left if self.left[n] and n in self.both[0].watermarks]
        if not names:
            for items in self.left.values():
                items.clear()
            return
        name = self.random.choice(names)
        size = self.random.choice([1, 1, 2, 5])
        items, self.left[name] = self.left[name][:size], self.left[name][size:]
        single = self.random.random() < 0.5
        for session in self.both:
            _push(session, name, items, single)

    def advance(self) -> None:
        name = self.random.choice([*self.left])
        if self.left[name] and name in self.both[0].watermarks:
            least = min(t for _, t in self.left[name])
            t = max(least - self.random.choice([0, 0, 1, 5]), 0)
            for session in self.both:
                session.advance(t, name)

    def restore(self) -> None:
        """Save both, and replace the second one by what its file has."""
        for session in self.both:
            session.save(self.file)
        called = self.called[1]
        calling = {
            name: called[name].append
            for name, query in self.both[1].queries.items()
            if query.on_row is not None
        }
        self.both[1] = streamsparql.Session.restore(self.file, on_row=calling)
        self.restored += 1
        self.compare()

    def compare(self) -> None:
        self.same(figures)
        assert in_order(self.called[0]) == in_order(self.called[1])

    def close(self) -> None:
        for session in self.both:
            session.close()
        self.same(lambda session: session.rows())
        self.compare()


def in_order(value: Any) -> Any:
    """Return what was returned, with rows that start together in a defined order."""
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in value.items()}
    if isinstance(value, Report) or (type(value) is tuple and len(value) == 2):
        return tuple(map(in_order, value))
    if isinstance(value, list):
        return sorted(map(in_order, value), key=repr)
    if isinstance(value, rdflib.Graph):
        return sorted(map(str, value))
    return value


def figures(session: streamsparql.Session) -> Any:
    """Return the counts of a session, but for those of operators and terms.

    Queries that are registered later share more with the plans of the undisturbed session.
    """
    return (
        session.stats()._replace(terms=0, operators=()),
        session.watermarks,
        sorted(str(each) for each in session.late),
        sorted(str(each) for each in session.rejected),
        {n: (q.start, q.since, q.end) for n, q in session.queries.items()},
    )


def _push(session: Any, name: str, items: Sequence[Item], single: bool) -> None:
    if single:
        for triple, t in items:
            session.push(name, triple, t)
    else:
        session.push_many(name, items)


def run_twins(
    texts: Sequence[str], data: Data, seed: int, file: Path, names: Mapping[str, str] | None = None
) -> Accounting:
    """Run a random script of calls; `names` are those of queries that feed streams."""
    names = names or {}
    history = Random(seed).choice([0, 0, 5])
    twins = Twins(data, seed, file, history=history)
    random, waiting = twins.random, list(texts)
    if random.random() < 0.6:
        for text in waiting:
            twins.register(text, names.get(text))
        waiting = []
    while waiting or any(twins.left.values()):
        known = [*twins.both[0].queries]
        match random.randrange(12):
            case 0 | 1 if waiting:
                text = waiting.pop()
                twins.register(text, names.get(text))
            case 2 if known and random.random() < 0.3:
                name = random.choice(known)
                if name not in names.values():
                    for session in twins.both:
                        session.unregister(name)
            case 3 if known:
                twins.read(random.choice(known))
            case 4:
                twins.advance()
            case 5:
                twins.restore()
            case _:
                twins.push()
    if random.random() < 0.5:
        twins.restore()
    twins.close()
    return twins.both[0].stats().items


def run_twin_instances(text: str, data: Data, seed: int, file: Path) -> None:
    """Run a random script over the instances of one query."""
    twins = Twins(data, seed, file)
    random = twins.random
    for session in twins.both:
        session.register(text)
    while any(twins.left.values()):
        match random.randrange(9):
            case 0 | 1:
                terms = [{"who": f"<http://e/{random.choice('abc')}>"} for _ in range(2)]
                twins.same(lambda s, terms=terms: s.queries["q1"].add_many(terms))  # type: ignore[misc]
            case 2:
                keys = twins.same(lambda s: s.queries["q1"].instances.numbers.tolist())
                if keys:
                    key = random.choice(keys)
                    for session in twins.both:
                        session.queries["q1"].remove(key)
            case 3:
                twins.read("q1")
            case 4:
                twins.restore()
            case _:
                twins.push()
    twins.restore()
    twins.close()


# -- One query -------------------------------------------------------------------------------------


class LiveTwins:
    """A random script over an open query and its twin, which is restored from files."""

    def __init__(self, query: Any, data: Data, seed: int, file: Path, **options: Any) -> None:
        self.random, self.file, self.query = Random(seed), file, query
        self.left = {name: list(items) for name, items in data.streams.items()}
        delay = self.random.choice([0, 3, 1_000_000])
        run_input = RunInput({}, data.graph, data.graphs, max_jump=None, max_delay=delay)
        live: Any = Live(query, run_input, **options)
        self.both = [live, self.restored(live)]

    def restored(self, live: Any) -> Any:
        live.save(self.file)
        return streamsparql.restore(self.file, query=self.query)

    def restore(self) -> None:
        """Save both, and replace the second one: saving is a step, at which eager rows are cut."""
        self.both[0].save(self.file)
        self.both[1] = self.restored(self.both[1])

    def push(self) -> None:
        name = self.random.choice([name for name in self.left if self.left[name]])
        size = self.random.choice([1, 1, 2, 5])
        items, self.left[name] = self.left[name][:size], self.left[name][size:]
        for live in self.both:
            live.push_many(name, list(items))

    def compare(self) -> None:
        one, other = (
            (in_order(live.rows()), live.watermark, live.stats()._replace(terms=0))
            for live in self.both
        )
        assert one == other

    def run(self) -> None:
        while any(self.left.values()):
            match self.random.randrange(6):
                case 0:
                    self.compare()
                case 1:
                    self.restore()
                case 2:
                    least = min(items[0][-1] for items in self.left.values() if items)
                    for live in self.both:
                        live.advance(least)
                case _:
                    self.push()
        self.restore()
        for live in self.both:
            live.close()
        self.compare()
