"""Update engines: from a stage, a batch and a schedule to changed parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.adam import adam as functional_adam

from storage.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from training.stage import Feedback, Parameters, Schedule, Stage
    from training.tensor_batch import TensorBatch

__all__ = ["ADAM_EPSILON", "EagerEngine", "Engine", "make_adam"]

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


class Engine(Protocol):
    """One way to run an agent's updates.

    Contract. `bind` is called when training starts or resumes, after every checkpoint has been
    loaded; from then on the optimizer's state tensors are the engine's state, changed in place, so
    that the optimizer can be saved and resumed as if it had stepped itself. `update` must leave
    ``grad`` of every parameter None and read every changing number from the schedule's tensors.
    """

    name: str
    """What a checkpoint records, so that resuming never switches engines."""

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        ...

    def update(self, batch: TensorBatch, schedule: Schedule) -> Feedback:
        """Run one update. The stage's feedback comes back, with ``loss`` and ``gradient_norm``."""
        ...


class EagerEngine:
    """Autograd, then the functional Adam of torch.optim on the optimizer's own state (an `Engine`).

    ``parameters`` are the stage's named parameters, all in one group of ``optimizer``; the learning
    rate is the schedule's ``learning_rate``, not the optimizer's. Gradients longer than
    ``max_gradient_norm`` (the L2 norm over all parameters) are shortened to it.

    Raises:
        ConfigError: the optimizer is no plain Adam over exactly these parameters.

    """

    name = "eager"

    def __init__(
        self,
        stage: Stage,
        parameters: Parameters,
        optimizer: Adam,
        *,
        max_gradient_norm: float = math.inf,
    ) -> None:
        _check_optimizer(parameters, optimizer)
        if not max_gradient_norm > 0:
            raise ConfigError(f"max_gradient_norm = {max_gradient_norm} must be positive")
        self._stage = stage
        self._parameters = dict(parameters)
        self._tensors = list(parameters.values())
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self.bind()

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent.

        Call it in ``on_train_start``: loading an optimizer's state replaces its tensors.
        """
        states = [_adam_state(self._optimizer, tensor) for tensor in self._tensors]
        self._steps = [state["step"] for state in states]
        self._averages = [state["exp_avg"] for state in states]
        self._squares = [state["exp_avg_sq"] for state in states]
        group = self._optimizer.param_groups[0]
        self._beta_1, self._beta_2 = group["betas"]
        self._epsilon = group["eps"]
        self._weight_decay = group["weight_decay"]

    def update(self, batch: TensorBatch, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        loss, feedback = self._stage(self._parameters, batch, schedule)
        gradients = torch.autograd.grad(loss, self._tensors)
        with torch.no_grad():
            norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
            if self._max_norm < math.inf:
                _shorten(gradients, norm, self._max_norm)
            self._step(list(gradients), schedule["learning_rate"])
        feedback["loss"] = loss.detach()
        feedback["gradient_norm"] = norm
        return feedback

    def _step(self, gradients: list[Tensor], learning_rate: Tensor) -> None:
        functional_adam(
            self._tensors,
            gradients,
            self._averages,
            self._squares,
            [],
            self._steps,
            fused=True,
            foreach=False,
            amsgrad=False,
            has_complex=False,
            beta1=self._beta_1,
            beta2=self._beta_2,
            lr=learning_rate,
            weight_decay=self._weight_decay,
            eps=self._epsilon,
            maximize=False,
        )


def _shorten(gradients: tuple[Tensor, ...], norm: Tensor, limit: float) -> None:
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(gradients, factor)


def _adam_state(optimizer: Adam, tensor: Tensor) -> dict[str, Any]:
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


def _check_optimizer(parameters: Parameters, optimizer: Adam) -> None:
    if type(optimizer) is not Adam or len(optimizer.param_groups) != 1:
        raise ConfigError(
            f"the eager engine steps one group of torch.optim.Adam, not {type(optimizer).__name__} "
            f"with {len(optimizer.param_groups)} groups"
        )
    group = optimizer.param_groups[0]
    if group["amsgrad"] or group["maximize"] or group.get("decoupled_weight_decay"):
        raise ConfigError(
            "the eager engine runs plain Adam: amsgrad, maximize and decoupled weight decay off"
        )
    owned = {id(tensor) for tensor in group["params"]}
    if owned != {id(tensor) for tensor in parameters.values()}:
        raise ConfigError("the optimizer must own exactly the parameters of the stage")
