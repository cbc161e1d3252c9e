"""The pipeline: which operators are stepped when, observers, and terms that survive recycling.

Not covered: whether operators keep their contract (the tests of operators in this folder).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.generate import PREFIX
from support.plans import plan

from streamsparql.algebra.functions import Run
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.physical.batch import TRIPLE, Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.lowering.lower import Catalog, lower
from streamsparql.physical.operator import Operator, Stateless, StepResult
from streamsparql.physical.operators.access import Always, StreamAccess
from streamsparql.physical.operators.columns import Rename
from streamsparql.physical.operators.join import Join, Union
from streamsparql.physical.operators.shape import Distinct
from streamsparql.physical.pipeline import BEFORE, Pipeline, wanted_predicates


class CountingPass(Stateless):
    """An operator that counts its steps and passes all rows on."""

    def __init__(self, input: Operator) -> None:  # noqa: A002 -- the role
        super().__init__(input.names, input)
        self.steps = 0
        self.forgotten = 0
        self.is_due = False

    def step(self, batches: Sequence[Batch], watermarks: Sequence[int], cut: bool) -> StepResult:
        self.steps += 1
        return super().step(batches, watermarks, cut)

    def apply(self, batch: Batch) -> Batch:
        return batch

    def due(self) -> bool:
        return self.is_due

    def forget(self) -> None:
        self.forgotten += 1


def triples(*ids: int, start: int = 0, end: int = 9) -> Batch:
    """Return a batch in which each row has the same term at all three positions."""
    column = np.array(ids, np.int64)
    times = np.full(len(ids), start, np.int64), np.full(len(ids), end, np.int64)
    return Batch(dict.fromkeys(TRIPLE, column), *times)


# -- Which operators are stepped when


def test_a_shared_operator_is_stepped_once() -> None:
    shared = CountingPass(StreamAccess("s"))
    pipeline = Pipeline(Union(CountingPass(shared), CountingPass(shared), shared), TermDictionary())
    rows, watermark = pipeline.step({"s": triples(7, 8)}, {"s": 5})
    assert shared.steps == 1
    assert len(rows) == 6
    assert watermark == 5
    assert pipeline.operators.index(shared) == 1
    assert len(pipeline.operators) == 5


def test_an_operator_without_new_input_is_not_stepped() -> None:
    one, two = CountingPass(StreamAccess("a")), CountingPass(StreamAccess("b"))
    pipeline = Pipeline(Union(one, two), TermDictionary())
    pipeline.step({"a": triples(7)}, {"a": 3, "b": 3})
    pipeline.step({"a": triples(7, start=3)}, {"a": 3, "b": 3})
    assert (one.steps, two.steps) == (2, 1)
    pipeline.step({}, {"a": 3, "b": 4})
    assert (one.steps, two.steps) == (2, 2)
    pipeline.step({}, {"a": 3, "b": 4}, cut=True)
    assert (one.steps, two.steps) == (3, 3)
    one.is_due = True
    pipeline.step({}, {"a": 3, "b": 4})
    assert (one.steps, two.steps) == (4, 3)


def test_rows_are_emitted_once() -> None:
    pipeline = Pipeline(CountingPass(StreamAccess("s")), TermDictionary())
    assert len(pipeline.step({"s": triples(7)}, {"s": 3})[0]) == 1
    assert len(pipeline.step({}, {"s": 3})[0]) == 0
    assert len(pipeline.step({}, {"s": 8})[0]) == 0


def test_a_static_plan_is_evaluated_once() -> None:
    static = CountingPass(Distinct(Always(triples(7, 8, 8, end=INFINITY)), TRIPLE))
    root = Union(static, CountingPass(StreamAccess("s")))
    pipeline = Pipeline(root, TermDictionary())
    batches = [pipeline.step({}, {"s": t}, cut=True)[0] for t in range(10)]
    assert static.steps == 1
    assert [len(rows) for rows in batches] == [2] + [0] * 9


def test_the_initial_watermark_is_before_all_time() -> None:
    pipeline = Pipeline(StreamAccess("s"), TermDictionary())
    assert pipeline.watermark == BEFORE
    pipeline.step({}, {"s": 4})
    assert pipeline.watermark == 4


def test_a_deep_plan_runs() -> None:
    root: Operator = StreamAccess("s")
    for _ in range(20_000):
        root = Rename(root, {name: name for name in TRIPLE})
    pipeline = Pipeline(root, TermDictionary())
    rows, _ = pipeline.step({"s": triples(7)}, {"s": 3})
    assert len(rows) == 1


# -- Many roots


def test_roots_share_operators_until_the_last_reader_goes() -> None:
    shared = CountingPass(StreamAccess("s"))
    one, two = CountingPass(shared), CountingPass(shared)
    pipeline = Pipeline(one, TermDictionary())
    pipeline.add(two)
    pipeline.step({"s": triples(7, 8)}, {"s": 5})
    assert shared.steps == 1
    assert [len(pipeline.output(root)) for root in (one, two)] == [2, 2]
    pipeline.remove(one)
    assert pipeline.operators == [shared.inputs[0], shared, two]
    pipeline.step({"s": triples(9, start=5)}, {"s": 6})
    assert (one.steps, two.steps) == (1, 2)
    pipeline.remove(two)
    assert pipeline.operators == []
    assert not pipeline.counts
    assert pipeline.step({}, {})[1] == INFINITY


def test_a_root_may_be_an_input_of_another_root() -> None:
    below = CountingPass(StreamAccess("s"))
    above = CountingPass(below)
    pipeline = Pipeline(above, TermDictionary())
    pipeline.add(below)
    pipeline.step({"s": triples(7)}, {"s": 5})
    assert [len(pipeline.output(root)) for root in (above, below)] == [1, 1]
    pipeline.remove(above)
    pipeline.step({"s": triples(8, start=5)}, {"s": 6})
    assert len(pipeline.output(below)) == 1


def test_a_root_that_is_added_later_continues_from_there() -> None:
    shared = CountingPass(StreamAccess("s"))
    pipeline = Pipeline(CountingPass(shared), TermDictionary())
    pipeline.step({"s": triples(7)}, {"s": 5})
    late = CountingPass(shared)
    pipeline.add(late)
    pipeline.step({}, {"s": 5})
    assert late.steps == 1
    pipeline.step({"s": triples(8, start=5)}, {"s": 6})
    assert len(pipeline.output(late)) == 1


def test_steps_are_cuts_below_roots_that_want_them() -> None:
    cuts: list[tuple[str, bool]] = []

    class Cutting(CountingPass):
        def step(self, batches: Sequence[Batch], marks: Sequence[int], cut: bool) -> StepResult:
            cuts.append((self.name, cut))
            return super().step(batches, marks, cut)

        def __init__(self, name: str, input: Operator) -> None:  # noqa: A002 -- the role
            super().__init__(input)
            self.name = name

    shared = Cutting("shared", StreamAccess("s"))
    cut_below = Cutting("reports", shared)
    pipeline = Pipeline(Cutting("rows", shared), TermDictionary())
    pipeline.add(cut_below, cut=True)
    pipeline.step({"s": triples(7)}, {"s": 5})
    assert sorted(cuts) == [("reports", True), ("rows", False), ("shared", True)]
    pipeline.remove(cut_below)
    cuts.clear()
    pipeline.step({"s": triples(7, start=5)}, {"s": 6})
    assert sorted(cuts) == [("rows", False), ("shared", False)]


def test_an_operator_is_replaced_by_another_one() -> None:
    stream = StreamAccess("out")
    reader, other = CountingPass(stream), CountingPass(CountingPass(stream))
    producer = CountingPass(StreamAccess("s"))
    pipeline = Pipeline(reader, TermDictionary())
    pipeline.add(other)
    pipeline.add(producer)
    pipeline.step({"s": triples(7)}, {"s": 5, "out": -1})
    pipeline.replace(stream, producer)
    assert stream not in pipeline.operators
    operators = pipeline.operators
    assert operators.index(producer) < min(map(operators.index, (reader, other)))
    pipeline.step({"s": triples(8, 9, start=5)}, {"s": 6})
    assert [len(pipeline.output(root)) for root in (reader, other, producer)] == [2, 2, 2]
    pipeline.remove(reader)
    pipeline.remove(producer)
    assert producer in pipeline.operators, "another root reads it"


def test_warmed_operators_keep_their_state() -> None:
    stream = StreamAccess("s")
    join = Join(Rename(stream, {"x": ".s"}), StreamAccess("b"), TermDictionary())
    warm = Pipeline(join, TermDictionary())
    warm.step({"s": triples(7)}, {"s": 5, "b": 5})
    pipeline = Pipeline(CountingPass(stream), TermDictionary())
    pipeline.step({"s": triples(7)}, {"s": 5})
    pipeline.add(join, warmed=warm)
    pipeline.step({"b": triples(9, start=5)}, {"s": 6, "b": 6})
    assert len(pipeline.output(join)) == 1, "the row from before meets the new one"


# -- Observers and counters


class Recorder:
    """An observer that records each step."""

    def __init__(self) -> None:
        self.observed: list[tuple[Operator, list[int], int]] = []

    def observe(self, operator: Operator, inputs: Sequence[Batch], output: Batch) -> None:
        self.observed.append((operator, [len(batch) for batch in inputs], len(output)))


def test_an_observer_sees_every_step_and_its_rows() -> None:
    left, right = StreamAccess("a"), Rename(StreamAccess("b"), {".s": ".s", "x": ".o"})
    join = Join(left, right, TermDictionary())
    recorder = Recorder()
    pipeline = Pipeline(join, TermDictionary(), recorder)
    pipeline.step({"a": triples(7, 8), "b": triples(7)}, {"a": 1, "b": 1})
    pipeline.step({"b": triples(8, 9, start=2)}, {"a": 4, "b": 4})
    assert [entry for entry in recorder.observed if entry[0] is join] == [
        (join, [2, 1], 1),
        (join, [0, 2], 1),
    ]
    for operator, counts in pipeline.counts.items():
        steps = [
            (inputs, rows) for observed, inputs, rows in recorder.observed if observed is operator
        ]
        inputs, outputs = zip(*steps, strict=True)
        assert counts.rows_in == [sum(rows) for rows in zip(*inputs, strict=True)]
        assert (counts.rows_out, counts.steps) == (sum(outputs), len(steps))
        assert counts.seconds == 0.0


def test_a_measured_pipeline_measures_the_time_and_the_state_of_each_step() -> None:
    left, right = StreamAccess("a"), StreamAccess("b")
    join = Join(left, right, TermDictionary())
    pipeline = Pipeline(join, TermDictionary(), measured=True)
    pipeline.step({"a": triples(7, 8, 9)}, {"a": 1, "b": 1})
    pipeline.step({}, {"a": 50, "b": 50})
    counts = pipeline.counts[join]
    assert (counts.state, counts.peak, pipeline.peak) == (0, 3, 3)
    assert counts.seconds > 0


def test_state_is_measured_on_request_and_its_peak_is_kept() -> None:
    left, right = StreamAccess("a"), StreamAccess("b")
    join = Join(left, right, TermDictionary())
    pipeline = Pipeline(join, TermDictionary())
    pipeline.step({"a": triples(7, 8, 9)}, {"a": 1, "b": 1})
    assert pipeline.state() == {left: 0, right: 0, join: 3}
    pipeline.step({}, {"a": 50, "b": 50})
    assert pipeline.state()[join] == 0
    assert pipeline.counts[join].peak == 3


# -- Recycling of unused terms


class Full(TermDictionary):
    """A dictionary that is always due for recycling."""

    def due(self) -> bool:
        return True


def test_recycling_keeps_retained_terms_and_notifies_all_operators() -> None:
    terms = Full()
    names = [terms.id_of(IRI(f"http://e/{k}")) for k in range(6)]
    kept = terms.id_of(Literal("a constant of the query"), keep=True)
    above = CountingPass(StreamAccess("b"))
    join = Join(Rename(StreamAccess("a"), {"x": ".s"}), above, terms)
    pipeline = Pipeline(join, terms)
    pipeline.step({"a": triples(*names[:2])}, {"a": 1, "b": 1})
    pipeline.step({}, {"a": 2, "b": 2})
    pipeline.recycle([np.array([names[2]])])
    assert above.forgotten == 1
    texts = terms.texts(np.array([*names[:3], kept])).to_pylist()
    assert texts[:3] == [f"<http://e/{k}>" for k in range(3)]
    assert texts[3] == '"a constant of the query"'
    new = {terms.id_of(IRI(f"http://e/new {k}")) for k in range(3)}
    assert new == set(names[3:]), "ids of unused terms are reused"


def test_terms_of_the_last_output_are_retained() -> None:
    terms = Full()
    (one, two) = (terms.id_of(IRI(f"http://e/{k}")) for k in range(2))
    pipeline = Pipeline(StreamAccess("s"), terms)
    rows, _ = pipeline.step({"s": triples(one, two)}, {"s": 1})
    pipeline.recycle()
    assert terms.texts(rows.columns[".s"]).to_pylist() == ["<http://e/0>", "<http://e/1>"]


def test_a_dictionary_that_is_not_due_is_not_recycled() -> None:
    above = CountingPass(StreamAccess("s"))
    Pipeline(above, TermDictionary()).recycle()
    assert above.forgotten == 0


# -- Predicates that a source must read


WANTED = {
    "SELECT * STREAM { ?x :p ?y }": {"p"},
    "SELECT * STREAM { ?x :p ?y . ?y :q ?z OPTIONAL { ?x :r ?w } }": {"p", "q", "r"},
    "SELECT * STREAM { { ?x :p ?y } UNION { ?x :q ?y } MINUS { ?x :r 1 } }": {"p", "q", "r"},
    "SELECT * STREAM { ?x :p ?y FILTER NOT EXISTS { ?x :q ?y } }": {"p", "q"},
    "SELECT * STREAM { ?x :p/:q+ ?y }": {"p", "q"},
    "SELECT * STREAM { ?x ?p ?y FILTER(?p = :p) }": None,
    "SELECT * STREAM { ?x :p ?y . ?y ?q ?z }": None,
    "SELECT * STREAM { ?x :p* ?y }": None,
    "SELECT * STREAM { ?x !:p ?y }": None,
    "DESCRIBE ?x STREAM { ?x :p ?y }": None,
    "CONSTRUCT { ?y :r ?x } STREAM { ?x :p ?y }": {"p"},
    "SELECT * FROM STREAM :s WINDOW ELEMS 5 { ?x :p ?y }": None,
    "SELECT * STREAM { ?x :p ?y WINDOW ELEMS 5 }": {"p"},
}


@pytest.mark.parametrize(("text", "wanted"), list(WANTED.items()))
def test_a_source_gets_the_predicates_that_can_match(text: str, wanted: set[str] | None) -> None:
    terms = TermDictionary()
    whole = text.replace(" STREAM {", " FROM STREAM :s WINDOW RANGE 9 MS SLIDE 3 MS {")
    lowered = lower(plan(PREFIX + whole), terms, Run(), Catalog())
    (predicates,) = wanted_predicates(lowered.operator).values()
    names = None if predicates is None else {str(terms.term_of(p)) for p in predicates}
    assert names == (None if wanted is None else {f"<http://e/{p}>" for p in wanted})
