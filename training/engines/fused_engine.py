"""The fused engine: forward, backward and Adam by hand, a few calls between matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from storage.errors import ConfigError
from training.engines.adam import AdamState, adam_groups
from training.engines.adam_kernels import adam, gradient_norm
from training.engines.matrix_kernels import padded
from training.engines.update_rule import check_limit

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Adam

    from storage.kernel import Floats32
    from training.engines.closed_form import ClosedForm
    from training.stage import Feedback, Schedule

__all__ = ["FusedEngine", "host_matrix"]


class FusedEngine:
    """Runs updates of a stage with a `ClosedForm` on the CPU (an `Engine`).

    Its gradients are its own memory; the optimizer's own state tensors are changed in place.

    Raises:
        ConfigError: the optimizer is no plain Adam over exactly the stage's parameters, or a
            parameter is not contiguous float32 on the host.

    """

    name = "fused"

    def __init__(
        self, stage: ClosedForm, optimizer: Adam, *, max_gradient_norm: float = math.inf
    ) -> None:
        check_limit(max_gradient_norm)
        self._stage = stage
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self._numbers_of_groups = adam_groups(stage.parameters, optimizer)
        tensors = stage.parameters.values()
        self._gradients = {tensor: padded(*_shape(tensor)) for tensor in tensors}
        self._gradient = tuple(self._gradients.values())
        self._numbers = np.zeros(2, np.float32)
        self._loss, self._norm = torch.from_numpy(self._numbers).unbind()
        self.bind()

    def bind(self) -> None:
        """Take hold of the present parameters and state tensors; create states that are absent."""
        self._stage.bind()
        self._parameters = tuple(host_matrix(tensor) for tensor in self._gradients)
        self._groups = [
            _Group(self._optimizer, number, self._gradients) for number in self._numbers_of_groups
        ]

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        loss, feedback = self._stage.fill(self._gradients, batch, schedule)
        norm = gradient_norm(self._parameters, self._gradient)
        factor = 1.0 if norm + 1e-6 <= self._max_norm else self._max_norm / (norm + 1e-6)
        for group in self._groups:
            group.step(factor, schedule)
        self._stage.stepped()
        self._numbers[0], self._numbers[1] = loss, norm
        feedback["loss"], feedback["gradient_norm"] = self._loss, self._norm
        return feedback


class _Group:
    """Adam in one group of the optimizer, on the memory of its parameters and their states."""

    def __init__(self, optimizer: Adam, number: int, gradients: dict[Tensor, Floats32]) -> None:
        settings = optimizer.param_groups[number]
        tensors: list[Tensor] = settings["params"]
        state = AdamState(optimizer, tensors, number)
        self._rate: str = settings.get("rate", "learning_rate")
        self._gradients = tuple(gradients[tensor] for tensor in tensors)
        self._parameters, self._averages, self._squares, self._steps = (
            tuple(host_matrix(tensor) for tensor in kind)
            for kind in (tensors, state.averages, state.squares, state.steps)
        )
        self._settings = (state.beta_1, state.beta_2, state.epsilon, state.weight_decay)

    def step(self, factor: float, schedule: Schedule) -> None:
        """One step along the gradients times ``factor``."""
        adam(
            self._parameters,
            self._averages,
            self._squares,
            self._steps,
            self._gradients,
            factor,
            schedule[self._rate].item(),
            self._settings,
        )


def _shape(tensor: Tensor) -> tuple[int, int]:
    """Rows and columns of a parameter; a vector is one row, a number one of one."""
    columns = tensor.shape[-1] if tensor.ndim else 1
    return tensor.numel() // columns, columns


def host_matrix(tensor: Tensor) -> Floats32:
    """A tensor's memory as a NumPy matrix; a vector is one row, a number one of one.

    Raises:
        ConfigError: it is not contiguous float32 on the host.

    """
    if tensor.device.type != "cpu" or tensor.dtype != torch.float32 or not tensor.is_contiguous():
        raise ConfigError(
            f"the fused engine needs contiguous float32 tensors on the host, not {tensor.dtype} of "
            f"shape {tuple(tensor.shape)} on {tensor.device}; choose engine: eager"
        )
    array: Floats32 = tensor.detach().view(_shape(tensor)).numpy()
    return array
