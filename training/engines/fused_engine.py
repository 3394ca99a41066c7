"""The fused engine: forward, backward and Adam by hand, a few calls between matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from storage.errors import ConfigError
from training.engines.adam import AdamState, check_optimizer
from training.engines.adam_kernels import adam, gradient_norm
from training.engines.matrix_kernels import padded
from training.engines.mlp_pass import MlpPass

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Adam

    from storage.kernel import Floats32
    from training.engines.output_gradient import OutputGradient
    from training.stage import Feedback, Schedule

__all__ = ["FusedEngine", "host_matrix"]


class FusedEngine:
    """Runs updates of a stage with an `OutputGradient` on the CPU (an `Engine`).

    Its gradients are its own memory; the optimizer's own state tensors are changed in place.

    Raises:
        ConfigError: the optimizer is no plain Adam over exactly the stage's parameters, or a
            parameter is not contiguous float32 on the host.

    """

    name = "fused"

    def __init__(
        self, stage: OutputGradient, optimizer: Adam, *, max_gradient_norm: float = math.inf
    ) -> None:
        check_optimizer(stage.parameters, optimizer, max_gradient_norm)
        self._stage = stage
        self._optimizer = optimizer
        self._max_norm = max_gradient_norm
        self._tensors = list(stage.parameters.values())
        self._gradients = {tensor: padded(*_shape(tensor)) for tensor in self._tensors}
        self._gradient = tuple(self._gradients.values())
        self._passes: dict[int, MlpPass] = {}
        self._numbers = np.zeros(2, np.float32)
        self._loss, self._norm = torch.from_numpy(self._numbers).unbind()
        self.bind()

    def bind(self) -> None:
        """Take hold of the present parameters and state tensors; create states that are absent."""
        self._passes.clear()
        self._stage.bind()
        state = AdamState(self._optimizer, self._tensors)
        self._parameters = tuple(host_matrix(tensor) for tensor in self._tensors)
        self._averages = tuple(host_matrix(tensor) for tensor in state.averages)
        self._squares = tuple(host_matrix(tensor) for tensor in state.squares)
        self._steps = tuple(host_matrix(tensor) for tensor in state.steps)
        self._settings = (state.beta_1, state.beta_2, state.epsilon, state.weight_decay)

    def update(self, batch: Any, schedule: Schedule) -> Feedback:
        """Run one update; feedback of the stage, with ``loss`` and ``gradient_norm`` (0-dim)."""
        passes = self._pass(len(batch.observation))
        passes.forward(batch.observation.numpy())
        loss, feedback = self._stage.fill(
            passes.outputs, passes.output_gradient, self._gradients, batch, schedule
        )
        passes.backward()
        norm = gradient_norm(self._parameters, self._gradient)
        self._step(norm, schedule["learning_rate"].item())
        self._stage.stepped()
        self._numbers[0], self._numbers[1] = loss, norm
        feedback["loss"], feedback["gradient_norm"] = self._loss, self._norm
        return feedback

    def _pass(self, size: int) -> MlpPass:
        if size not in self._passes:
            stage = self._stage
            self._passes[size] = MlpPass(stage.body, stage.head, size, self._gradients)
        return self._passes[size]

    def _step(self, norm: float, learning_rate: float) -> None:
        adam(
            self._parameters,
            self._averages,
            self._squares,
            self._steps,
            self._gradient,
            1.0 if norm + 1e-6 <= self._max_norm else self._max_norm / (norm + 1e-6),
            learning_rate,
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
