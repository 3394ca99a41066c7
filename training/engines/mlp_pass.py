"""Forward and backward passes of networks by hand, on memory that is allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from storage.errors import ConfigError
from training.acting.activation_kernels import ACTIVATION_CODES, RELU, SOFTSIGN
from training.engines.matrix_kernels import padded
from training.engines.mlp_kernels import (
    BLOCK,
    backward,
    copy_rows,
    forward,
    input_gradients,
    pack,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from storage.kernel import Floats32
    from training.network import Mlp

__all__ = ["ForwardPass", "InputPass", "MlpPass", "has_passes"]


def has_passes(body: Mlp) -> bool:
    """Whether there are passes by hand for such hidden layers."""
    return ACTIVATION_CODES[body.activation] in (SOFTSIGN, RELU)


class ForwardPass:
    """One network's forward pass over batches of one size: layers of an `Mlp` and a linear head.

    Weights are read at each pass, so that changes in place are seen.

    Raises:
        ConfigError: hidden layers that are neither SoftSign's nor ReLU's.

    """

    def __init__(self, body: Mlp, head: nn.Linear, batch: int) -> None:
        if not has_passes(body):
            raise ConfigError(
                f"layers of {body.activation} have no passes by hand; choose engine: auto"
            )
        layers = _layers(body, head)
        self._weights = tuple(layer.weight.detach().numpy() for layer in layers)
        self._biases = tuple(layer.bias.detach().numpy()[None] for layer in layers)
        self._links = np.array(body.links, np.uint8)
        self._activation = ACTIVATION_CODES[body.activation]
        widths = [len(weight) for weight in self._weights]
        self._sizes = np.array([self._weights[0].shape[1], *widths], np.int64)
        self._straight = tuple(padded(*weight.shape) for weight in self._weights)
        self._across = tuple(padded(*weight.shape[::-1]) for weight in self._weights)
        self._shape = batch, int(self._sizes[0])
        self._inputs = padded(*self._shape)
        self._hidden = tuple(padded(batch, width) for width in widths[:-1])
        self._outputs = padded(batch, widths[-1])
        self.outputs: Floats32 = self._outputs[:batch]
        """Of the last forward pass: (B, K), then columns of padding."""

    def forward(self, *inputs: Floats32) -> None:
        """Run the network on ``inputs``, (B, O), or on several whose columns stand side by side.

        Raises:
            ConfigError: inputs of another shape.

        """
        self._take(inputs)
        pack(self._weights, self._straight, self._across)
        forward(
            self._inputs,
            self._across,
            self._biases,
            self._sizes,
            self._links,
            self._activation,
            self._hidden,
            self._outputs,
        )

    def _take(self, inputs: tuple[Floats32, ...]) -> None:
        rows, columns = self._shape
        shapes = [each.shape for each in inputs]
        if any(shape[0] != rows for shape in shapes) or sum(each[1] for each in shapes) != columns:
            given = " and ".join(map(str, shapes))
            raise ConfigError(f"inputs of shape {given} for a network and batch of {self._shape}")
        column = 0
        for each in inputs:
            copy_rows(each, self._inputs, column)
            column += each.shape[1]


class _BackwardPass(ForwardPass):
    """What passes backward have in common: the outputs' gradient, and room for a block."""

    def __init__(self, body: Mlp, head: nn.Linear, batch: int) -> None:
        super().__init__(body, head, batch)
        widest = int(self._sizes[1:].max())
        self._scratch = padded(BLOCK, widest), padded(BLOCK, widest)
        self._output_gradient = padded(batch, head.out_features)
        self.output_gradient: Floats32 = self._output_gradient[:batch]
        """(B, K), to be filled before the backward pass; the padding after it must stay zero."""


class MlpPass(_BackwardPass):
    """One network's passes forward and backward over batches of one size.

    `outputs` is written by `forward`; the caller fills `output_gradient`, the gradient of the loss
    with respect to the outputs, and calls `backward`, which writes the gradients of all weights and
    biases into ``gradients`` (by parameter, each `padded`).

    Raises:
        ConfigError: hidden layers that are neither SoftSign's nor ReLU's.

    """

    def __init__(
        self, body: Mlp, head: nn.Linear, batch: int, gradients: dict[Tensor, Floats32]
    ) -> None:
        super().__init__(body, head, batch)
        layers = _layers(body, head)
        self._weight_gradients = tuple(gradients[layer.weight] for layer in layers)
        self._bias_gradients = tuple(gradients[layer.bias] for layer in layers)

    def backward(self) -> None:
        """Gradients of every weight and bias from `output_gradient`."""
        backward(
            self._inputs,
            self._straight,
            self._sizes,
            self._links,
            self._activation,
            self._hidden,
            self._output_gradient,
            self._scratch,
            self._weight_gradients,
            self._bias_gradients,
        )


class InputPass(_BackwardPass):
    """One network's passes forward, and backward to its inputs, over batches of one size.

    `outputs` is written by `forward`; the caller fills `output_gradient` and calls `backward`,
    which writes `input_gradient` and leaves the weights out.

    Raises:
        ConfigError: hidden layers that are neither SoftSign's nor ReLU's.

    """

    def __init__(self, body: Mlp, head: nn.Linear, batch: int) -> None:
        super().__init__(body, head, batch)
        self._input_gradient = padded(*self._shape)
        self.input_gradient: Floats32 = self._input_gradient[:batch]
        """Of the last backward pass: (B, O), then columns of padding."""

    def backward(self) -> None:
        """Gradient of the inputs from `output_gradient`."""
        input_gradients(
            self._straight,
            self._sizes,
            self._links,
            self._activation,
            self._hidden,
            self._output_gradient,
            self._scratch,
            self._input_gradient,
        )


def _layers(body: Mlp, head: nn.Linear) -> list[nn.Linear]:
    return [cast("nn.Linear", layer) for layer in (*body.layers, head)]
