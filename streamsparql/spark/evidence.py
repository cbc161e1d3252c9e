"""Evidence on Spark: what happened before a slab, and decides which events are alone in it.

An optional side of an event query without a bound of its own (`OPTIONALSEQ`, `OPTIONAL`) depends on
all items before a slab, but only on which keys there were, and when first. A first pass computes
that: each task computes the rows of the optional side in its slab, as a query of their own
(`EvidenceQuery`), and emits the first of each key. The driver collects them, and each slab of the
second pass continues from those before it (`algebra/event_reach.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.event_reach import OptionalEvidence, event_reach
from streamsparql.algebra.plan import Plan
from streamsparql.compiled import CompiledQuery
from streamsparql.overriding import override
from streamsparql.physical.batch import Batch
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.physical.hidden import SINCE
from streamsparql.physical.kernels.occurrences import since_of
from streamsparql.spark.blocks import without_dictionaries

if TYPE_CHECKING:
    from streamsparql.physical.expressions.sort_keys import Ranking

EvidenceTables: TypeAlias = Mapping[int, pa.Table]
"""The evidence of a run: by its place in the reach of the query, its rows."""

START, END = ".start", ".end"
"""The internal columns of a row's times; `START` alone is the instant of its report."""
REDUCE_ROWS = 262_144
"""The number of rows after which a task reduces them to the first of each key."""


class EvidenceQuery(CompiledQuery):
    """The rows of an optional side of a query, as a query."""

    def __init__(self, base: CompiledQuery, number: int) -> None:
        self.base, self.number = base, number
        self.recipe, self.translation = base.recipe, base.translation
        self._evidence = evidence_of(base)[number]

    @override
    def __reduce__(self) -> tuple[Callable[..., EvidenceQuery], tuple[Any, ...]]:
        return EvidenceQuery, (self.base, self.number)

    @property
    @override
    def form(self) -> str:
        return "select"

    @property
    @override
    def variables(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self._evidence.variables)

    @property
    @override
    def optimized(self) -> Plan:
        return self._evidence.rows

    @property
    @override
    def ranking(self) -> Ranking | None:
        return None

    @property
    def timed(self) -> bool:
        """Whether rows with different starts differ."""
        return self._evidence.timed


def evidence_of(query: CompiledQuery) -> tuple[OptionalEvidence, ...]:
    """Return the evidence that a query needs from before a slab.

    >>> import streamsparql
    >>> text = "SELECT ?y { { ?x <a> ?y } OPTIONALSEQ { ?x <b> ?z } }"
    >>> [each.variables for each in evidence_of(streamsparql.compile(text))]
    [(?x,)]
    """
    if isinstance(query, EvidenceQuery):
        return evidence_of(query.base)
    return event_reach(query.optimized).evidence


def first_of_keys(tables: Iterable[pa.Table], query: EvidenceQuery) -> pa.Table:
    """Return the first of each key: of rows that differ in their ends only, or in their times."""
    keys = [*query.variables, *([START] if query.timed else [])]
    known: list[pa.Table] = []
    rows = 0
    for table in tables:
        known.append(without_dictionaries(table))
        rows += table.num_rows
        if rows >= REDUCE_ROWS:
            known = [_firsts(pa.concat_tables(known), keys)]
            rows = 0
    return _firsts(pa.concat_tables(known), keys)


def _firsts(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return, of rows that agree in the keys, the least end."""
    if not rows.num_rows:
        return rows
    plain = rows.select([*keys, END]).rename_columns([*map(str, range(len(keys))), "end"])
    firsts = plain.group_by(plain.column_names[:-1]).aggregate([("end", "min")])
    known = dict(zip(keys, map(firsts.column, plain.column_names[:-1]), strict=True))
    known = {END: firsts.column("end_min"), START: firsts.column("end_min"), **known}
    return pa.table({name: known[name] for name in rows.column_names})


def evidence_before(
    query: CompiledQuery, tables: EvidenceTables, t: int, terms: TermDictionary
) -> dict[Plan, Batch]:
    """Return the rows that ended before an instant, by the operator that they are evidence for."""
    known = evidence_of(query) if tables else ()
    batches = {}
    for number, table in tables.items():
        rows = table.filter(pc.less(table.column(END), t))
        names = [v.name for v in known[number].variables]
        columns = {name: terms.encode(rows.column(name)) for name in names}
        start, end = (rows.column(name).to_numpy() for name in (START, END))
        batch = Batch({**columns, SINCE: since_of(start)}, end, end + 1)
        batches[known[number].operator] = batch.ordered()
    return batches


def result_table(table: pa.Table) -> pa.Table:
    """Return the rows of a DataFrame with the internal names of their times."""
    return table.rename_columns([*table.column_names[:-2], START, END])
