"""Multi-layer perceptrons, and the layers that every network is made of."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from storage.errors import ConfigError
from training.wide_linear import WIDE, WideLinear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ACTIVATIONS", "Activation", "Initialisation", "Mlp", "output_layer"]

Activation = Literal["softsign", "relu", "tanh"]
Initialisation = Literal["glorot", "fan_in"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "softsign": functional.softsign,
    "relu": functional.relu,
    "tanh": torch.tanh,
}
"""What hidden layers apply to their sums, by name."""

_OUTPUT_SCALE = 0.1


class Mlp(nn.Module):
    """Hidden layers; one as wide as the one before adds that one's output where linked.

    ``hidden`` are the widths of the hidden layers, at least one. ``residual`` switches the additive
    link between equal widths. Weights and biases start in U[-b, b], drawn from ``generator`` alone,
    with b = sqrt(6 / (fan_in + fan_out)) for "glorot" and 1 / sqrt(fan_in) for "fan_in".
    """

    links: tuple[bool, ...]
    """For each layer, whether it adds the output of the hidden layer before."""

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        *,
        residual: bool = True,
        activation: Activation = "softsign",
        initialisation: Initialisation = "glorot",
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = _checked_widths(inputs, hidden)
        self.activation = activation
        self._activate = ACTIVATIONS[activation]
        self.links = (False, *(residual and a == b for a, b in pairwise(widths[1:])))
        self.layers = nn.ModuleList(
            _hidden_layer(fan_in, fan_out, initialisation, generator)
            for fan_in, fan_out in pairwise(widths)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (batch, inputs) to (batch, last hidden width)."""
        hidden = inputs
        for layer, linked in zip(self.layers, self.links, strict=True):
            activated = self._activate(layer(hidden))
            hidden = activated + hidden if linked else activated
        return hidden


def output_layer(
    fan_in: int, fan_out: int, generator: torch.Generator, *, bound: float | None = None
) -> nn.Linear:
    """Linear layer with weights in U[-bound, bound], by default 0.1 / sqrt(fan_in), and biases 0.

    Biases begin within the same bound where one is given, as in the paper of DDPG.
    """
    layer = _empty_linear(fan_in, fan_out)
    limit = _OUTPUT_SCALE / math.sqrt(fan_in) if bound is None else bound
    with torch.no_grad():
        layer.weight.uniform_(-limit, limit, generator=generator)
        if bound is None:
            layer.bias.zero_()
        else:
            layer.bias.uniform_(-limit, limit, generator=generator)
    return layer


def _checked_widths(inputs: int, hidden: Sequence[int]) -> list[int]:
    widths = [inputs, *hidden]
    if len(widths) < 2 or min(widths) < 1:
        raise ConfigError(
            f"a network needs at least one hidden layer and positive sizes; got {inputs} inputs "
            f"and hidden = {list(hidden)}"
        )
    return widths


def _hidden_layer(
    fan_in: int, fan_out: int, initialisation: Initialisation, generator: torch.Generator
) -> nn.Linear:
    layer = _empty_linear(fan_in, fan_out)
    square = 6.0 / (fan_in + fan_out) if initialisation == "glorot" else 1.0 / fan_in
    bound = math.sqrt(square)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def _empty_linear(fan_in: int, fan_out: int) -> nn.Linear:
    """Build a linear layer without the initialisation that would draw from the global generator."""
    kind = WideLinear if fan_in * fan_out >= WIDE else nn.Linear
    layer: nn.Linear = skip_init(kind, fan_in, fan_out)  # type: ignore[no-untyped-call]
    return layer
