"""A replay batch with stored value targets, as tensors: what V-RACER computes its loss from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from training.batches.batch_kernels import fill_batch
from training.batches.row_converter import RowConverter
from training.scaling import flat_rows

if TYPE_CHECKING:
    from torch import Tensor

    from storage.replay import Batch

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


class BatchConverter(RowConverter[TensorBatch]):
    """Makes a `TensorBatch` of a replay batch (a `RowConverter`)."""

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        vector, action = (size,), (size, self._action_size)
        state = (size, self._state_size)
        shapes = [state, action, vector, vector, action, action, vector, vector]
        return dict(zip(TensorBatch._fields, shapes, strict=True))

    def _make(self, tensors: list[Tensor]) -> TensorBatch:
        return TensorBatch(*tensors)

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
            arrays["next_value_target"],
            arrays["sampling_weight"],
        )

    def _fill(self, batch: Batch) -> int:
        return fill_batch(
            flat_rows(batch.observation),
            self._statistics,
            batch.raw_action,
            batch.behaviour,
            batch.behaviour_kind,
            (batch.reward, batch.next_value_target, batch.sampling_weight),
            self._matrices,
            self._vectors,
        )
