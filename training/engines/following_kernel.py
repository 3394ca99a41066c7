"""Targets that follow, all tensors in one call."""

from __future__ import annotations

import numpy as np

from storage.kernel import Floats32, kernel

__all__ = ["follow"]


@kernel
def follow(targets: tuple[Floats32, ...], online: tuple[Floats32, ...], rate: float) -> None:
    """Targets += rate (online - targets); matrices of the same shapes, in one order."""
    part = np.float32(rate)
    for k in range(len(targets)):
        target, learnt = targets[k], online[k]
        for i in range(target.shape[0]):
            for j in range(target.shape[1]):
                target[i, j] += part * (learnt[i, j] - target[i, j])
