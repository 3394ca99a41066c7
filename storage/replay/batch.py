"""Batches: copies of drawn rows in buffers that are used again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from storage.errors import SamplingError
from storage.kernel import Integers, address_of
from storage.replay.stacks import STACK_FIELDS, stack_line, stack_views
from storage.replay.tables import OVERLAY_DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.schema import Schema

__all__ = ["FIELDS", "Batch", "FieldPlan"]

Array = npt.NDArray[Any]
Values = Any
"""An array, or a dict of arrays (leaf name without its prefix) where the space is nested."""

FIELDS = (
    "observation",
    "action",
    "raw_action",
    "reward",
    "next_observation",
    "terminated",
    "truncated",
    "behaviour",
    "behaviour_kind",
    "value",
    "value_target",
    "next_value_target",
    "importance_ratio",
)
"""What a batch holds unless a view asks for less, where the store has the column."""

AHEAD = {"next_observation": "observation", "next_value_target": "value_target"}
"""Fields that are read one row after the step."""


class Batch:
    """Drawn steps as aligned arrays of length B.

    Valid until the view draws a batch of the same size again: arrays are reused. `copy()` gives
    one that stays. A field that the view was not asked for raises AttributeError. Further columns
    that were asked for by name (info columns, `policy_update`, `life_lost`, `draw_count`) are in
    `extra`.
    """

    __slots__ = (*FIELDS, "extra", "position", "row", "sampling_weight", "segment")

    segment: Integers
    """Segment id of each step; with `row` its identity, never reused."""
    row: Integers
    """Row inside the segment."""
    position: Integers
    """Where the window had each step when it was drawn: only a hint for finding it again."""
    sampling_weight: npt.NDArray[np.float32]
    """Importance-sampling weight of the scheme, float32; 1 for uniform draws."""
    observation: Values
    """o_t [B, …] in the space's dtype; nested spaces: a dict by leaf name without its prefix.

    Of stacked frames [B, k, …], as the environment showed them. They share their memory with the
    stacks of `next_observation`: do not change them in place.
    """
    action: Values
    """What the environment received."""
    raw_action: npt.NDArray[np.float32]
    """The draw u in policy units [B, dA]."""
    reward: npt.NDArray[np.float64]
    """r_{t+1}, unscaled."""
    next_observation: Values
    """o_{t+1}, the true one at an episode's end as well; laid out like `observation`."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    behaviour: npt.NDArray[np.float32]
    """Parameters of μ_t [B, K]."""
    behaviour_kind: npt.NDArray[np.uint8]
    value: npt.NDArray[np.float32]
    """Stored V_t."""
    value_target: npt.NDArray[np.float32]
    """Stored V̂tbc_t."""
    next_value_target: npt.NDArray[np.float32]
    """Stored V̂tbc_{t+1}: 0 after a terminal step, V(s_T) after a truncated last one."""
    importance_ratio: npt.NDArray[np.float32]
    """Stored ρ_t."""
    extra: dict[str, Array]

    def __getattr__(self, name: str) -> Any:
        """Only called for a field that was not gathered."""
        raise AttributeError(
            f"the batch has no {name!r}: the view was made without it (fields=), or the store has "
            "no such column"
        )

    def __len__(self) -> int:
        return int(self.row.size)

    def __repr__(self) -> str:
        held = ", ".join(name for name in FIELDS if self.has(name))
        return f"<Batch of {len(self)} steps: {held}>"

    def has(self, name: str) -> bool:
        """Whether a field was gathered."""
        return _slot(self, name) is not None

    def copy(self) -> Batch:
        """A batch of its own arrays, which later draws leave alone."""
        other = Batch()
        for name in self.__slots__:
            value = _slot(self, name)
            if isinstance(value, dict):
                setattr(other, name, {key: array.copy() for key, array in value.items()})
            elif value is not None:
                setattr(other, name, value.copy())
        return other


def _slot(batch: Batch, name: str) -> Any:
    try:
        return object.__getattribute__(batch, name)
    except AttributeError:
        return None


