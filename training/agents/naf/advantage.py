"""NAF's advantage: a quadratic function of the action, with its maximum at the policy's mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from training.gaussian import stdev_from_raw

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__all__ = ["DIAGONALS", "Diagonal", "quadratic_advantage"]

Diagonal = Literal["smooth", "exp"]

DIAGONALS: dict[Diagonal, Callable[[Tensor], Tensor]] = {
    "smooth": stdev_from_raw,
    "exp": torch.exp,
}
"""What makes the diagonal of L positive: (x + sqrt(1 + x^2)) / 2, or e^x."""


def quadratic_advantage(lower: Tensor, offset: Tensor) -> Tensor:
    """A(s, a) = -1/2 (a - m)^T L L^T (a - m), the advantage of NAF (ReF-ER, eq. 4).

    ``lower`` is L, (batch, A, A), lower triangular; ``offset`` a - m, (batch, A); gives (batch,).
    """
    turned = (lower * offset.unsqueeze(-1)).sum(-2)
    return -0.5 * (turned * turned).sum(-1)
