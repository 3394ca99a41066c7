"""Adam as the paper's code has it, and its state tensors, which every engine shares."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.adam import adam as functional_adam

from storage.errors import CheckpointError, ConfigError
from training.engines.grouped_rule import GroupedRule, RuleGroup
from training.engines.update_rule import owned_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch.optim import Optimizer

    from training.stage import Parameters

__all__ = ["ADAM_EPSILON", "AdamRule", "AdamState", "adam_groups", "make_adam"]

ADAM_EPSILON = 1.19e-7
"""Adam's epsilon outside the root, and the coupled weight decay, of the authors' code.

Their code folds the bias correction into the step size, m / (sqrt(v) + epsilon); here it is
torch's, in whose terms theirs is epsilon / sqrt(1 - 0.999^t): larger in the first thousand updates.
"""


def make_adam(parameters: Iterable[Tensor], *, learning_rate: float) -> Adam:
    """Build Adam as the paper's code has it: betas 0.9 and 0.999, epsilon and L2 of 1.19e-7."""
    return Adam(
        parameters,
        lr=learning_rate,
        betas=(0.9, 0.999),
        eps=ADAM_EPSILON,
        weight_decay=ADAM_EPSILON,
    )


class AdamState:
    """The optimizer's own state tensors of some parameters, created where they are absent.

    Changed in place by the engine, so that the optimizer can be saved and resumed as if it had
    stepped itself. Loading an optimizer's state replaces its tensors: make a new one then.
    Betas, epsilon and weight decay are those of the optimizer's group of that number.
    """

    def __init__(self, optimizer: Adam, parameters: Sequence[Tensor], group: int = 0) -> None:
        states = [_state(optimizer, tensor) for tensor in parameters]
        self.steps: list[Tensor] = [state["step"] for state in states]
        self.averages: list[Tensor] = [state["exp_avg"] for state in states]
        self.squares: list[Tensor] = [state["exp_avg_sq"] for state in states]
        settings = optimizer.param_groups[group]
        self.beta_1, self.beta_2 = (float(beta) for beta in settings["betas"])
        self.epsilon = float(settings["eps"])
        self.weight_decay = float(settings["weight_decay"])


class AdamRule(GroupedRule):
    """Adam in every group that holds the parameters, each by its own settings (an `UpdateRule`).

    Eager updates take the one kernel that torch has for the whole group, graphs take operations
    that they can merge with others.

    Raises:
        ConfigError: the optimizer is no plain Adam, or its groups hold other parameters, too.
        CheckpointError: its state is not Adam's.

    """

    def __init__(self, optimizer: Optimizer, parameters: Parameters) -> None:
        super().__init__(optimizer, parameters, partial(_Group, _plain_adam(optimizer)))


class _Group(RuleGroup):
    """Adam in one group."""

    def __init__(self, optimizer: Adam, number: int, places: dict[int, int]) -> None:
        super().__init__(optimizer, number, places)
        self._state = AdamState(optimizer, self.parameters, number)

    @property
    def tensors(self) -> list[Tensor]:
        state = self._state
        return [*self.parameters, *state.averages, *state.squares, *state.steps]

    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        state, traced = self._state, torch.compiler.is_compiling()
        functional_adam(
            self.parameters,
            gradients,
            state.averages,
            state.squares,
            [],
            state.steps,
            fused=not traced,
            foreach=traced,
            capturable=traced,
            amsgrad=False,
            has_complex=False,
            beta1=state.beta_1,
            beta2=state.beta_2,
            lr=rate,
            weight_decay=state.weight_decay,
            eps=state.epsilon,
            maximize=False,
        )


def adam_groups(parameters: Parameters, optimizer: Optimizer) -> list[int]:
    """Numbers of the groups of plain Adam that hold exactly these parameters.

    Raises:
        ConfigError: the optimizer is no plain Adam, or its groups hold other parameters, too.

    """
    return owned_groups(parameters, _plain_adam(optimizer))


def _plain_adam(optimizer: Optimizer) -> Adam:
    if type(optimizer) is not Adam:
        raise ConfigError(f"this rule is torch.optim.Adam's, not {type(optimizer).__name__}'s")
    for group in optimizer.param_groups:
        if group["amsgrad"] or group["maximize"] or group.get("decoupled_weight_decay"):
            raise ConfigError(
                "an engine runs plain Adam: amsgrad, maximize and decoupled weight decay off"
            )
    return optimizer


def _state(optimizer: Adam, tensor: Tensor) -> dict[str, Any]:
    """State of one parameter, made as Adam's own first step would make it."""
    state: dict[str, Any] = optimizer.state[tensor]
    if not state:
        state["step"] = torch.zeros((), dtype=torch.float32, device=tensor.device)
        state["exp_avg"] = torch.zeros_like(tensor, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(tensor, memory_format=torch.preserve_format)
    missing = {"step", "exp_avg", "exp_avg_sq"} - state.keys()
    if missing or state["exp_avg"].shape != tensor.shape:
        raise CheckpointError(
            f"the optimizer's state for a parameter of shape {tuple(tensor.shape)} is not Adam's: "
            f"missing {sorted(missing)}; the checkpoint belongs to another optimizer or network"
        )
    return state
