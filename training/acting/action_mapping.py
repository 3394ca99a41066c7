"""From raw actions in the policy's units to what the environment receives, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import SchemaMismatchError, UnsupportedSpaceError
from storage.kernel import Floats, Floats32, kernel
from storage.spaces import Leaf, is_box, leaf_values
from training.acting.action_layout import ActionLayout

if TYPE_CHECKING:
    from gymnasium import Space

__all__ = ["ActionMapping"]


class ActionMapping:
    """Maps raw actions u affinely to the box and clips: low + (high - low) (u + 1) / 2.

    The box is [-1, 1] in raw units. A dimension without both bounds is passed through, and clipped
    to the bound it has. A nested space of boxes is one raw vector, leaf after leaf.

    Raises:
        UnsupportedSpaceError: the space has a part that is no Box.

    """

    def __init__(self, space: Space[Any]) -> None:
        self._layout = ActionLayout(space)
        _check_boxes(self._layout.leaves)
        low, high = self._layout.low, self._layout.high
        bounded = np.isfinite(low) & np.isfinite(high)
        self._offset = np.where(bounded, low, -1.0)
        self._half = np.where(bounded, 0.5 * high - 0.5 * low, 1.0)
        self._box = np.stack([self._offset, self._half, low, high])
        self.bounded = bool(bounded.all())
        """Whether every dimension has both bounds."""
        self.size = self._layout.size
        """Dimensions of the raw action."""

    def to_action(self, raw: Floats32) -> Any:
        """What the environment receives for a raw action (A,), in the space's dtype and nesting.

        Dimensions of an integer dtype are rounded to the nearest integer.
        """
        numbers = self._layout.empty()
        _to_box(raw, self._box, numbers)
        return self._layout.arrange(numbers)

    def to_raw(self, action: Any) -> Floats32:
        """Raw action of an action in the box; a dimension of zero width gives 0.

        Raises:
            SchemaMismatchError: the action is not of the space's shape.

        """
        parts = [
            np.asarray(part, np.float64).ravel()
            for part in leaf_values(action, self._layout.leaves)
        ]
        numbers = np.concatenate(parts)
        if numbers.size != self.size:
            raise SchemaMismatchError(
                f"an action of {numbers.size} numbers for a space of {self.size}: "
                f"{self._layout.space!r}"
            )
        centred = numbers - self._offset
        raw = np.divide(centred, self._half, out=np.ones(self.size), where=self._half > 0)
        return (raw - 1.0).astype(np.float32)


@kernel
def _to_box(raw: Floats32, box: Floats, out: Floats | Floats32) -> None:
    """Fill ``out`` (A,); the rows of ``box`` (4, A) are offset, half width, low and high."""
    for j in range(out.shape[0]):
        number = box[0, j] + box[1, j] * (np.float64(raw[j]) + 1.0)
        out[j] = min(max(number, box[2, j]), box[3, j])


def _check_boxes(leaves: tuple[Leaf, ...]) -> None:
    for leaf in leaves:
        if not is_box(leaf) or leaf.dtype.kind not in "fiu":
            raise UnsupportedSpaceError(
                f"a Gaussian policy cannot act in {leaf.space!r} at {leaf.name!r}: it needs boxes "
                "of numbers; for one Discrete space choose agent.kind: dqn, or wrap the environment"
            )
