"""The state of exact sums: a row of integers per limb, a column per slot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsparql.overriding import override
from streamsparql.physical.batch import IntArray
from streamsparql.physical.state.key_slots import SLOT
from streamsparql.physical.state.parts import Stateful, arrays_of, table_of_arrays


class LimbSums(Stateful):
    """A sum per slot, in limbs; a subclass defines what a limb counts.

    >>> sums, restored = LimbSums(), LimbSums()
    >>> sums._state = np.array([[0, 5], [0, -1]])
    >>> restored.restore_own(sums.own_table())
    >>> restored._state.tolist()
    [[0, 5], [0, -1]]
    """

    encoded = ("_state",)

    def __init__(self) -> None:
        self._state: IntArray = np.zeros((0, 0), np.int64)

    @override
    def own_table(self) -> pa.Table:
        """Return the sums that are not 0, limb by limb."""
        (slots,) = (self._state != 0).any(axis=0).nonzero()
        limbs = {f"limb {k}": limb[slots] for k, limb in enumerate(self._state)}
        return table_of_arrays({SLOT: slots, **limbs})

    @override
    def restore_own(self, table: pa.Table) -> None:
        slots, *limbs = arrays_of(table).values()
        self._state = np.zeros((len(limbs), int(slots.max(initial=-1)) + 1), np.int64)
        self._state[:, slots] = np.array(limbs, np.int64).reshape(len(limbs), len(slots))
