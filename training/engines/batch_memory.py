"""A batch's memory as arrays, for gradients in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from storage.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.kernel import Floats32
    from training.stage import Feedback

__all__ = ["BatchMemory", "check_rows"]


class BatchMemory:
    """Views of a batch of continuous actions, and room for what an update says of its steps.

    Args:
        batch: A named tuple of tensors on the host, overwritten by the next batch of that size.
        action: Numbers in an action.
        vectors: Fields of (B,) that are wanted.
        feedback: What the update says of each step.

    Raises:
        ConfigError: fields of unlike lengths.
    """

    matrices: tuple[Floats32, Floats32, Floats32]
    """Raw action, behaviour mean and behaviour stdev, (B, A) each."""
    vectors: tuple[Floats32, ...]
    """The fields that were asked for, (B,) each."""
    numbers: Floats32
    """Room for the feedback, (kinds, B)."""

    def __init__(
        self, batch: Any, action: int, vectors: Sequence[str], feedback: Sequence[str]
    ) -> None:
        size = len(batch.observation)
        check_rows(batch, size, action)
        self.matrices = (
            batch.raw_action.numpy(),
            batch.behaviour_mean.numpy(),
            batch.behaviour_stdev.numpy(),
        )
        self.vectors = tuple(getattr(batch, name).numpy() for name in vectors)
        self.numbers = np.empty((len(feedback), size), np.float32)
        self._batch = batch
        self._feedback = dict(zip(feedback, torch.from_numpy(self.numbers).unbind(), strict=True))

    def holds(self, batch: Any) -> bool:
        """Whether this is that batch's memory."""
        return batch is self._batch

    def feedback(self) -> Feedback:
        """Views of `numbers` by name, in a mapping of the caller's own."""
        return dict(self._feedback)


def check_rows(batch: Any, size: int, action: int) -> None:
    """Refuses a batch (a named tuple of tensors) whose fields are not of so many steps.

    Observations are checked by the passes that take them.

    Raises:
        ConfigError: naming the field.

    """
    wide = ("raw_action", "behaviour_mean", "behaviour_stdev")
    for name, tensor in batch._asdict().items():
        wanted = (size, action) if name in wide else (size,)
        observed = name in ("observation", "next_observation")
        if not size or not (observed or tensor.shape == wanted):
            raise ConfigError(
                f"the batch's {name} has shape {tuple(tensor.shape)}: an update takes at least "
                f"one step and one number, or {action} of an action, for each of them"
            )
