"""A sum tree: non-negative float64 weights in slots, and draws in proportion to them.

Eight children a node, each group of eight in one cache line. Invariant, after every call: a node
is the sum of its children, added up from left to right; nothing is ever added to or taken from a
node, so that no error builds up and the same weights give the same tree, however they came there.
A whole batch goes down level by level: its cache misses overlap, and above the slots every group's
running sums are kept, so that choosing a child is eight comparisons that wait for nothing.

Kernels know a tree by its `layout`, int64: the addresses of nodes, running sums and smallest
positive weights (0: not kept), the number of levels, and where each level begins. Level 0 are the
slots, the last one is the root alone; running sums and smallest weights exist from level 1 on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from storage.errors import SamplingError
from storage.kernel import Floats, Index, Integers, address_of, kernel, load_f8, prefetch, store_f8
from storage.layout import align_up

__all__ = ["SumTree", "find_slots", "refresh_tree"]

_CHILDREN = 8
_LINE = 64
NODES, RUNNING, MINIMA, LEVELS, OFFSETS = range(5)
_LARGEST = 2**40


@kernel
def _add_up(nodes: Index, running: Index, group: Index) -> float:
    """The sum of the eight nodes from `group` on; partial sums go to `running`, unless it is 0."""
    total = 0.0
    for child in range(group, group + 8):
        total += load_f8(nodes + 8 * child)
        if running != 0:
            store_f8(running + 8 * child, total)
    return total


@kernel
def _find_smallest(layout: Integers, level: Index, i: Index) -> None:
    """Recompute the smallest positive weight below node `i` of `level`."""
    nodes, minima = layout[NODES], layout[MINIMA]
    smallest = np.inf
    first = layout[OFFSETS + level - 1] + 8 * i
    for child in range(first, first + 8):
        if level > 1:
            smallest = min(smallest, load_f8(minima + 8 * child))
        elif load_f8(nodes + 8 * child) > 0.0:
            smallest = min(smallest, load_f8(nodes + 8 * child))
    store_f8(minima + 8 * (layout[OFFSETS + level] + i), smallest)


@kernel
def refresh_tree(layout: Integers, slots: Integers) -> None:
    """Recompute every node above these slots, in any order, repeats allowed; `slots` is used up."""
    nodes, count = layout[NODES], slots.size
    for level in range(1, layout[LEVELS]):
        kept = 0
        before = np.int64(-1)
        for i in range(count):
            parent = slots[i] >> 3
            if parent != before:
                slots[kept] = parent
                kept += 1
                before = parent
        count = kept
        below, own = layout[OFFSETS + level - 1], layout[OFFSETS + level]
        running = layout[RUNNING] if level > 1 else np.int64(0)
        for i in range(count):
            total = _add_up(nodes, running, below + 8 * slots[i])
            store_f8(nodes + 8 * (own + slots[i]), total)
        if layout[MINIMA] != 0:
            for i in range(count):
                _find_smallest(layout, level, slots[i])


@kernel
def _last_positive(group: Index) -> Index:
    for child in range(7, 0, -1):
        if load_f8(group + 8 * child) > 0.0:
            return child
    return 0


@kernel
def find_slots(layout: Integers, targets: Floats, slots: Integers) -> None:
    """The slots at which the running sum of weights first exceeds each target in [0, root].

    A slot of weight 0 is never found, whatever the rounding, while the root is positive: a target
    at or beyond the sum of a group's children goes to its last positive one. `targets` is used up.
    """
    nodes, running = layout[NODES], layout[RUNNING]
    for i in range(slots.size):
        slots[i] = 0
    for level in range(layout[LEVELS] - 2, 0, -1):
        own, below = 8 * layout[OFFSETS + level], 8 * layout[OFFSETS + level - 1]
        below += running if level > 1 else nodes
        for i in range(slots.size):
            group = own + 64 * slots[i]
            target = targets[i]
            chosen = np.int64(0)
            for child in range(8):
                chosen += np.int64(target >= load_f8(running + group + 8 * child))
            if chosen == 8:
                chosen = _last_positive(nodes + group)
                target = np.inf
            elif chosen > 0:
                target -= load_f8(running + group + 8 * (chosen - 1))
            slots[i] = 8 * slots[i] + chosen
            targets[i] = target
            prefetch(below + 64 * slots[i])
    for i in range(slots.size):
        group = nodes + 64 * slots[i]
        reached = 0.0
        chosen = np.int64(0)
        for child in range(8):
            reached += load_f8(group + 8 * child)
            chosen += np.int64(targets[i] >= reached)
        if chosen == 8:
            chosen = _last_positive(group)
        slots[i] = 8 * slots[i] + chosen


class SumTree:
    """`capacity` slots whose weights are 0 at first.

    With `minimum` it also knows its smallest positive weight.

    Raises:
        SamplingError: a capacity below 1.
    """

    def __init__(self, capacity: int, *, minimum: bool = False) -> None:
        if not 1 <= capacity <= _LARGEST:
            raise SamplingError(f"capacity={capacity}: a sum tree has from 1 to 2**40 slots")
        self.capacity = int(capacity)
        sizes = _level_sizes(self.capacity)
        offsets = np.concatenate([[0], np.cumsum(sizes[:-1])])
        above = sum(sizes[1:])
        self._nodes = _aligned(sum(sizes))
        self._running = _aligned(above)
        self._minima = np.full(above if minimum else 0, np.inf)
        shown = [address_of(array) - 8 * sizes[0] for array in (self._running, self._minima)]
        places = [address_of(self._nodes), shown[0], shown[1] if minimum else 0, len(sizes)]
        self.layout = np.array([*places, *offsets], np.int64)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """The slots' weights, float64 [capacity]; after changing them call `rebuild`."""
        return self._nodes[: self.capacity]

    @property
    def total(self) -> float:
        """The sum of all weights: the root."""
        return float(self._nodes[-1])

    @property
    def smallest(self) -> float:
        """The smallest positive weight, inf if there is none; needs `minimum`."""
        return float(self._minima[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of all levels."""
        return self._nodes.nbytes + self._running.nbytes + self._minima.nbytes

    def set(self, slots: Any, weights: Any) -> None:
        """Set weights float64 [k] of slots int64 [k]; of a slot named twice the last one holds.

        Raises:
            SamplingError: a slot outside the tree, or weights that are not finite and not negative,
                with their positions; nothing has changed then.
        """
        where, given = self._checked(slots, weights)
        self.weights[where] = given
        refresh_tree(self.layout, where.copy())

    def find(self, targets: Any) -> Integers:
        """The slot of each target in [0, total], int64 [k]; see `find_slots`.

        Raises:
            SamplingError: no slot has a positive weight, or a target lies outside.
        """
        wanted = np.array(targets, np.float64).reshape(-1)
        if not self.total > 0.0:
            raise SamplingError("no slot of the sum tree has a positive weight")
        if not np.all((wanted >= 0.0) & (wanted <= self.total)):
            raise SamplingError(f"targets must lie in [0, {self.total}], the sum of all weights")
        found = np.empty(wanted.size, np.int64)
        find_slots(self.layout, wanted, found)
        return found

    def rebuild(self) -> None:
        """Recompute every node from `weights`."""
        every = np.arange(0, self.capacity, _CHILDREN)
        refresh_tree(self.layout, every)

    def _checked(self, slots: Any, weights: Any) -> tuple[Integers, Floats]:
        where = np.asarray(slots)
        given = np.asarray(weights, np.float64)
        if where.dtype.kind not in "iu" or where.shape != given.shape or where.ndim != 1:
            raise SamplingError(
                f"slots {where.dtype} {where.shape} and weights {given.shape}: give as many whole "
                "numbers as weights, in one dimension"
            )
        outside = np.flatnonzero((where < 0) | (where >= self.capacity))
        if outside.size:
            raise SamplingError(
                f"slots at positions {outside[:8].tolist()} are outside [0, {self.capacity})"
            )
        bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0.0)))
        if bad.size:
            raise SamplingError(
                f"weights at positions {bad[:8].tolist()} are not finite and not negative; nothing "
                "was changed"
            )
        return where.astype(np.int64), given


def _level_sizes(capacity: int) -> list[int]:
    """Nodes of each level, the slots' own first: whole groups, and one for the root."""
    sizes = [align_up(capacity, _CHILDREN)]
    while sizes[-1] > 1:
        nodes = sizes[-1] // _CHILDREN
        sizes.append(nodes if nodes == 1 else align_up(nodes, _CHILDREN))
    return sizes


def _aligned(size: int) -> Floats:
    """Zeros that begin at a cache line."""
    room = np.zeros(size + _LINE // 8)
    skipped = -room.ctypes.data % _LINE // 8
    return room[skipped : skipped + size]
