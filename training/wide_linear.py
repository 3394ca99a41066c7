"""Linear layers so wide that their products are most of an update, by oneDNN on the CPU.

torch gives matrix products to MKL, which runs at half of the rate on processors of other makers;
its convolutions go to oneDNN, which has no such preference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WIDE", "WideLinear"]

WIDE = 1 << 20
"""Weights from which a layer is wide: below, a call costs what the product saves."""


def _linear() -> Callable[..., Tensor] | None:
    """The linear layer of oneDNN, the one that compiled graphs call; None where torch has none."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    found: Callable[..., Tensor] | None = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return found


_ONEDNN = _linear()


@torch.library.custom_op("sharpwave::product", mutates_args=())
def _product(left: Tensor, right: Tensor) -> Tensor:
    """Left @ right^T of (M, K) and (N, K), float32 on the host."""
    if _ONEDNN is None:
        return left @ right.T
    return _ONEDNN(left, right, None, "none", [], "")


@_product.register_fake
def _(left: Tensor, right: Tensor) -> Tensor:
    return left.new_empty(left.shape[0], right.shape[0])


class _Product(torch.autograd.Function):
    """The product with its gradients, in the form that torch.func and torch.compile take."""

    @staticmethod
    def forward(left: Tensor, right: Tensor) -> Tensor:
        found: Tensor = _product(left, right)
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        left, right = ctx.saved_tensors
        by_left, by_right = ctx.needs_input_grad
        return (
            _product(gradient, right.T) if by_left else None,
            _product(gradient.T, left.T) if by_right else None,
        )


class WideLinear(nn.Linear):
    """A linear layer with oneDNN's products where its numbers are float32 on the host."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (batch, inputs) to (batch, outputs)."""
        weight = self.weight
        if weight.device.type != "cpu" or weight.dtype != torch.float32:
            return functional.linear(inputs, weight, self.bias)
        # A view, because torch.compile loses the gradient of a parameter that is passed as it is.
        product: Tensor = _Product.apply(inputs, weight.view_as(weight))  # type: ignore[no-untyped-call]
        return product + self.bias
