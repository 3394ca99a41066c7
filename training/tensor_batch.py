"""A replay batch as tensors: what stages compute their losses from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from storage.errors import SchemaMismatchError
from storage.layout import align_up
from training.batch_kernels import fill_batch
from training.device import HOST, MirroredBlock
from training.scaling import flat_rows

if TYPE_CHECKING:
    from storage.replay import Batch
    from training.scaling import ObservationScaling

__all__ = ["BatchConverter", "TensorBatch"]

_LINE = 16
"""Numbers of a cache line, at which each field begins."""


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

    All of a batch lies in one block, which one kernel fills and one copy brings to a device. The
    tensors of the last call are overwritten by the next one, which must not come before the
    update's feedback was read. Their addresses stay the same while the batch size does: captured
    graphs rely on it.
    """

    def __init__(
        self, scaling: ObservationScaling, action_size: int, device: torch.device = HOST
    ) -> None:
        self._statistics = scaling.statistics.numpy()
        self._state_size = scaling.size
        self._action_size = action_size
        self._device = device
        self._size = 0
        self._batch: Batch | None = None

    def __call__(self, batch: Batch) -> TensorBatch:
        """Convert one batch of continuous actions.

        Raises:
            SchemaMismatchError: a step's behaviour is unknown, so that no importance ratio exists,
                or the batch's numbers are not as many as the agent's.

        """
        if batch is not self._batch:
            self._take(batch)
        bad = fill_batch(
            flat_rows(batch.observation),
            self._statistics,
            batch.raw_action,
            batch.behaviour,
            batch.behaviour_kind,
            (batch.reward, batch.next_value_target, batch.sampling_weight),
            self._matrices,
            self._vectors,
        )
        if bad >= 0:
            raise _unknown_behaviour(batch, bad)
        self._block.send()
        return self._tensors

    def _take(self, batch: Batch) -> None:
        """Makes room for a batch, unless it is of another environment."""
        size, wanted = len(batch.reward), self._action_size
        found = {
            "observation": (flat_rows(batch.observation).shape, {(size, self._state_size)}),
            "raw_action": (batch.raw_action.shape, {(size, wanted)}),
            "behaviour": (batch.behaviour.shape, {(size, 2 * wanted), (size, 0)}),
        }
        for name, (shape, shapes) in found.items():
            if shape not in shapes:
                raise SchemaMismatchError(
                    f"the batch's {name} has shape {shape}, the agent takes "
                    f"{' or '.join(map(str, sorted(shapes)))}: the store is of another environment"
                )
        if size != self._size:
            self._allocate(size)
        self._batch = batch

    def _allocate(self, size: int) -> None:
        shapes = self._shapes(size)
        rooms = [align_up(math.prod(shape), _LINE) for shape in shapes]
        self._block = MirroredBlock(sum(rooms), self._device)
        self._tensors = TensorBatch(*_parts(self._block.there, rooms, shapes))
        arrays = TensorBatch(*_parts(self._block.host, rooms, shapes))
        self._matrices = (
            arrays.observation.numpy(),
            arrays.raw_action.numpy(),
            arrays.behaviour_mean.numpy(),
            arrays.behaviour_stdev.numpy(),
        )
        self._vectors = (
            arrays.behaviour_log_density.numpy(),
            arrays.reward.numpy(),
            arrays.next_value_target.numpy(),
            arrays.sampling_weight.numpy(),
        )
        self._size = size

    def _shapes(self, size: int) -> list[tuple[int, ...]]:
        """Shapes of the fields of a `TensorBatch`, in their order."""
        vector, action = (size,), (size, self._action_size)
        state = (size, self._state_size)
        return [state, action, vector, vector, action, action, vector, vector]


def _parts(block: Tensor, rooms: list[int], shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Views of a block's consecutive rooms, in these shapes."""
    return [
        room[: math.prod(shape)].view(shape)
        for room, shape in zip(torch.split(block, rooms), shapes, strict=True)
    ]


def _unknown_behaviour(batch: Batch, position: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"step (segment {int(batch.segment[position])}, row {int(batch.row[position])}) has "
        f"behaviour kind {int(batch.behaviour_kind[position])}: an importance ratio needs a "
        "Gaussian behaviour (kind 1) or a uniform one over the box (kind 3); collect with "
        "`sharpwave collect`, or import the behaviour with the data"
    )
