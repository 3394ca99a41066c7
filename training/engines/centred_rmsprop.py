"""Centred RMSProp with its epsilon inside the root, as TensorFlow has it, and its update rule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from storage.errors import CheckpointError, ConfigError
from training.engines.grouped_rule import GroupedRule, RuleGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from training.stage import Parameters

__all__ = ["CentredRMSprop", "CentredRMSpropRule"]

_AVERAGES, _SQUARES = "grad_avg", "square_avg"


class CentredRMSprop(Optimizer):
    """RMSProp by the gradients' variance (Graves 2013, eqs. 38 to 41; no momentum).

    With averages v of the squares and g of the gradients, which keep ``decay`` of themselves at
    each step, a parameter moves by ``-lr * gradient / sqrt(max(v - g^2, 0) + epsilon)``. Torch's
    own adds epsilon to the root instead, where 1e-5 is nothing.

    Args:
        parameters: What is learnt.
        learning_rate: The step's length.
        decay: What the averages keep at each step.
        epsilon: Added to the variance.
        initial_square: v before the first step: 1 as in TensorFlow, which shortens the first
            steps; 0 as in torch.
    """

    moments: ClassVar[tuple[str, str]] = (_AVERAGES, _SQUARES)
    """What a parameter's state holds, squares last."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        learning_rate: float,
        decay: float = 0.95,
        epsilon: float = 1e-5,
        initial_square: float = 1.0,
    ) -> None:
        settings = {
            "lr": learning_rate,
            "decay": decay,
            "epsilon": epsilon,
            "initial_square": initial_square,
        }
        super().__init__(parameters, settings)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step along the gradients that are there; gives what ``closure`` gave."""
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        for group in self.param_groups:
            held = [tensor for tensor in group["params"] if tensor.grad is not None]
            if held:
                _step(
                    held,
                    [tensor.grad for tensor in held],
                    *self.averages(held, group["initial_square"]),
                    rate=group["lr"],
                    decay=group["decay"],
                    epsilon=group["epsilon"],
                )
        return result

    def averages(
        self, parameters: list[Tensor], initial_square: float
    ) -> tuple[list[Tensor], list[Tensor]]:
        """State tensors of parameters, v and g, made where they are absent.

        Raises:
            CheckpointError: the state is another optimizer's.
        """
        states = [self._state_of(tensor, initial_square) for tensor in parameters]
        return [state[_SQUARES] for state in states], [state[_AVERAGES] for state in states]

    def _state_of(self, tensor: Tensor, initial_square: float) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[tensor]
        if not state:
            keeping = torch.preserve_format
            state[_SQUARES] = torch.full_like(tensor, initial_square, memory_format=keeping)
            state[_AVERAGES] = torch.zeros_like(tensor, memory_format=keeping)
        missing = {_SQUARES, _AVERAGES} - state.keys()
        if missing or state[_SQUARES].shape != tensor.shape:
            raise CheckpointError(
                f"the optimizer's state for a parameter of shape {tuple(tensor.shape)} is not "
                f"RMSProp's: missing {sorted(missing)}; the checkpoint belongs to another "
                "optimizer or network"
            )
        return state


class CentredRMSpropRule(GroupedRule):
    """Centred RMSProp in every group that holds the parameters (an `UpdateRule`).

    Raises:
        ConfigError: the optimizer is another one, or its groups hold other parameters, too.
        CheckpointError: its state is not RMSProp's.
    """

    def __init__(self, optimizer: Optimizer, parameters: Parameters) -> None:
        if not isinstance(optimizer, CentredRMSprop):
            raise ConfigError(f"this rule is CentredRMSprop's, not {type(optimizer).__name__}'s")
        super().__init__(optimizer, parameters, partial(_Group, optimizer))


class _Group(RuleGroup):
    """RMSProp in one group."""

    def __init__(self, optimizer: CentredRMSprop, number: int, places: dict[int, int]) -> None:
        super().__init__(optimizer, number, places)
        settings = optimizer.param_groups[number]
        self._decay, self._epsilon = float(settings["decay"]), float(settings["epsilon"])
        self._squares, self._averages = optimizer.averages(
            self.parameters, float(settings["initial_square"])
        )

    @property
    def tensors(self) -> list[Tensor]:
        return [*self.parameters, *self._squares, *self._averages]

    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        _step(
            self.parameters,
            gradients,
            self._squares,
            self._averages,
            rate=rate,
            decay=self._decay,
            epsilon=self._epsilon,
        )


def _step(
    parameters: list[Tensor],
    gradients: list[Any],
    squares: list[Tensor],
    averages: list[Tensor],
    *,
    rate: float | Tensor,
    decay: float,
    epsilon: float,
) -> None:
    torch._foreach_mul_(squares, decay)
    torch._foreach_addcmul_(squares, gradients, gradients, 1.0 - decay)
    torch._foreach_lerp_(averages, gradients, 1.0 - decay)
    roots = torch._foreach_addcmul(squares, averages, averages, -1.0)
    torch._foreach_clamp_min_(roots, 0.0)  # rounding takes equal gradients' variance below 0
    torch._foreach_add_(roots, epsilon)
    torch._foreach_sqrt_(roots)
    moves = torch._foreach_div(gradients, roots)
    torch._foreach_mul_(moves, rate)
    torch._foreach_sub_(parameters, moves)
