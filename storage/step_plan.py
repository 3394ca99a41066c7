"""What the step kernel needs to know about one segment, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from storage.array_object import is_known
from storage.schema import Schema
from storage.spaces import action_bounds, is_box
from storage.step_kernel import BAD_BOUND, BAD_KIND, BAD_REWARD, BAD_STDEV, dtype_code

__all__ = ["StepPlan"]


class StepPlan:
    """The kernel's plan over a segment's arrays; keeps everything alive that it points to."""

    def __init__(self, schema: Schema, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.names: list[str] = []
        """The column of each check."""
        self._alive: list[Any] = []
        self._lines: list[list[int]] = []
        # First, because the kernel can skip the first two checks only.
        self.raw_action_bit = self._optional(arrays, "raw_action")
        self.behaviour_bit = self._optional(arrays, "behaviour")
        for leaf in schema.observation:
            if leaf.dtype.kind == "f":
                self._add(arrays[leaf.name], leaf.name, shift=1)
        for leaf in schema.action:
            bounds = action_bounds(leaf)
            if is_box(leaf) and leaf.dtype.kind == "b":
                continue
            self._add(arrays[leaf.name], leaf.name, bounds=bounds)
        scalars = ("reward", "terminated", "truncated", "behaviour_kind", "policy_update")
        head = [int(arrays[name].ctypes.data) for name in scalars]
        head.append(int(arrays["life_lost"].ctypes.data) if schema.life_loss else 0)
        head += [len(self._lines), id(None), id(np.ndarray)]
        head += [self.raw_action_bit, self.behaviour_bit]
        gaussian = schema.behaviour_family == "gaussian"
        head += [int(arrays["behaviour"].ctypes.data) if gaussian else 0]
        head += [schema.behaviour_size // 2 if gaussian else 0]
        lines = [*self._sources(schema, arrays), *self._lines]
        self._array = np.array(head + [field for line in lines for field in line], dtype=np.int64)
        self.address = int(self._array.ctypes.data)

    def _sources(
        self, schema: Schema, arrays: dict[str, np.ndarray[Any, Any]]
    ) -> Iterator[list[int]]:
        """Lines of observation, action, raw action and behaviour.

        Nested values, and all where arrays are laid out otherwise, are left to NumPy.
        """
        for leaves, shift in ((schema.observation, 1), (schema.action, 0)):
            array = arrays[leaves[0].name] if len(leaves) == 1 else None
            yield self._source(array, shift, schema.frame_stack if shift else None)
        for name in ("raw_action", "behaviour"):
            yield self._source(arrays.get(name), 0)

    def _source(
        self, array: np.ndarray[Any, Any] | None, shift: int, frames: int | None = None
    ) -> list[int]:
        """A line; with ``frames``, of stacks that many rows long whose last row is taken."""
        if array is None or not is_known():
            return [0] * 8
        sizes = np.array([*([frames] if frames else []), *array.shape[1:]], np.int64)
        self._alive += [sizes, array.dtype]
        place = [int(array.ctypes.data), array.strides[0], shift]
        scalar = 0 if sizes.size else id(array.dtype.type)
        skipped = array.strides[0] * (frames - 1 if frames else 0)
        return [*place, id(array.dtype), scalar, sizes.size, int(sizes.ctypes.data), skipped]

    def _optional(self, arrays: dict[str, np.ndarray[Any, Any]], name: str) -> int:
        """Add a check that does not apply to every step; returns its bit, 0 without the column."""
        if name not in arrays:
            return 0
        self._add(arrays[name], name)
        return 1 << (len(self._lines) - 1)

    def _add(
        self,
        array: np.ndarray[Any, Any],
        name: str,
        *,
        shift: int = 0,
        bounds: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = None,
    ) -> None:
        row_bytes = array.strides[0]
        count = row_bytes // array.dtype.itemsize
        low, high = bounds or (None, None)
        self._alive += [bound for bound in (low, high) if bound is not None]
        line = [
            int(array.ctypes.data),
            row_bytes,
            count,
            dtype_code(array.dtype),
            shift,
            0 if low is None else int(low.ctypes.data),
            0 if high is None else int(high.ctypes.data),
        ]
        self._lines.append(line)
        self.names.append(name)

    def meaning(self, code: int) -> tuple[str, bool]:
        """The column that a kernel's answer accuses, and whether it is out of bounds."""
        if code == BAD_REWARD:
            return "reward", False
        if code == BAD_KIND:
            return "behaviour_kind", True
        if code == BAD_STDEV:
            return "behaviour", True
        if code >= BAD_BOUND:
            return self.names[code - BAD_BOUND], True
        return self.names[code - 1], False
