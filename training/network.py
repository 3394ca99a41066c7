"""Networks: the residual multi-layer perceptron of the paper's experiments, and V-RACER's."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from storage.errors import ConfigError
from training.gaussian import raw_from_stdev, stdev_from_raw

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["INITIAL_STDEV", "Mlp", "VRacerNetwork", "VRacerOutput"]

INITIAL_STDEV = math.sqrt(0.2)
"""V-RACER's standard deviation before learning, in units of the raw action (Sigma = 0.2 I)."""

_OUTPUT_SCALE = 0.1


class Mlp(nn.Module):
    """SoftSign layers; a hidden layer as wide as the one before adds that one's output.

    ``hidden`` are the widths of the hidden layers, at least one. ``residual`` switches the additive
    link between equal widths. Weights and biases start in U[-b, b] with
    b = sqrt(6 / (fan_in + fan_out)), drawn from ``generator`` alone.
    """

    links: tuple[bool, ...]
    """For each layer, whether it adds the output of the hidden layer before."""

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        *,
        residual: bool = True,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = _checked_widths(inputs, hidden)
        self.links = (False, *(residual and a == b for a, b in pairwise(widths[1:])))
        self.layers = nn.ModuleList(
            _hidden_layer(fan_in, fan_out, generator) for fan_in, fan_out in pairwise(widths)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (batch, inputs) to (batch, last hidden width)."""
        hidden = inputs
        for layer, linked in zip(self.layers, self.links, strict=True):
            activated = functional.softsign(layer(hidden))
            hidden = activated + hidden if linked else activated
        return hidden


class VRacerOutput(NamedTuple):
    """What V-RACER's network says about a batch of states."""

    value: Tensor
    """V(s), shape (batch,)."""
    mean: Tensor
    """Mean of the raw action, shape (batch, action)."""
    stdev: Tensor
    """Standard deviation, shape (action,), or (batch, action) where it depends on the state."""


class VRacerNetwork(nn.Module):
    """State value and Gaussian policy of V-RACER in one network.

    Inputs are standardised observations, float32, shape (batch, observation_size). The standard
    deviation is one free vector shared by all states, as in the authors' code; with
    ``state_dependent_stdev`` it is an output of the network, as in the paper's text.

    Raises:
        ConfigError: a size is below one, or ``initial_stdev`` is not positive.

    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        hidden: Sequence[int] = (128, 128),
        residual: bool = True,
        state_dependent_stdev: bool = False,
        initial_stdev: float = INITIAL_STDEV,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if action_size < 1:
            raise ConfigError(f"a policy needs at least one action dimension, not {action_size}")
        if not initial_stdev > 0:
            raise ConfigError(f"initial_stdev = {initial_stdev} must be positive")
        self.observation_size = observation_size
        self.action_size = action_size
        self.state_dependent_stdev = state_dependent_stdev
        self.body = Mlp(observation_size, hidden, residual=residual, generator=generator)
        outputs = 1 + action_size * (2 if state_dependent_stdev else 1)
        self.head = _output_layer(hidden[-1], outputs, generator)
        self._start_stdev(raw_from_stdev(initial_stdev))

    def forward(self, observation: Tensor) -> VRacerOutput:
        """Value, mean and standard deviation at (batch, observation_size)."""
        outputs = self.head(self.body(observation))
        last = 1 + self.action_size
        raw = outputs[:, last:] if self.state_dependent_stdev else self.raw_stdev
        return VRacerOutput(outputs[:, 0], outputs[:, 1:last], stdev_from_raw(raw))

    def _start_stdev(self, raw: float) -> None:
        if self.state_dependent_stdev:
            with torch.no_grad():
                self.head.bias[1 + self.action_size :] = raw
        else:
            self.raw_stdev = nn.Parameter(torch.full((self.action_size,), raw))


def _checked_widths(inputs: int, hidden: Sequence[int]) -> list[int]:
    widths = [inputs, *hidden]
    if len(widths) < 2 or min(widths) < 1:
        raise ConfigError(
            f"a network needs at least one hidden layer and positive sizes; got {inputs} inputs "
            f"and hidden = {list(hidden)}"
        )
    return widths


def _hidden_layer(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Linear:
    layer = _empty_linear(fan_in, fan_out)
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def _output_layer(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Linear:
    layer = _empty_linear(fan_in, fan_out)
    bound = _OUTPUT_SCALE / math.sqrt(fan_in)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer


def _empty_linear(fan_in: int, fan_out: int) -> nn.Linear:
    """Build a linear layer without the initialisation that would draw from the global generator."""
    layer: nn.Linear = skip_init(nn.Linear, fan_in, fan_out)  # type: ignore[no-untyped-call]
    return layer
