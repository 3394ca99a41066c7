"""How the numbers of an action lie in its space: bounds, dtypes, shapes and nesting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.spaces import Leaf, action_bounds, flatten_space, nest

if TYPE_CHECKING:
    from gymnasium import Space
    from numpy.typing import NDArray

    from storage.kernel import Floats, Floats32

__all__ = ["ActionLayout"]

_IN_PLACE = (np.dtype(np.float32), np.dtype(np.float64))
"""Dtypes of boxes that kernels fill without a copy."""


class ActionLayout:
    """All numbers of an action as one float vector, leaf after leaf, and back into the space."""

    def __init__(self, space: Space[Any]) -> None:
        self.space = space
        self.leaves = flatten_space(space, "action")
        """The parts of the space, in the order of the store's columns."""
        bounds = [action_bounds(leaf) for leaf in self.leaves]
        self.low = np.concatenate([np.asarray(low, np.float64).ravel() for low, _ in bounds])
        """Least value of every number."""
        self.high = np.concatenate([np.asarray(high, np.float64).ravel() for _, high in bounds])
        """Greatest value of every number."""
        self.size = int(self.low.size)
        """Numbers in an action."""
        self._casts = [_Cast(leaf) for leaf in self.leaves]
        self._ends = np.cumsum([leaf.size for leaf in self.leaves])[:-1]
        self._nested = self.leaves[0].space is not space
        first = self.leaves[0]
        self._plain = not self._nested and len(first.shape) == 1 and first.dtype in _IN_PLACE
        self._dtype = first.dtype if self._plain else np.dtype(np.float64)

    def empty(self) -> Floats | Floats32:
        """Room for the numbers of one action (size,), in the dtype that `arrange` likes best.

        It is the space's where that is one box of floats, and else float64.
        """
        return np.empty(self.size, self._dtype)

    def arrange(self, numbers: Floats | Floats32) -> Any:
        """Numbers (size,) of `empty` as a value of the space; those of integer dtypes are rounded.

        Where the space is one box of floats, the numbers themselves are it.
        """
        if self._plain:
            return numbers
        if not self._nested:
            return self._casts[0](numbers)
        parts = np.split(numbers, self._ends)
        columns = {cast.name: cast(part) for cast, part in zip(self._casts, parts, strict=True)}
        return nest(self.space, "action", columns)


class _Cast:
    """From float64 numbers to a leaf's dtype and shape."""

    def __init__(self, leaf: Leaf) -> None:
        self.name = leaf.name
        self._dtype = leaf.dtype
        self._shape = leaf.shape
        self._integer = leaf.dtype.kind in "iu"

    def __call__(self, numbers: NDArray[Any]) -> Any:
        if self._integer:
            numbers = np.rint(numbers)
        return numbers.astype(self._dtype).reshape(self._shape)[()]
