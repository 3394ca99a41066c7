"""Raw observations as flat float64 vectors, in the order of the store's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.spaces import Leaf, leaf_values

if TYPE_CHECKING:
    from storage.kernel import Floats

__all__ = ["ObservationReader"]

_FLOAT64 = np.dtype(np.float64)


class ObservationReader:
    """Flattens one raw observation of a space to float64, in the order of the store's columns."""

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        self._leaves = leaves
        self._single = len(leaves) == 1
        self.size = sum(leaf.size for leaf in leaves)
        """Numbers in an observation."""

    def __call__(self, observation: Any) -> Floats:
        """Return a contiguous vector (size,): a view where the observation already is one."""
        if self._single and isinstance(observation, np.ndarray):
            if observation.dtype is _FLOAT64:
                return observation.ravel()  # a fifth of the time of the line below
            return np.ascontiguousarray(observation, np.float64).reshape(-1)
        parts = leaf_values(observation, self._leaves)
        return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])
