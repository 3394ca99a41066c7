"""Forward and backward pass of a SoftSign network by hand, on memory that is allocated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from training.mlp_kernels import activate, activation_gradient, column_sums

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
    """

    def __init__(
        self, body: Mlp, head: nn.Linear, batch: int, gradients: dict[Tensor, Tensor]
    ) -> None:
        layers = [cast("nn.Linear", layer) for layer in body.layers]
        self._weights = [layer.weight.detach() for layer in layers]
        self._transposed = [weight.t() for weight in self._weights]
        self._biases = [layer.bias.detach().numpy() for layer in layers]
        self._links = body.links
        self._head = head.weight.detach()
        self._head_transposed = self._head.t()
        self._head_bias = head.bias.detach()
        self._weight_gradients = [gradients[layer.weight] for layer in layers]
        self._bias_gradients = [gradients[layer.bias].numpy() for layer in layers]
        self._head_gradient = gradients[head.weight]
        self._head_bias_gradient = gradients[head.bias].numpy()
        self._allocate(batch)

    def _allocate(self, batch: int) -> None:
        widths = [len(weight) for weight in self._weights]
        self._sums = [torch.empty(batch, width) for width in widths]
        self._hidden = [torch.empty(batch, width) for width in widths]
        self._slopes = [np.empty((batch, width), np.float32) for width in widths]
        self._upstream = [torch.empty(batch, width) for width in widths]
        self._inner = [torch.empty(batch, width) for width in widths]
        outputs = torch.empty(batch, len(self._head))
        gradient = torch.empty(batch, len(self._head))
        self._outputs, self._output_gradient = outputs, gradient
        self.outputs: Floats32 = outputs.numpy()
        """(B, K), of the last forward pass."""
        self.output_gradient: Floats32 = gradient.numpy()
        """(B, K), to be filled before the backward pass."""

    def forward(self, inputs: Tensor) -> None:
        """Run the network on ``inputs`` float32 (B, O), which must stay until `backward`."""
        self._inputs = inputs
        before = inputs
        for k, weight in enumerate(self._transposed):
            sums, hidden, linked = self._sums[k], self._hidden[k], self._links[k]
            torch.mm(before, weight, out=sums)
            link = before if linked else hidden
            activate(
                sums.numpy(),
                self._biases[k],
                linked,
                link.numpy(),
                hidden.numpy(),
                self._slopes[k],
            )
            before = hidden
        torch.addmm(self._head_bias, before, self._head_transposed, out=self._outputs)

    def backward(self) -> None:
        """Gradients of every weight and bias from `output_gradient`."""
        gradient, last = self._output_gradient, len(self._weights) - 1
        torch.mm(gradient.t(), self._hidden[last], out=self._head_gradient)
        column_sums(self.output_gradient, self._head_bias_gradient)
        torch.mm(gradient, self._head, out=self._upstream[last])
        for k in range(last, -1, -1):
            inner = self._inner[k]
            activation_gradient(
                self._upstream[k].numpy(), self._slopes[k], inner.numpy(), self._bias_gradients[k]
            )
            inputs = self._hidden[k - 1] if k else self._inputs
            torch.mm(inner.t(), inputs, out=self._weight_gradients[k])
            if k:
                self._hand_down(k)

    def _hand_down(self, k: int) -> None:
        """Gradient at the hidden layer below, through the weights and through the link."""
        below, inner = self._upstream[k - 1], self._inner[k]
        if self._links[k]:
            torch.addmm(self._upstream[k], inner, self._weights[k], out=below)
        else:
            torch.mm(inner, self._weights[k], out=below)
