"""Raw observations as flat float64 vectors, in the order of the store's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.spaces import Leaf, leaf_values

if TYPE_CHECKING:
    from storage.kernel import Floats

__all__ = ["ObservationReader"]


class ObservationReader:
    """Flattens one raw observation of a space to float64, in the order of the store's columns."""

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        self._leaves = leaves
        self.size = sum(leaf.size for leaf in leaves)
        """Numbers in an observation."""

    def __call__(self, observation: Any) -> Floats:
        """Return a contiguous vector (size,): a view where the observation already is one."""
        if len(self._leaves) == 1 and isinstance(observation, np.ndarray):
            return np.ascontiguousarray(observation, np.float64).reshape(-1)
        parts = leaf_values(observation, self._leaves)
        return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])
