"""From replay batches to tensors: memory allocated once, filled by kernels, sent at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

from storage.errors import SchemaMismatchError
from storage.layout import BehaviourKind, align_up
from training.device import HOST, MirroredBlock
from training.scaling import flat_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from storage.kernel import Floats32
    from storage.replay import Batch, RefreshChunk
    from training.scaling import ObservationScaling

__all__ = ["RowConverter", "check_densities"]

_LINE = 16
"""Numbers of a cache line, at which each field begins."""

TensorTuple = TypeVar("TensorTuple", bound="tuple[Tensor, ...]")
"""A NamedTuple of float32 tensors."""


class RowConverter(Generic[TensorTuple]):
    """Copies replay batches of continuous actions into tensors that are allocated once and reused.

    All of a batch lies in one block, which kernels fill and one copy brings to a device. The
    tensors of the last call are overwritten by the next one, which must not come before the
    update's feedback was read. Their addresses stay the same while the batch size does: captured
    graphs rely on it.

    Contract for subclasses. They name the tuple that they make by ``_shapes`` (names and shapes of
    its fields, in order) and ``_make``; ``_fill`` writes a batch into the arrays of the host and
    gives the first row of unusable behaviour, or -1.
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

    @abstractmethod
    def _shapes(self, size: int) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the fields of a batch of so many steps."""

    @abstractmethod
    def _make(self, tensors: list[Tensor]) -> TensorTuple:
        """The tuple of the tensors."""

    @abstractmethod
    def _bind(self, arrays: dict[str, Any]) -> None:
        """Takes hold of the arrays that `_fill` writes, by field."""

    @abstractmethod
    def _fill(self, batch: Batch) -> int:
        """Fills the arrays; gives the first row of unusable behaviour, or -1."""

    def __call__(self, batch: Batch) -> TensorTuple:
        """Convert one batch of continuous actions.

        Raises:
            SchemaMismatchError: a step's behaviour is unknown, so that no importance ratio exists,
                or the batch's numbers are not as many as the agent's.

        """
        if batch is not self._batch:
            self._take(batch)
        bad = self._fill(batch)
        if bad >= 0:
            place = f"segment {int(batch.segment[bad])}, row {int(batch.row[bad])}"
            raise _unknown_behaviour(f"step ({place})", int(batch.behaviour_kind[bad]))
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
        rooms = [align_up(math.prod(shape), _LINE) for shape in shapes.values()]
        self._block = MirroredBlock(sum(rooms), self._device)
        self._tensors = self._make(_parts(self._block.there, rooms, list(shapes.values())))
        here = _parts(self._block.host, rooms, list(shapes.values()))
        self._bind({name: part.numpy() for name, part in zip(shapes, here, strict=True)})
        self._size = size


def _parts(block: Tensor, rooms: list[int], shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Views of a block's consecutive rooms, in these shapes."""
    return [
        room[: math.prod(shape)].view(shape)
        for room, shape in zip(torch.split(block, rooms), shapes, strict=True)
    ]


def check_densities(chunk: RefreshChunk, ratios: Floats32) -> None:
    """Refuses rows of the window whose behaviour has no density, so that rho (k,) is NaN.

    Raises:
        SchemaMismatchError: saying what such a step was drawn by, and the remedy.
    """
    lacking = np.isnan(ratios) & ~chunk.closing
    if lacking.any():
        kind = int(chunk.rows.behaviour_kind[int(lacking.argmax())])
        raise _unknown_behaviour("a step of the store", kind)


def _unknown_behaviour(step: str, kind: int) -> SchemaMismatchError:
    if kind == BehaviourKind.NOMINAL_GAUSSIAN:
        return SchemaMismatchError(
            f"{step} was drawn with noise that is correlated along its episode (behaviour kind 4): "
            "the Gaussian that is stored with it is not what it was drawn from given the steps "
            "before, so no importance ratio exists; collect with agent.noise: gaussian, or train "
            "an agent whose agent.noise is ornstein_uhlenbeck, without the rules of agent.refer"
        )
    return SchemaMismatchError(
        f"{step} has behaviour kind {kind}: an importance ratio needs a Gaussian behaviour (kind "
        "1) or a uniform one over the box (kind 3); collect with `sharpwave collect`, or import "
        "the behaviour with the data"
    )
