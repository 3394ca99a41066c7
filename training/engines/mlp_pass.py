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

__all__ = ["ForwardPass", "MlpPass"]


class ForwardPass:
    """One network's forward pass over batches of one size: layers of an `Mlp` and a linear head.

    Weights are read at each pass, so that changes in place are seen.

    Raises:
        ConfigError: hidden layers that are not SoftSign.

    """

    def __init__(self, body: Mlp, head: nn.Linear, batch: int) -> None:
        if body.activation != "softsign":
            raise ConfigError(
                f"layers of {body.activation} have no passes by hand; choose engine: auto"
            )
        layers = _layers(body, head)
        self._weights = tuple(layer.weight.detach().numpy() for layer in layers)
        self._biases = tuple(layer.bias.detach().numpy()[None] for layer in layers)
        self._links = np.array(body.links, np.uint8)
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


class MlpPass(ForwardPass):
    """One network's passes forward and backward over batches of one size.

    `outputs` is written by `forward`; the caller fills `output_gradient`, the gradient of the loss
    with respect to the outputs, and calls `backward`, which writes the gradients of all weights and
    biases into ``gradients`` (by parameter, each `padded`).

    Raises:
        ConfigError: hidden layers that are not SoftSign.

    """

    def __init__(
        self, body: Mlp, head: nn.Linear, batch: int, gradients: dict[Tensor, Floats32]
    ) -> None:
        super().__init__(body, head, batch)
        layers = _layers(body, head)
        self._weight_gradients = tuple(gradients[layer.weight] for layer in layers)
        self._bias_gradients = tuple(gradients[layer.bias] for layer in layers)
        widest = int(self._sizes[1:].max())
        self._scratch = padded(BLOCK, widest), padded(BLOCK, widest)
        self._output_gradient = padded(batch, head.out_features)
        self.output_gradient: Floats32 = self._output_gradient[:batch]
        """(B, K), to be filled before the backward pass; the padding after it must stay zero."""

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


def _layers(body: Mlp, head: nn.Linear) -> list[nn.Linear]:
    return [cast("nn.Linear", layer) for layer in (*body.layers, head)]
