"""Forward and backward pass of a SoftSign network by hand, on memory that is allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from training.mlp_kernels import (
    activate,
    add,
    add_row,
    column_sums,
    gradient_in_place,
    linked_gradient,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from storage.kernel import Floats32
    from training.network import Mlp

__all__ = ["MlpPass"]


class MlpPass:
    """One network's passes over batches of one size: hidden layers of `Mlp` and a linear head.

    `outputs` (B, K) is written by `forward`; the caller fills `output_gradient` (B, K), the
    gradient of the loss with respect to the outputs, and calls `backward`, which writes the
    gradients of all weights and biases into views of ``gradients`` (by parameter). Weights are read
    in place, so that a step in place is seen by the next pass.

    Matrix products are NumPy's: its BLAS is three times as quick as torch's on AMD processors where
    one side is narrow, as heads and inputs of control tasks are.
    """

    def __init__(
        self, body: Mlp, head: nn.Linear, batch: int, gradients: dict[Tensor, Tensor]
    ) -> None:
        layers = [cast("nn.Linear", layer) for layer in body.layers]
        self._weights = [_array(layer.weight) for layer in layers]
        self._biases = [_array(layer.bias) for layer in layers]
        self._links = body.links
        self._head, self._head_bias = _array(head.weight), _array(head.bias)
        self._weight_gradients = [_array(gradients[layer.weight]) for layer in layers]
        self._bias_gradients = [_array(gradients[layer.bias]) for layer in layers]
        self._head_gradient = _array(gradients[head.weight])
        self._head_bias_gradient = _array(gradients[head.bias])
        self._allocate(batch)

    def _allocate(self, batch: int) -> None:
        widths = [len(weight) for weight in self._weights]
        self._hidden = [np.zeros((batch, width), np.float32) for width in widths]
        # Few buffers, used in turn, because all of a pass should stay in the processor's cache.
        even, odd, scaled = (np.zeros(batch * max(widths), np.float32) for _ in range(3))
        self._upstream, self._inner = [], []
        for k, width in enumerate(widths):
            upstream = (odd if k % 2 else even)[: batch * width].reshape(batch, width)
            inner = scaled[: batch * width].reshape(batch, width)
            self._upstream.append(upstream)
            self._inner.append(inner if self._links[k] else upstream)
        self._head_transposed = np.empty(self._head.shape[::-1], np.float32)
        self.outputs: Floats32 = np.zeros((batch, len(self._head)), np.float32)
        """(B, K), of the last forward pass."""
        self.output_gradient: Floats32 = np.zeros_like(self.outputs)
        """(B, K), to be filled before the backward pass."""

    def forward(self, inputs: Floats32) -> None:
        """Run the network on ``inputs`` (B, O), which must stay until `backward`."""
        self._inputs = before = inputs
        for k, weight in enumerate(self._weights):
            hidden = self._hidden[k]
            np.dot(before, weight.T, out=hidden)
            activate(hidden, self._biases[k])
            if self._links[k]:
                add(hidden, before)
            before = hidden
        np.copyto(self._head_transposed, self._head.T)
        np.dot(before, self._head_transposed, out=self.outputs)
        add_row(self.outputs, self._head_bias)

    def backward(self) -> None:
        """Gradients of every weight and bias from `output_gradient`."""
        gradient, last = self.output_gradient, len(self._weights) - 1
        np.dot(gradient.T, self._hidden[last], out=self._head_gradient)
        column_sums(gradient, self._head_bias_gradient)
        np.dot(gradient, self._head, out=self._upstream[last])
        for k in range(last, -1, -1):
            self._through_activation(k)
            inner = self._inner[k]
            np.dot(inner.T, self._before(k), out=self._weight_gradients[k])
            if k:
                np.dot(inner, self._weights[k], out=self._upstream[k - 1])
                if self._links[k]:
                    add(self._upstream[k - 1], self._upstream[k])

    def _through_activation(self, k: int) -> None:
        upstream, hidden, sums = self._upstream[k], self._hidden[k], self._bias_gradients[k]
        if self._links[k]:
            linked_gradient(upstream, hidden, self._hidden[k - 1], self._inner[k], sums)
        else:
            gradient_in_place(upstream, hidden, sums)

    def _before(self, k: int) -> Floats32:
        return self._hidden[k - 1] if k else self._inputs


def _array(tensor: Tensor) -> Floats32:
    """A tensor's memory as NumPy sees it."""
    array: Floats32 = tensor.detach().numpy()
    return array
