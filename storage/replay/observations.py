"""What the environment showed at any rows of a window: plain rows, or stacks of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage.replay.batch import FieldPlan
from storage.replay.gather import copy_rows
from storage.replay.locate import checked_identities, segment_slots
from storage.replay.stacks import gather_stacks

if TYPE_CHECKING:
    from storage.kernel import Integers
    from storage.replay.batch import Batch, Values
    from storage.replay.values import WindowValues

__all__ = ["Observations"]


class Observations:
    """Copies observations out of a view's window, into arrays that are used again.

    They are laid out like a batch's: [k, …], of stacked frames whole stacks, a dict where the space
    is nested. Valid until the next call.
    """

    def __init__(self, view: WindowValues) -> None:
        self._window = view._window
        self._plan = FieldPlan(view._schema, ["observation"])
        self._size = -1
        self._buffers: tuple[Batch, Integers, Integers] | None = None

    def of(self, segment: Integers, row: Integers) -> Values:
        """Observations of steps by identity, int64 [k]; of an episode's last one at row + 1.

        Raises SamplingError if a row is not in the window.
        """
        segment, row = checked_identities(segment, row)
        return self.at(segment_slots(self._window, segment, row), row)

    def at(self, slots: Integers, rows: Integers) -> Values:
        """Observations at rows of the window, steps or closing rows, by segment slot."""
        window = self._window
        batch, plan, stacks = self._room(rows.size)
        copy_rows(window.segments.table, slots, rows, plan)
        if len(stacks):
            gather_stacks(window.episodes, window.segments.table, slots, rows, stacks)
        observation: Any = batch.observation
        return observation

    def _room(self, size: int) -> tuple[Batch, Integers, Integers]:
        if self._buffers is None or size != self._size:
            place = self._window.segments.column
            batch, plan = self._plan.buffers(size, place)
            self._buffers = batch, plan, self._plan.stack_plan(batch, place)
            self._size = size
        return self._buffers
