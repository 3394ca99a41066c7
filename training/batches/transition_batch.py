"""A replay batch of whole transitions as tensors: what DDPG and NAF compute their losses from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from storage.layout import BehaviourKind
from training.batches.batch_kernels import fill_batch, scale_rows
from training.batches.row_converter import RowConverter
from training.device import HOST
from training.scaling import flat_rows

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from storage.replay import Batch
    from training.scaling import ObservationScaling

__all__ = ["TRANSITION_FIELDS", "TransitionBatch", "TransitionConverter", "as_gaussian"]

TRANSITION_FIELDS = (
    "observation",
    "raw_action",
    "reward",
    "next_observation",
    "terminated",
    "behaviour",
    "behaviour_kind",
)
"""What a `TransitionConverter` reads of a replay batch."""


class TransitionBatch(NamedTuple):
    """Tensors of one update, float32; a tuple, so that engines may trace it.

    B is the batch size, O the flattened observation's size, A the action's.
    """

    observation: Tensor
    """(B, O), scaled."""
    next_observation: Tensor
    """(B, O), scaled: the true next one, at an episode's end as well."""
    raw_action: Tensor
    """(B, A), the policy's draw before scaling and clipping to the box."""
    reward: Tensor
    """(B,), raw: stages divide by the schedule's ``reward_scale``."""
    continuing: Tensor
    """(B,), 0 where the step ended in a terminal state, else 1: truncated steps bootstrap."""
    behaviour_mean: Tensor
    """(B, A)."""
    behaviour_stdev: Tensor
    """(B, A)."""
    behaviour_log_density: Tensor
    """(B,), log mu(a|s) of the raw action."""
    sampling_weight: Tensor
    """(B,), what multiplies a step's whole gradient; 1 under uniform sampling."""


class TransitionConverter(RowConverter[TransitionBatch]):
    """Makes a `TransitionBatch` of a replay batch (a `RowConverter`).

    Args:
        scaling, action_size, device: As of `RowConverter`.
        nominal: Takes nominal Gaussian behaviours (of correlated noise) for true ones: for agents
            that only count far steps.
    """

    def __init__(
        self,
        scaling: ObservationScaling,
        action_size: int,
        device: torch.device = HOST,
        *,
        nominal: bool = False,
    ) -> None:
        super().__init__(scaling, action_size, device)
        self._nominal = nominal

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        vector, action = (size,), (size, self._action_size)
        state = (size, self._state_size)
        shapes = [state, state, action, vector, vector, action, action, vector, vector]
        return dict(zip(TransitionBatch._fields, shapes, strict=True))

    def _make(self, tensors: list[Tensor]) -> TransitionBatch:
        return TransitionBatch(*tensors)

    def _bind(self, arrays: dict[str, Any]) -> None:
        self._matrices = (
            arrays["observation"],
            arrays["raw_action"],
            arrays["behaviour_mean"],
            arrays["behaviour_stdev"],
        )
        self._vectors = (
            arrays["behaviour_log_density"],
            arrays["reward"],
            arrays["continuing"],
            arrays["sampling_weight"],
        )
        self._next = arrays["next_observation"]

    def _fill(self, batch: Batch) -> int:
        kinds = as_gaussian(batch.behaviour_kind) if self._nominal else batch.behaviour_kind
        scale_rows(flat_rows(batch.next_observation), self._statistics, self._next)
        return fill_batch(
            flat_rows(batch.observation),
            self._statistics,
            batch.raw_action,
            batch.behaviour,
            kinds,
            (batch.reward, np.logical_not(batch.terminated), batch.sampling_weight),
            self._matrices,
            self._vectors,
        )


def as_gaussian(kinds: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Behaviour kinds with nominal Gaussians taken for true ones."""
    nominal = np.uint8(BehaviourKind.NOMINAL_GAUSSIAN)
    return np.where(kinds == nominal, np.uint8(BehaviourKind.GAUSSIAN), kinds)
