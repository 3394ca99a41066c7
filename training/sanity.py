"""Learning that has left the numbers: found before it is stored, and told by its cause."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from storage.errors import DivergenceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from training.stage import Feedback

__all__ = ["check_parameters_sane", "check_update", "largest_weight"]

_INSANE = 1e8
"""No network that has learnt something has weights of that size."""

_REMEDY = (
    "Start a new run with a smaller agent.learning_rate, with agent.gradient_clip, or with rewards "
    "and observations of moderate size; this one would diverge again. Checkpoints that are there "
    "are from before"
)


def check_update(feedback: Feedback, update: int) -> None:
    """Refuses an update whose loss or gradient is no number.

    Args:
        feedback: Of the update, with ``loss`` and ``gradient_norm``.
        update: Its number, from 1 on.

    Raises:
        DivergenceError: naming both.
    """
    loss, norm = float(feedback["loss"]), float(feedback["gradient_norm"])
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise DivergenceError(
            f"learning diverged: the loss of update {update:,} is {loss:g}, the norm of its "
            f"gradient {norm:g}. {_REMEDY}"
        )


def check_parameters_sane(
    parameters: Iterable[Tensor], update: int, cause: Exception | None = None
) -> None:
    """Refuses weights that are no numbers, or so large that nothing was learnt.

    Args:
        parameters: Of all networks that learn.
        update: How many updates there were.
        cause: What was noticed first.

    Raises:
        DivergenceError: naming the largest weight, and the cause.
    """
    largest = largest_weight(parameters)
    if largest < _INSANE:
        return
    size = f"reach {largest:.3g}" if math.isfinite(largest) else "are not finite"
    noticed = "" if cause is None else f" (noticed by: {cause})"
    raise DivergenceError(
        f"learning diverged: weights {size} after {update:,} updates{noticed}. {_REMEDY}"
    )


def largest_weight(parameters: Iterable[Tensor]) -> float:
    """The largest magnitude of all; inf where one is NaN, 0 without any."""
    found = [tensor.detach().abs().max() for tensor in parameters if tensor.numel()]
    if not found:
        return 0.0
    largest = float(torch.stack([each.to("cpu", torch.float64) for each in found]).max())
    return math.inf if math.isnan(largest) else largest
