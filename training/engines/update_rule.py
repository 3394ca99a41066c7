"""Update rules: from gradients to changed parameters, by an optimizer's formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from storage.errors import ConfigError
from training.stage import Parameters

if TYPE_CHECKING:
    from training.stage import Schedule

__all__ = ["RuleMaker", "UpdateRule", "apply_gradients", "check_limit", "owned_groups"]


class UpdateRule(Protocol):
    """An optimizer's formula on its own state tensors.

    Contract. An engine makes the rule anew whenever the optimizer's state may have been replaced,
    and calls `apply` once an update, without gradient tracking, possibly while `torch.compile`
    traces it. `apply` changes the parameters and all state in place and nothing else, and reads
    every number that changes between updates from the schedule's tensors. A rule may wrap another
    one, for instance to let target networks follow the parameters in the same graph; copies that
    are due every so many updates need no rule, since stages hold their frozen tensors.
    """

    @property
    def tensors(self) -> Sequence[Tensor]:
        """Everything that `apply` changes, parameters included."""
        ...

    def apply(self, gradients: list[Tensor], schedule: Schedule) -> None:
        """Change parameters and state in place; the gradients are in the parameters' order."""
        ...


RuleMaker = Callable[[Optimizer, Parameters], UpdateRule]
"""Makes a rule on the optimizer's present state tensors, those that are absent included."""


def apply_gradients(
    rule: UpdateRule, gradients: list[Tensor], schedule: Schedule, limit: float
) -> Tensor:
    """Shorten the gradients to the norm ``limit`` and apply them; gives their norm before (0-dim).

    The one way from gradients to a rule: several processes would average their gradients here,
    before the norm is taken.
    """
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if limit < math.inf:
        factor = (limit / (norm + 1e-6)).clamp(max=1.0)
        gradients = list(torch._foreach_mul(gradients, factor))
    rule.apply(gradients, schedule)
    return norm


def check_limit(max_gradient_norm: float) -> None:
    """Raise ConfigError unless the length that longer gradients are cut to is positive."""
    if not max_gradient_norm > 0:
        raise ConfigError(f"max_gradient_norm = {max_gradient_norm} must be positive")


def owned_groups(parameters: Parameters, optimizer: Optimizer) -> list[int]:
    """Numbers of the optimizer's groups that hold these parameters, each group wholly.

    Raises:
        ConfigError: a parameter is in no group, or a group holds others as well.

    """
    wanted = {id(tensor) for tensor in parameters.values()}
    groups = [{id(tensor) for tensor in group["params"]} for group in optimizer.param_groups]
    taken = [number for number, group in enumerate(groups) if group & wanted]
    if set[int]().union(*(groups[number] for number in taken)) != wanted:
        raise ConfigError("the optimizer's groups must own exactly the parameters of the stage")
    return taken
