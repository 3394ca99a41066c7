"""A replay batch of discrete actions as tensors: what DQN computes its loss from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from storage.errors import SchemaMismatchError
from training.batches.batch_kernels import scale_rows
from training.batches.discrete_kernels import fill_discrete_batch
from training.device import HOST, MirroredBlock
from training.scaling import flat_rows

if TYPE_CHECKING:
    from gymnasium.spaces import Discrete
    from numpy.typing import NDArray
    from torch import Tensor

    from storage.kernel import Floats32
    from storage.replay import Batch, RefreshChunk
    from training.scaling import ObservationScaling

__all__ = ["DISCRETE_FIELDS", "DiscreteBatch", "DiscreteConverter", "check_distributions"]

DISCRETE_FIELDS = (
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
    "behaviour",
    "behaviour_kind",
)
"""What a `DiscreteConverter` reads of a replay batch, besides ``life_lost`` where there is one."""


class DiscreteBatch(NamedTuple):
    """Tensors of one update, float32 unless said otherwise; a tuple, so that engines may trace it.

    B is the batch size, O the flattened observation's size, n the number of actions.
    """

    observation: Tensor
    """(B, O), scaled; or frames as the environment shows them, uint8 (B, ...)."""
    next_observation: Tensor
    """Laid out alike: the true next one, at an episode's end as well."""
    action: Tensor
    """(B,), int64: the action's index from 0."""
    reward: Tensor
    """(B,), raw: stages divide by the schedule's ``reward_scale``."""
    continuing: Tensor
    """(B,), 0 where nothing is bootstrapped (a terminal step, or a life lost), else 1."""
    behaviour: Tensor
    """(B, n), mu(.|s): the probability of every action."""
    sampling_weight: Tensor
    """(B,), what multiplies a step's whole gradient; 1 under uniform sampling."""


class DiscreteConverter:
    """Makes a `DiscreteBatch` of a replay batch of one discrete action.

    Frames are not copied on the host: their tensors are the batch's own arrays, so that stacks stay
    uint8 and a step shares all but one frame with the next one. Everything else goes into memory
    that is allocated once and overwritten by the next call, which must not come before the update's
    feedback was read.

    Args:
        scaling: Of the observation's numbers; not used for frames.
        space: The action space.
        device: Where updates run.
        frames: Whether observations are frames.
        life_loss_ends: Whether nothing is bootstrapped where the batch has a lost life.
    """

    def __init__(
        self,
        scaling: ObservationScaling,
        space: Discrete,
        device: torch.device = HOST,
        *,
        frames: bool,
        life_loss_ends: bool,
    ) -> None:
        self._statistics = scaling.statistics.numpy()
        self._size = scaling.size
        self._actions, self._first = int(space.n), int(space.start)
        self._device = device
        self._frames = frames
        self._life_loss_ends = life_loss_ends
        self._batch: Batch | None = None

    def __call__(self, batch: Batch) -> DiscreteBatch:
        """Convert one batch.

        Raises:
            SchemaMismatchError: a step's behaviour is no distribution over the actions, so that no
                importance ratio exists, or the batch is of another environment.
        """
        if batch is not self._batch:
            self._take(batch)
        ends = batch.terminated
        if self._life_loss_ends and "life_lost" in batch.extra:
            ends = ends | batch.extra["life_lost"]
        bad = fill_discrete_batch(
            np.asarray(batch.action, np.int64) - self._first,
            batch.behaviour,
            batch.behaviour_kind,
            (batch.reward, ends, batch.sampling_weight),
            *self._filled,
        )
        if bad >= 0:
            place = f"step (segment {int(batch.segment[bad])}, row {int(batch.row[bad])})"
            raise _unknown_behaviour(place, batch, bad)
        if not self._frames:
            here, following = self._states
            scale_rows(flat_rows(batch.observation), self._statistics, here)
            scale_rows(flat_rows(batch.next_observation), self._statistics, following)
        self._block.send()
        for mirror in self._mirrors:
            mirror.send()
        return self._tensors

    def _take(self, batch: Batch) -> None:
        """Makes room for a batch, unless it is of another environment."""
        steps, actions = len(batch.reward), self._actions
        _require_shape("action", np.shape(batch.action), (steps,))
        _require_shape("behaviour", batch.behaviour.shape, (steps, actions))
        state = (steps, 0 if self._frames else self._size)
        shapes = [state, state, (steps,), (steps,), (steps, actions), (steps,)]
        self._block = MirroredBlock(sum(math.prod(shape) for shape in shapes), self._device)
        here = [part.numpy() for part in _parts(self._block.host, shapes)]
        self._states = here[0], here[1]
        action = _Mirror(np.zeros(steps, np.int64), self._device)
        self._filled = action.array, here[4], (here[2], here[3], here[5])
        there = _parts(self._block.there, shapes)
        self._mirrors = [action]
        if self._frames:
            there[:2] = self._mirrored_frames(batch.observation, batch.next_observation)
        else:
            _require_shape("observation", flat_rows(batch.observation).shape, state)
        self._tensors = DiscreteBatch(there[0], there[1], action.tensor, *there[2:])
        self._batch = batch

    def _mirrored_frames(
        self, observation: NDArray[Any], following: NDArray[Any]
    ) -> tuple[Tensor, Tensor]:
        """Tensors of the frames; stacks that share a step's frames go to a device once."""
        whole = observation.base
        stacked = observation.shape[1]
        if whole is None or whole is not following.base or whole.shape[1] != stacked + 1:
            both = [_Mirror(array, self._device) for array in (observation, following)]
            self._mirrors += both
            return both[0].tensor, both[1].tensor
        mirror = _Mirror(whole, self._device)
        self._mirrors.append(mirror)
        return mirror.tensor[:, :stacked], mirror.tensor[:, 1:]


class _Mirror:
    """An array of the host, and the same numbers on a device: on the host both are one memory."""

    def __init__(self, array: NDArray[Any], device: torch.device) -> None:
        self.array = array
        self._here = torch.from_numpy(array)
        self.tensor = self._here if device.type == HOST.type else self._here.to(device)

    def send(self) -> None:
        """Bring what the host has written to the device."""
        if self.tensor is not self._here:
            self.tensor.copy_(self._here)


def _parts(block: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Views of a block's consecutive parts, in these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    return [part.view(shape) for part, shape in zip(torch.split(block, sizes), shapes, strict=True)]


def _require_shape(name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise SchemaMismatchError(
            f"the batch's {name} has shape {found}, the agent takes {wanted}: the store is of "
            "another environment"
        )


def check_distributions(chunk: RefreshChunk, ratios: Floats32) -> None:
    """Refuses rows of the window whose behaviour is no distribution, so that rho (k,) is NaN.

    Raises:
        SchemaMismatchError: saying what such a step was drawn by, and the remedy.
    """
    lacking = np.isnan(ratios) & ~chunk.closing
    if lacking.any():
        raise _unknown_behaviour("a step of the store", chunk.rows, int(lacking.argmax()))


def _unknown_behaviour(step: str, batch: Batch, position: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{step} has behaviour kind {int(batch.behaviour_kind[position])} and probabilities "
        f"{batch.behaviour[position].tolist()} for action {batch.action[position]}: an importance "
        "ratio needs the probability of every action (kind 2), of the one taken above 0; collect "
        "with `sharpwave collect`, or import the behaviour with the data"
    )
