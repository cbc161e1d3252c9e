"""An operator over tables is a table, which is computed once by the operator's definition.

Law: `op(T1 .. Tn) = T` where T has the rows of `op(T1 .. Tn).at(0)`: tables hold at every instant.
Source: SEMANTICS.md section 4, Table.

Side condition: the result does not depend on the run (no NOW()), it has no order (no ORDER BY, no
slice), and it is small: a product of tables can be much larger than its inputs. Not in the pattern
of an EXISTS, where expressions can read the outer row.

    >>> from streamsparql.algebra.rules.sketch import *
    >>> plan = Filter(equals("?y", "2"), inline_data("?y", 1, 2, 3))
    >>> print(sketch(plan), "->", sketch(fold_tables(plan)))
    Filter(?y = 2, Table(?y: (1) (2) (3))) -> Table(?y: (2))
"""

from __future__ import annotations

from math import prod

from streamsparql.algebra import join
from streamsparql.algebra.inputs import Inputs
from streamsparql.algebra.parameter import parameters_in
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rules.properties import ROW_OPERATORS, reads_clock
from streamsparql.algebra.rules.rule import Rule
from streamsparql.algebra.scope import scope
from streamsparql.algebra.shape import Table

MAX_FOLDED_ROWS = 1000
"""The maximum number of rows to compute for a folded table."""


def fold_tables(plan: Plan) -> Plan | None:
    """Replace an operator over tables by its result."""
    inputs = plan.inputs
    if any(type(one) is not Table for one in inputs):
        return None
    tables = [one for one in inputs if isinstance(one, Table)]
    if not tables or _row_bound(plan, tables) > MAX_FOLDED_ROWS:
        return None
    if reads_clock(plan) or parameters_in(plan):
        return None
    variables = scope(plan).possible
    rows = plan.at(0, Inputs())
    return Table(variables, tuple(tuple(row.get(v) for v in variables) for row in rows))


def _row_bound(plan: Plan, tables: list[Table]) -> int:
    """Return a bound of the number of rows that the evaluation computes."""
    sizes = [len(table.rows) for table in tables]
    return sum(sizes) if isinstance(plan, join.Union) else prod(sizes)


RULE = Rule(fold_tables, at=ROW_OPERATORS, bottom_up=True, below_exists=False)
