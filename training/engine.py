"""Update engines: from a stage, a batch and a schedule to changed parameters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch
from torch.optim.adam import adam as functional_adam

from training.adam import AdamState, check_optimizer

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Adam

    from training.stage import Feedback, Parameters, Schedule, Stage
    from training.tensor_batch import TensorBatch

__all__ = ["EagerEngine", "Engine"]


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
        check_optimizer(parameters, optimizer, max_gradient_norm)
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
        self._state = AdamState(self._optimizer, self._tensors)

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
            self._state.averages,
            self._state.squares,
            [],
            self._state.steps,
            fused=True,
            foreach=False,
            amsgrad=False,
            has_complex=False,
            beta1=self._state.beta_1,
            beta2=self._state.beta_2,
            lr=learning_rate,
            weight_decay=self._state.weight_decay,
            eps=self._state.epsilon,
            maximize=False,
        )


def _shorten(gradients: tuple[Tensor, ...], norm: Tensor, limit: float) -> None:
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(gradients, factor)
