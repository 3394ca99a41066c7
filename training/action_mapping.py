"""From raw actions in the policy's units to what the environment receives, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import SchemaMismatchError, UnsupportedSpaceError
from storage.kernel import Floats, Floats32, kernel
from storage.spaces import Leaf, action_bounds, flatten_space, is_box, leaf_values, nest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gymnasium import Space

__all__ = ["ActionMapping", "arrange", "flat_bounds"]


class ActionMapping:
    """Maps raw actions u affinely to the box and clips: low + (high - low) (u + 1) / 2.

    The box is [-1, 1] in raw units. A dimension without both bounds is passed through, and clipped
    to the bound it has. A nested space of boxes is one raw vector, leaf after leaf.

    Raises:
        UnsupportedSpaceError: the space has a part that is no Box.

    """

    def __init__(self, space: Space[Any]) -> None:
        self._space = space
        self._leaves = flatten_space(space, "action")
        _check_boxes(self._leaves)
        self._low, self._high = flat_bounds(self._leaves)
        bounded = np.isfinite(self._low) & np.isfinite(self._high)
        self._offset = np.where(bounded, self._low, -1.0)
        self._half = np.where(bounded, 0.5 * self._high - 0.5 * self._low, 1.0)
        self.bounded = bool(bounded.all())
        """Whether every dimension has both bounds."""
        self.size = int(self._low.size)
        """Dimensions of the raw action."""

    def to_action(self, raw: Floats32) -> Any:
        """What the environment receives for a raw action (A,), in the space's dtype and nesting.

        Dimensions of an integer dtype are rounded to the nearest integer.
        """
        numbers = np.empty(self.size, np.float64)
        _to_box(raw, self._offset, self._half, self._low, self._high, numbers)
        return arrange(numbers, self._space, self._leaves)

    def to_raw(self, action: Any) -> Floats32:
        """Raw action of an action in the box; a dimension of zero width gives 0.

        Raises:
            SchemaMismatchError: the action is not of the space's shape.

        """
        parts = [np.asarray(part, np.float64).ravel() for part in leaf_values(action, self._leaves)]
        numbers = np.concatenate(parts)
        if numbers.size != self.size:
            raise SchemaMismatchError(
                f"an action of {numbers.size} numbers for a space of {self.size}: {self._space!r}"
            )
        centred = numbers - self._offset
        raw = np.divide(centred, self._half, out=np.ones(self.size), where=self._half > 0)
        return (raw - 1.0).astype(np.float32)


def flat_bounds(leaves: Sequence[Leaf]) -> tuple[Floats, Floats]:
    """Least and greatest value of every number of an action, leaf after leaf, float64 (A,)."""
    bounds = [action_bounds(leaf) for leaf in leaves]
    low = np.concatenate([np.asarray(low, np.float64).ravel() for low, _ in bounds])
    high = np.concatenate([np.asarray(high, np.float64).ravel() for _, high in bounds])
    return low, high


def arrange(numbers: Floats, space: Space[Any], leaves: Sequence[Leaf]) -> Any:
    """Numbers of all leaves, float64 (A,), as a value of the space: its dtypes, shapes, nesting."""
    if len(leaves) == 1 and leaves[0].space is space:
        return _as_leaf(numbers, leaves[0])
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(numbers, ends)
    columns = {leaf.name: _as_leaf(part, leaf) for leaf, part in zip(leaves, parts, strict=True)}
    return nest(space, "action", columns)


@kernel
def _to_box(
    raw: Floats32, offset: Floats, half: Floats, low: Floats, high: Floats, out: Floats
) -> None:
    for j in range(out.shape[0]):
        out[j] = min(max(offset[j] + half[j] * (np.float64(raw[j]) + 1.0), low[j]), high[j])


def _as_leaf(numbers: Floats, leaf: Leaf) -> Any:
    if leaf.dtype.kind in "iu":
        numbers = np.rint(numbers)
    return numbers.astype(leaf.dtype).reshape(leaf.shape)[()]


def _check_boxes(leaves: tuple[Leaf, ...]) -> None:
    for leaf in leaves:
        if not is_box(leaf) or leaf.dtype.kind not in "fiu":
            raise UnsupportedSpaceError(
                f"a Gaussian policy cannot act in {leaf.space!r} at {leaf.name!r}: it needs boxes "
                "of numbers; choose an agent for discrete actions, or wrap the environment"
            )
