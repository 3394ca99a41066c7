"""Target networks that follow the learnt ones, in the same update."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

import torch

from training.engines.adam import AdamRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn
    from torch.optim import Optimizer

    from training.engines.update_rule import RuleMaker, UpdateRule
    from training.stage import Parameters, Schedule

__all__ = ["FollowingRule", "following", "frozen_copy"]


class FollowingRule:
    """Another rule's step, then targets += rate (online - targets) (an `UpdateRule`).

    ``online`` and ``targets`` are pairs of tensors, in one order.
    """

    def __init__(
        self, rule: UpdateRule, online: Sequence[Tensor], targets: Sequence[Tensor], rate: float
    ) -> None:
        self._rule = rule
        self._online = list(online)
        self._targets = list(targets)
        self._speed = rate

    @property
    def tensors(self) -> list[Tensor]:
        """What the other rule changes, and the targets."""
        return [*self._rule.tensors, *self._targets]

    def apply(self, gradients: list[Tensor], schedule: Schedule) -> None:
        """Change parameters and state in place, then the targets."""
        self._rule.apply(gradients, schedule)
        torch._foreach_lerp_(self._targets, self._online, self._speed)


def following(
    pairs: Sequence[tuple[nn.Module, nn.Module]], rate: float, rule: RuleMaker = AdamRule
) -> RuleMaker:
    """A rule maker that lets targets follow after each step of ``rule``.

    Args:
        pairs: Networks and their targets, of the same structure.
        rate: tau, the part of the way that targets go at each update.
        rule: What changes the networks.

    """
    online: list[Tensor] = [tensor for network, _ in pairs for tensor in network.parameters()]
    targets: list[Tensor] = [tensor for _, target in pairs for tensor in target.parameters()]
    return partial(_make, rule, online, targets, rate)


def frozen_copy(network: nn.Module) -> nn.Module:
    """A frozen copy of a network, to follow it."""
    return copy.deepcopy(network).requires_grad_(False)


def _make(
    rule: RuleMaker,
    online: list[Tensor],
    targets: list[Tensor],
    rate: float,
    optimizer: Optimizer,
    parameters: Parameters,
) -> FollowingRule:
    return FollowingRule(rule(optimizer, parameters), online, targets, rate)
