"""Adam as the paper's code has it, and its state tensors, which every engine shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Adam

from storage.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from training.stage import Parameters

__all__ = ["ADAM_EPSILON", "AdamState", "check_optimizer", "make_adam"]

ADAM_EPSILON = 1.19e-7
"""Adam's epsilon outside the root, and the coupled weight decay, of the authors' code."""


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
    """

    def __init__(self, optimizer: Adam, parameters: Sequence[Tensor]) -> None:
        states = [_state(optimizer, tensor) for tensor in parameters]
        self.steps: list[Tensor] = [state["step"] for state in states]
        self.averages: list[Tensor] = [state["exp_avg"] for state in states]
        self.squares: list[Tensor] = [state["exp_avg_sq"] for state in states]
        group = optimizer.param_groups[0]
        self.beta_1, self.beta_2 = (float(beta) for beta in group["betas"])
        self.epsilon = float(group["eps"])
        self.weight_decay = float(group["weight_decay"])


def check_optimizer(parameters: Parameters, optimizer: Adam, max_gradient_norm: float) -> None:
    """Raise ConfigError unless it is plain Adam over exactly these parameters, in one group.

    And unless ``max_gradient_norm``, the length that longer gradients are cut to, is positive.
    """
    if not max_gradient_norm > 0:
        raise ConfigError(f"max_gradient_norm = {max_gradient_norm} must be positive")
    if type(optimizer) is not Adam or len(optimizer.param_groups) != 1:
        raise ConfigError(
            f"an engine steps one group of torch.optim.Adam, not {type(optimizer).__name__} "
            f"with {len(optimizer.param_groups)} groups"
        )
    group = optimizer.param_groups[0]
    if group["amsgrad"] or group["maximize"] or group.get("decoupled_weight_decay"):
        raise ConfigError(
            "an engine runs plain Adam: amsgrad, maximize and decoupled weight decay off"
        )
    owned = {id(tensor) for tensor in group["params"]}
    if owned != {id(tensor) for tensor in parameters.values()}:
        raise ConfigError("the optimizer must own exactly the parameters of the stage")


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
