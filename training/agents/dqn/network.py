"""DQN's network: values of all actions from numbers or from frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from training.network import ACTIVATIONS, Mlp, output_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from training.agents.dqn.frames import FrameShape
    from training.network import Activation

__all__ = ["Convolutions", "QNetwork"]

_LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of each convolution (Mnih et al. 2015)."""


class Convolutions(nn.Module):
    """Three convolutions over uint8 frames, which are divided by 255.

    Takes frames as the environment shows them, (batch, channels, height, width) or with the
    channels last, and gives (batch, size): the last layer's pixels, the channels of each together.
    With "same" padding an output is ceil(input / stride) wide, and an odd row or column of padding
    stands behind, as in TensorFlow. Weights lie with their channels last in memory, which is
    quickest on a CPU.
    """

    size: int
    """Numbers in an output."""

    def __init__(
        self, shape: FrameShape, *, padding: str, activation: Activation, generator: torch.Generator
    ) -> None:
        super().__init__()
        self._channels_first = shape.channels_first
        self._activate = ACTIVATIONS[activation]
        self._behind: list[tuple[int, int, int, int]] = []  # padding that only one side has
        self.layers = nn.ModuleList()
        channels, height, width = shape.channels, shape.height, shape.width
        for outputs, kernel, stride in _LAYERS:
            rows = _padding(height, kernel, stride) if padding == "same" else (0, 0)
            columns = _padding(width, kernel, stride) if padding == "same" else (0, 0)
            layer = _empty_convolution(channels, outputs, kernel, stride, (rows[0], columns[0]))
            _initialise(layer, generator)
            self.layers.append(layer)
            self._behind.append((0, columns[1] - columns[0], 0, rows[1] - rows[0]))
            height = (height + sum(rows) - kernel) // stride + 1
            width = (width + sum(columns) - kernel) // stride + 1
            channels = outputs
        self.size = channels * height * width
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Tensor) -> Tensor:
        """Maps frames, uint8, to (batch, size), float32."""
        pixels = frames if self._channels_first else frames.permute(0, 3, 1, 2)
        hidden = pixels.to(torch.float32, memory_format=torch.channels_last) * (1.0 / 255.0)
        for layer, behind in zip(self.layers, self._behind, strict=True):
            padded = functional.pad(hidden, behind) if any(behind) else hidden
            hidden = self._activate(layer(padded))
        return hidden.permute(0, 2, 3, 1).flatten(1)


class QNetwork(nn.Module):
    """Q(s, a) of every action: (batch, inputs) float32, or frames uint8, to (batch, actions).

    A dueling network's last hidden layer is twice as wide: its first half serves V, the other half
    the advantages (Wang et al. 2016, eq. 9).

    Args:
        inputs: Numbers in an observation, or sizes of frames.
        actions: Number of actions.
        hidden: Sizes of the hidden layers, at least one.
        padding: Of the convolutions, "same" or "valid".
        activation: What hidden layers apply to their sums.
        dueling: Values of actions as V + A - mean A.
        generator: What weights are drawn from; all within 1 / sqrt(inputs of the layer).

    Raises:
        ConfigError: a size is below one.
    """

    def __init__(
        self,
        inputs: int | FrameShape,
        actions: int,
        *,
        hidden: Sequence[int],
        padding: str = "same",
        activation: Activation = "relu",
        dueling: bool = False,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.actions = actions
        self.dueling = dueling
        self.convolutions: Convolutions | None = None
        if isinstance(inputs, int):
            size = inputs
        else:
            self.convolutions = Convolutions(
                inputs, padding=padding, activation=activation, generator=generator
            )
            size = self.convolutions.size
        widths = [*hidden[:-1], hidden[-1] * (2 if dueling else 1)]
        self.body = Mlp(
            size,
            widths,
            residual=False,
            activation=activation,
            initialisation="fan_in",
            generator=generator,
        )
        bound = 1.0 / math.sqrt(hidden[-1])
        self.value = output_layer(hidden[-1], 1, generator, bound=bound) if dueling else None
        self.head = output_layer(hidden[-1], actions, generator, bound=bound)

    def forward(self, observation: Tensor) -> Tensor:
        """Values of all actions, (batch, actions)."""
        features = observation if self.convolutions is None else self.convolutions(observation)
        hidden = self.body(features)
        if self.value is None:
            values: Tensor = self.head(hidden)
            return values
        half = self.head.in_features
        advantage: Tensor = self.head(hidden[:, half:])
        value: Tensor = self.value(hidden[:, :half])
        return value + advantage - advantage.mean(1, keepdim=True)


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and behind that makes an output of ceil(size / stride)."""
    whole = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return whole // 2, whole - whole // 2


def _empty_convolution(
    inputs: int, outputs: int, kernel: int, stride: int, padding: tuple[int, int]
) -> nn.Conv2d:
    """A convolution without the initialisation that would draw from the global generator."""
    layer: nn.Conv2d = skip_init(  # type: ignore[no-untyped-call]
        nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=padding
    )
    return layer


def _initialise(layer: nn.Conv2d, generator: torch.Generator) -> None:
    """Draws weights and biases from U[-b, b], b = 1 / sqrt(inputs of a pixel)."""
    bound = 1.0 / math.sqrt(layer.weight[0].numel())
    with torch.no_grad():
        for tensor in layer.parameters():
            tensor.uniform_(-bound, bound, generator=generator)
