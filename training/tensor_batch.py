"""A replay batch as tensors: what stages compute their losses from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from storage.errors import SchemaMismatchError
from training.behaviour import describe_behaviour

if TYPE_CHECKING:
    from storage.replay import Batch
    from training.scaling import ObservationScaling

__all__ = ["BatchConverter", "TensorBatch"]


class TensorBatch(NamedTuple):
    """Tensors of one update, float32 unless said otherwise; a tuple, so that engines may trace it.

    B is the batch size, O the flattened observation's size, A the action's.
    """

    observation: Tensor
    """(B, O), scaled."""
    raw_action: Tensor
    """(B, A), the policy's draw before scaling and clipping to the box."""
    reward: Tensor
    """(B,), raw: stages divide by the schedule's ``reward_scale``."""
    next_value_target: Tensor
    """(B,), value target at the next state in scaled units: 0 after a terminal step."""
    behaviour_mean: Tensor
    """(B, A)."""
    behaviour_stdev: Tensor
    """(B, A)."""
    behaviour_log_density: Tensor
    """(B,), log mu(a|s) of the raw action."""
    sampling_weight: Tensor
    """(B,), what multiplies a step's whole gradient; 1 under uniform sampling."""


class BatchConverter:
    """Copies replay batches into tensors that are allocated once and reused.

    The tensors of the last call are overwritten by the next one. Their addresses stay the same
    while the batch size does, which captured graphs rely on.
    """

    def __init__(self, scaling: ObservationScaling, action_size: int) -> None:
        self._scaling = scaling
        self._action_size = action_size
        self._size = 0

    def __call__(self, batch: Batch) -> TensorBatch:
        """Convert one batch of continuous actions.

        Raises:
            SchemaMismatchError: a step's behaviour is unknown, so that no importance ratio exists.

        """
        if len(batch.reward) != self._size:
            self._allocate(len(batch.reward))
        self._scaling.scale(batch.observation, out=self._observation)
        np.copyto(self._raw_action, batch.raw_action)
        np.copyto(self._reward, batch.reward, casting="same_kind")
        np.copyto(self._next_value_target, batch.next_value_target)
        np.copyto(self._sampling_weight, batch.sampling_weight)
        bad = describe_behaviour(
            self._raw_action,
            batch.behaviour,
            batch.behaviour_kind,
            self._mean,
            self._stdev,
            self._log_density,
        )
        if bad >= 0:
            raise _unknown_behaviour(batch, bad)
        return self._tensors

    def _allocate(self, size: int) -> None:
        vector, matrix = (size,), (size, self._action_size)
        self._size = size
        self._observation = np.empty((size, self._scaling.size), np.float32)
        self._raw_action = np.empty(matrix, np.float32)
        self._reward = np.empty(vector, np.float32)
        self._next_value_target = np.empty(vector, np.float32)
        self._mean = np.empty(matrix, np.float32)
        self._stdev = np.empty(matrix, np.float32)
        self._log_density = np.empty(vector, np.float32)
        self._sampling_weight = np.empty(vector, np.float32)
        self._tensors = TensorBatch(
            torch.from_numpy(self._observation),
            torch.from_numpy(self._raw_action),
            torch.from_numpy(self._reward),
            torch.from_numpy(self._next_value_target),
            torch.from_numpy(self._mean),
            torch.from_numpy(self._stdev),
            torch.from_numpy(self._log_density),
            torch.from_numpy(self._sampling_weight),
        )


def _unknown_behaviour(batch: Batch, position: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"step (segment {int(batch.segment[position])}, row {int(batch.row[position])}) has "
        f"behaviour kind {int(batch.behaviour_kind[position])}: an importance ratio needs a "
        "Gaussian behaviour (kind 1) or a uniform one over the box (kind 3); collect with "
        "`sharpwave collect`, or import the behaviour with the data"
    )
