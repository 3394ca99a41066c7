"""What update rules share that go through the optimizer's groups, each with a rate of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from training.engines.update_rule import owned_groups

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from training.stage import Parameters, Schedule

__all__ = ["GroupedRule", "RuleGroup"]

_Places = dict[int, int]
"""The parameters' places among all, by identity."""


class RuleGroup(ABC):
    """An optimizer's formula in one of its groups.

    The learning rate is the schedule's ``learning_rate``, or the entry that the group's key
    ``rate`` names; the optimizer's own is not read.

    Args:
        optimizer: Owner of the group.
        number: Of the group.
        places: Of the parameters in the lists of gradients.
    """

    def __init__(self, optimizer: Optimizer, number: int, places: _Places) -> None:
        settings = optimizer.param_groups[number]
        self.parameters: list[Tensor] = list(settings["params"])
        self._places = [places[id(tensor)] for tensor in self.parameters]
        self._rate: str = settings.get("rate", "learning_rate")

    @property
    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """Everything that the formula changes."""

    @abstractmethod
    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        """Change parameters and state in place by the gradients of these parameters."""

    def apply(self, gradients: list[Tensor], schedule: Schedule) -> None:
        """Pick out the group's own gradients and step."""
        self.step([gradients[place] for place in self._places], schedule[self._rate])


class GroupedRule:
    """Base of update rules (an `UpdateRule`) whose groups ``make_group`` makes.

    Raises:
        ConfigError: the optimizer's groups hold other parameters, too.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        parameters: Parameters,
        make_group: Callable[[int, _Places], RuleGroup],
    ) -> None:
        places = {id(tensor): place for place, tensor in enumerate(parameters.values())}
        numbers = owned_groups(parameters, optimizer)
        self._groups = [make_group(number, places) for number in numbers]

    @property
    def tensors(self) -> list[Tensor]:
        """Parameters and the optimizer's state of them."""
        return [tensor for group in self._groups for tensor in group.tensors]

    def apply(self, gradients: list[Tensor], schedule: Schedule) -> None:
        """Change parameters and state in place; the gradients are in the parameters' order."""
        for group in self._groups:
            group.apply(gradients, schedule)
