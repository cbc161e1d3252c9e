"""The operators that emptied a result, by the counts of rows that each run has.

From the last operator down, the walk follows inputs without rows. It ends at operators that consume
rows and emit none, and at triple patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.physical.hidden import ANSWER
from streamsparql.physical.operator import Operator
from streamsparql.physical.operators.access import Always
from streamsparql.physical.operators.filter import Mark, SemiJoin
from streamsparql.physical.operators.group import Aggregation
from streamsparql.physical.operators.join import Join, Union
from streamsparql.physical.operators.left_join import LeftJoinOn
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.multi_join import MultiJoin
from streamsparql.physical.operators.sliced import Sliced
from streamsparql.physical.pipeline import Pipeline


def has_no_answer(pipeline: Pipeline) -> bool:
    """Return whether a run emitted no rows, rows of empty groups only, or never the answer true."""
    return _Walk(pipeline).is_empty(pipeline.root)


def causes(pipeline: Pipeline) -> list[Operator]:
    """Return the operators that emptied the result of a run, each once, from left to right."""
    return list(_Walk(pipeline).causes(pipeline.root))


class _Walk:
    def __init__(self, pipeline: Pipeline) -> None:
        self._counts = pipeline.counts

    def is_empty(self, operator: Operator) -> bool:
        """Return whether an operator emitted no rows, or only rows that exist without input."""
        while self._counts[operator].rows_out:
            if isinstance(operator, Aggregation) and not operator.keys:
                return not sum(self._counts[operator].rows_in)
            if isinstance(operator, Mark) and ANSWER in operator.names:
                return self.is_empty(operator.inputs[1])
            if len(operator.inputs) != 1 or isinstance(operator, Aggregation):
                return False
            (operator,) = operator.inputs
        return True

    def causes(self, root: Operator) -> Iterator[Operator]:
        """Yield the operators that emptied the output of one, from left to right."""
        pending, seen = [root], set[Operator]()
        while pending:
            operator = pending.pop()
            if operator in seen:
                continue
            seen.add(operator)
            below = self._emptied_by(operator)
            if below:
                pending += reversed(below)
            else:
                yield operator

    def _emptied_by(self, operator: Operator) -> list[Operator]:
        """Return the inputs whose lack of rows explains that of an operator."""
        inputs = list(operator.inputs)
        if isinstance(operator, Always):
            return []
        if isinstance(operator, TriplePatternMatching):
            return self._emptied_source(operator)
        if isinstance(operator, Mark) and ANSWER in operator.names:
            return inputs[1:]
        empty = [below for below in inputs if self.is_empty(below)]
        match operator:
            case Union():
                return inputs
            case Join() | MultiJoin():
                return empty
            case Sliced() | LeftJoinOn() if inputs[0] in empty:
                return inputs[:1]
            case SemiJoin():
                return empty
            case Sliced() | LeftJoinOn():
                return []
        return empty

    def _emptied_source(self, operator: TriplePatternMatching) -> list[Operator]:
        """Return windows, or horizons, below a triple pattern that emit none of their rows."""
        pending, emptied, seen = [*operator.inputs], list[Operator](), set[Operator]()
        while pending:
            below = pending.pop()
            if below in seen:
                continue
            seen.add(below)
            if self.is_empty(below) and below.inputs:
                passed = [each for each in below.inputs if self.is_empty(each)]
                if len(passed) < len(below.inputs):
                    emptied.append(below)
                pending += passed
        return emptied