class FieldPlan:
    """Which columns a batch gathers, and into what shapes."""

    def __init__(self, schema: Schema, fields: Iterable[str] | None) -> None:
        self._columns = {
            column.name: (np.dtype(column.dtype), tuple(column.shape)) for column in schema.columns
        }
        self._columns |= {name: (dtype, ()) for name, dtype in OVERLAY_DTYPES.items()}
        self._leaves = {
            "observation": tuple(leaf.name for leaf in schema.observation),
            "action": tuple(leaf.name for leaf in schema.action),
        }
        self._frame_stack = schema.frame_stack
        self._repeats = schema.first_stack_padding == "repeat"
        if isinstance(fields, str):
            raise SamplingError(f"fields={fields!r}: give a list of names, [{fields!r}]")
        chosen = self._present(FIELDS) if fields is None else tuple(dict.fromkeys(fields))
        unknown = [field for field in chosen if not self._sources(field)]
        if unknown:
            known = dict.fromkeys((*self._present(FIELDS), *self._columns))
            raise SamplingError(
                f"fields {', '.join(map(repr, unknown))} do not exist in this store; "
                f"choose from {', '.join(known)}"
            )
        self.fields = tuple(field for field in chosen if field != "sampling_weight")

    def _present(self, fields: Iterable[str]) -> tuple[str, ...]:
        return tuple(field for field in fields if self._sources(field))

    def _sources(self, field: str) -> tuple[str, ...]:
        """The columns behind a field; empty if there is none."""
        base = AHEAD.get(field, field)
        if base in self._leaves:
            return self._leaves[base]
        return (base,) if base in self._columns or base == "sampling_weight" else ()

    def dtype_and_shape(self, column: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Dtype and row shape of a column of the schema or the overlay; KeyError if unknown."""
        return self._columns[column]

    def buffers(self, size: int, place: Any) -> tuple[Batch, Integers]:
        """A batch of empty arrays for `size` steps, and the plan that fills it.

        `place(column)` gives a column's place in the segment table. Stacks of frames are not in the
        plan: see `stack_plan`.
        """
        batch = Batch()
        batch.extra = {}
        batch.sampling_weight = np.ones(size, np.float32)
        plan = []
        stacks = self._stacks(size)
        for field in self.fields:
            if field in stacks:
                arrays = stacks[field]
            else:
                arrays = {column: self._empty(column, size) for column in self._sources(field)}
                ahead = int(field in AHEAD)
                plan += [plan_row(place(column), array, ahead) for column, array in arrays.items()]
            self._attach(batch, field, arrays)
        plan.sort(key=lambda line: (line[0], line[3]))
        return batch, np.array(plan, np.int64).reshape(-1, 4)

    def stack_plan(self, batch: Batch, place: Any) -> Integers:
        """The plan that fills the stacks (see `stacks`) of a batch that `buffers` gave.

        Has no lines where the store keeps no stacks, or none were asked for.
        """
        lines = []
        fields = self._stacked_fields()
        if fields:
            value = getattr(batch, fields[0])
            arrays = value.values() if isinstance(value, dict) else [value]
            aheads = [int(field in AHEAD) for field in fields]
            lines = [
                stack_line(place(column), array, aheads, self._repeats)
                for column, array in zip(self._leaves["observation"], arrays, strict=True)
            ]
        return np.array(lines, np.int64).reshape(-1, STACK_FIELDS)

    def _stacked_fields(self) -> list[str]:
        """Fields that hold stacks, the earlier one first."""
        if self._frame_stack is None:
            return []
        return [field for field in ("observation", "next_observation") if field in self.fields]

    def _stacks(self, size: int) -> dict[str, dict[str, Array]]:
        """Room for the stacks of every field that holds them, by column."""
        fields = self._stacked_fields()
        stacks: dict[str, dict[str, Array]] = {field: {} for field in fields}
        if self._frame_stack is None or not fields:
            return stacks
        aheads = [int(field in AHEAD) for field in fields]
        for column in self._leaves["observation"]:
            views = stack_views(size, self._frame_stack, *self._columns[column], aheads)
            for field, view in zip(fields, views, strict=True):
                stacks[field][column] = view
        return stacks

    def _empty(self, column: str, size: int) -> Array:
        dtype, shape = self._columns[column]
        return np.zeros((size, *shape), dtype)

    def _attach(self, batch: Batch, field: str, arrays: dict[str, Array]) -> None:
        base = AHEAD.get(field, field)
        value: Values = next(iter(arrays.values()))
        if base in self._leaves and tuple(arrays) != (base,):
            value = {column.removeprefix(f"{base}."): array for column, array in arrays.items()}
        if field in FIELDS:
            setattr(batch, field, value)
        else:
            batch.extra[field] = value


def plan_row(place: int, buffer: Array, ahead: int = 0) -> tuple[int, int, int, int]:
    """One line of a gather plan (see `gather`) for a C-contiguous buffer of rows."""
    width = buffer.dtype.itemsize * int(np.prod(buffer.shape[1:], dtype=np.int64))
    return place, width, address_of(buffer), ahead
