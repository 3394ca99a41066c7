"""Networks that follow the learnt ones, beside the fused engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.engines.following_kernel import follow
from training.engines.fused_engine import host_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

__all__ = ["HostTargets"]


class HostTargets:
    """Targets of networks on the host, which go a part of their way in one call.

    Args:
        pairs: Networks and their targets, of the same structure.
        rate: tau, the part of the way that targets go at each update.
    """

    def __init__(self, pairs: Sequence[tuple[nn.Module, nn.Module]], rate: float) -> None:
        self._pairs = list(pairs)
        self._rate = rate
        self.bind()

    def bind(self) -> None:
        """Take hold of the memory of all networks."""
        online, targets = zip(*self._pairs, strict=True)
        self._online, self._targets = (
            tuple(host_matrix(tensor) for network in networks for tensor in network.parameters())
            for networks in (online, targets)
        )

    def follow(self) -> None:
        """Targets += rate (online - targets)."""
        follow(self._targets, self._online, self._rate)
