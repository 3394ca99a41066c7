"""Forward and backward pass of a SoftSign network by hand, on memory that is allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from storage.errors import ConfigError
from training.engines.matrix_kernels import padded
from training.engines.mlp_kernels import BLOCK, backward, copy_rows, forward, pack

if TYPE_CHECKING:
    from torch import Tensor, nn

    from storage.kernel import Floats32
    from training.network import Mlp

__all__ = ["MlpPass"]


class MlpPass:
    """One network's passes over batches of one size: hidden layers of `Mlp` and a linear head.

    `outputs` is written by `forward`; the caller fills `output_gradient`, the gradient of the loss
    with respect to the outputs, and calls `backward`, which writes the gradients of all weights and
    biases into ``gradients`` (by parameter, each `padded`). Weights are read at each forward pass.
    """

    def __init__(
        self, body: Mlp, head: nn.Linear, batch: int, gradients: dict[Tensor, Floats32]
    ) -> None:
        layers = [cast("nn.Linear", layer) for layer in (*body.layers, head)]
        self._weights = tuple(layer.weight.detach().numpy() for layer in layers)
        self._biases = tuple(layer.bias.detach().numpy()[None] for layer in layers)
        self._weight_gradients = tuple(gradients[layer.weight] for layer in layers)
        self._bias_gradients = tuple(gradients[layer.bias] for layer in layers)
        self._links = np.array(body.links, np.uint8)
        widths = [len(weight) for weight in self._weights]
        self._sizes = np.array([self._weights[0].shape[1], *widths], np.int64)
        self._straight = tuple(padded(*weight.shape) for weight in self._weights)
        self._across = tuple(padded(*weight.shape[::-1]) for weight in self._weights)
        self._shape = batch, int(self._sizes[0])
        self._inputs = padded(*self._shape)
        self._hidden = tuple(padded(batch, width) for width in widths[:-1])
        self._scratch = padded(BLOCK, max(widths)), padded(BLOCK, max(widths))
        self._outputs, self._output_gradient = padded(batch, widths[-1]), padded(batch, widths[-1])
        self.outputs: Floats32 = self._outputs[:batch]
        """Of the last forward pass: (B, K), then columns of padding."""
        self.output_gradient: Floats32 = self._output_gradient[:batch]
        """(B, K), to be filled before the backward pass; the padding after it must stay zero."""

    def forward(self, inputs: Floats32) -> None:
        """Run the network on ``inputs`` (B, O).

        Raises:
            ConfigError: inputs of another shape.

        """
        if inputs.shape != self._shape:
            raise ConfigError(
                f"inputs of shape {inputs.shape} for a network and batch of {self._shape}"
            )
        copy_rows(inputs, self._inputs)
        pack(self._weights, self._straight, self._across)
        forward(
            self._inputs,
            self._across,
            self._biases,
            self._sizes,
            self._links,
            self._hidden,
            self._outputs,
        )

    def backward(self) -> None:
        """Gradients of every weight and bias from `output_gradient`."""
        backward(
            self._inputs,
            self._straight,
            self._sizes,
            self._links,
            self._hidden,
            self._output_gradient,
            self._scratch,
            self._weight_gradients,
            self._bias_gradients,
        )
