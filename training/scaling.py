"""Scaling of observations and rewards by statistics of the replay window.

The store keeps raw values; what learner and actor see is scaled on read. Both scalings are the
identity until `start` is called at the end of the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from storage.errors import NonFiniteError, SchemaMismatchError

if TYPE_CHECKING:
    from storage.replay import WindowStatistics

__all__ = ["MOVE_WEIGHT", "ObservationScaling", "RewardScaling", "flat_rows"]

MOVE_WEIGHT = 1e-3
"""Weight of the window's statistics when the observation scaling moves."""

Rows = NDArray[Any] | Mapping[str, NDArray[Any]]
"""Observations of a batch: one array, or one a leaf of a nested space, in the schema's order."""


def flat_rows(observations: Rows) -> NDArray[np.float64]:
    """Observations of a batch as one float64 matrix, (batch, observation size).

    Leaves of a nested space are concatenated in their order, each flattened.
    """
    if isinstance(observations, Mapping):
        leaves = [_matrix(leaf) for leaf in observations.values()]
        return leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis=1)
    return _matrix(observations)


def _matrix(leaf: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(leaf, dtype=np.float64).reshape(len(leaf), -1)


class _HostModule(nn.Module):
    """A module whose buffers stay float64 on the host, whatever its parent is moved or cast to.

    Batches are scaled before they are copied to a device, and acting happens on the host.
    """

    def _apply(
        self,
        fn: Callable[[Tensor], Tensor],  # noqa: ARG002
        recurse: bool = True,  # noqa: ARG002
    ) -> _HostModule:
        return self


class ObservationScaling(_HostModule):
    """(observation - mean) / stdev, computed in float64 and rounded to float32 once.

    The statistics are one buffer, ``statistics`` (float64, shape (2, size): mean and standard
    deviation), hence part of every checkpoint; its memory is never replaced, so that views of it
    may be kept.
    """

    statistics: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        identity = torch.stack([torch.zeros(size), torch.ones(size)]).to(torch.float64)
        self.register_buffer("statistics", identity)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of every number of an observation, a view of the buffer."""
        return cast("NDArray[np.float64]", self.statistics.numpy()[0])

    @property
    def stdev(self) -> NDArray[np.float64]:
        """Standard deviation of every number of an observation, a view of the buffer."""
        return cast("NDArray[np.float64]", self.statistics.numpy()[1])

    def start(self, statistics: WindowStatistics) -> None:
        """Take the window's exact mean and standard deviation; below machine epsilon counts as 1.

        Raises:
            SchemaMismatchError: the statistics are of another size, or not finite.

        """
        self._blend(statistics, 1.0)

    def move(self, statistics: WindowStatistics, weight: float = MOVE_WEIGHT) -> None:
        """Move mean and standard deviation toward the window's by ``weight``."""
        self._blend(statistics, weight)

    def scale(
        self, observations: Rows, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Scale a batch of observations to float32, shape (batch, size), into ``out`` if given."""
        rows = flat_rows(observations)
        scaled = rows - self.mean
        scaled /= self.stdev
        if out is None:
            return scaled.astype(np.float32)
        np.copyto(out, scaled, casting="same_kind")
        return out

    def _blend(self, statistics: WindowStatistics, weight: float) -> None:
        new_mean = self._flat(statistics.mean, "mean")
        new_stdev = np.sqrt(self._flat(statistics.variance, "variance"))
        new_stdev[new_stdev < np.finfo(np.float64).eps] = 1.0
        np.copyto(self.mean, (1.0 - weight) * self.mean + weight * new_mean)
        np.copyto(self.stdev, (1.0 - weight) * self.stdev + weight * new_stdev)

    def _flat(self, leaves: Any, name: str) -> NDArray[np.float64]:
        flat = _concatenated(leaves)
        if flat.size != self.size or not np.isfinite(flat).all():
            raise SchemaMismatchError(
                f"observation {name} of {flat.size} values for a scaling of {self.size}, "
                f"{np.count_nonzero(~np.isfinite(flat))} of them not finite; the statistics must "
                "come from a window of the same environment"
            )
        return flat


class RewardScaling(_HostModule):
    """Divides rewards by sqrt(E[r^2]) of the window; not centred; returns are never scaled."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))

    @property
    def value(self) -> float:
        """The divisor of rewards; 1 until `start`."""
        return float(self.scale)

    def start(self, statistics: WindowStatistics) -> None:
        """Take sqrt(E[r^2]) of the window; 1 where all rewards are zero.

        Raises:
            NonFiniteError: the squares overflow.
        """
        root = math.sqrt(statistics.reward_second_moment)
        if not math.isfinite(root):
            raise NonFiniteError(
                "the mean square of the rewards in the replay memory is beyond all numbers: scale "
                "them in the environment"
            )
        self.scale.fill_(root if root > 0.0 else 1.0)

    def move(self, statistics: WindowStatistics) -> None:
        """Take the window's scale anew: unlike the observations', it follows at once."""
        self.start(statistics)


def _concatenated(leaves: Any) -> NDArray[np.float64]:
    """Statistics of all leaves in one vector: of one array, a mapping or a sequence of arrays."""
    if isinstance(leaves, Mapping):
        leaves = list(leaves.values())
    parts = leaves if isinstance(leaves, Sequence) else [leaves]
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])
