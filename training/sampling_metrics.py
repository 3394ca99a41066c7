"""Numbers of prioritized draws, for a metrics row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.metrics import effective_fraction, quantiles

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from storage.replay.schemes.priority_settings import PrioritySettings

__all__ = ["sampling_metrics"]


def sampling_metrics(
    priorities: PrioritySettings,
    draws: int,
    weights: NDArray[float32],
    errors: NDArray[float32],
) -> dict[str, float]:
    """What the newest draw says about priorities.

    Args:
        priorities: Their settings, of which ``beta_at`` gives the weights' exponent.
        draws: The number of the draw; the first one is 1.
        weights: Its sampling weights, shape (batch,).
        errors: What its steps' new priorities are made of, shape (batch,).
    """
    return {
        "sampling_exponent": priorities.beta_at(draws),
        **quantiles("sampling_weight", weights),
        "effective_weight_fraction": effective_fraction(weights),
        "priority_error": float(errors.mean()),
    }
