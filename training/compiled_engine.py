"""The compiled engine: loss, gradients, clipping and Adam of an update as one graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.adam import adam as functional_adam

from storage.errors import ConfigError
from training.adam import AdamState, check_optimizer

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Adam

    from training.stage import Feedback, Parameters, Schedule, Stage
    from training.tensor_batch import TensorBatch

__all__ = ["CompiledEngine", "compiler_problem"]


def compiler_problem() -> str | None:
    """Why updates cannot be compiled for the CPU on this machine; None if they can."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return "no C++ compiler was found (install g++ or clang++, or set CXX)"
    return None


class CompiledEngine:
    """Runs a stage's whole update as one graph of `torch.compile` (an `Engine`).

    The first update compiles, for some twenty seconds; later processes take the code from torch's
    cache. Numbers that change between updates are 0-dim tensors, so that nothing compiles twice.

    Raises:
        ConfigError: the optimizer is no plain Adam over exactly these parameters, or there is no
            compiler.

    """

    name = "compiled"

    def __init__(
        self,
        stage: Stage,
        parameters: Parameters,
        optimizer: Adam,
        *,
        max_gradient_norm: float = math.inf,
    ) -> None:
        check_optimizer(parameters, optimizer, max_gradient_norm)
        problem = compiler_problem()
        if problem is not None:
            raise ConfigError(f"engine: compiled is not possible here: {problem}")
        self._stage = stage
        self._parameters = dict(parameters)
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self.bind()

    def bind(self) -> None:
        """Take hold of the optimizer's present state tensors; create those that are absent."""
        self._state = AdamState(self._optimizer, list(self._parameters.values()))
        self._compiled: Any = torch.compile(self._whole_update, fullgraph=True, dynamic=False)

    def update(self, batch: TensorBatch, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        with torch.no_grad():
            feedback: Feedback = self._compiled(batch, dict(schedule))
        return feedback

    def _whole_update(self, batch: TensorBatch, schedule: Schedule) -> Feedback:
        names, tensors, state = list(self._parameters), list(self._parameters.values()), self._state
        gradients_of, (loss, feedback) = torch.func.grad_and_value(
            lambda parameters: self._stage(parameters, batch, schedule), has_aux=True
        )(self._parameters)
        gradients: list[Tensor] = [gradients_of[name] for name in names]
        norm = torch.stack([(g * g).sum() for g in gradients]).sum().sqrt()
        if self._max_norm < math.inf:
            factor = (self._max_norm / (norm + 1e-6)).clamp(max=1.0)
            gradients = [g * factor for g in gradients]
        functional_adam(
            tensors,
            gradients,
            state.averages,
            state.squares,
            [],
            state.steps,
            foreach=True,
            capturable=True,
            amsgrad=False,
            has_complex=False,
            beta1=state.beta_1,
            beta2=state.beta_2,
            lr=schedule["learning_rate"],
            weight_decay=state.weight_decay,
            eps=state.epsilon,
            maximize=False,
        )
        whole: Feedback = feedback | {"loss": loss, "gradient_norm": norm}
        return whole
