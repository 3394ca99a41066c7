"""Values of actions at raw observations, one at a time: how DQN's network acts.

How many observations are evaluated together changes no bit of any of them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch

from storage.kernel import Bytes, Floats, Floats32, kernel
from training.acting.activation_kernels import ACTIVATION_CODES
from training.acting.actor_kernels import forward_row
from training.device import HOST, arrays_of
from training.scaling import flat_rows

if TYPE_CHECKING:
    from torch import nn

    from training.agents.dqn.network import QNetwork
    from training.scaling import ObservationScaling

__all__ = ["FrameActor", "QActor", "RowActor"]


class QActor(Protocol):
    """What a `DiscretePolicy` acts with.

    Contract. `bind` takes hold of the network's present weights; in-place changes on the host are
    seen without it, weights on a device stay as they were then until the next one. Not for use from
    several threads at once.
    """

    def bind(self) -> None:
        """Take hold of the present weights."""
        ...

    def values(self, observations: Any) -> Floats32:
        """Q(s, .) of raw observations in a batch's layout, float32 (k, n); valid until the next."""
        ...


class RowActor:
    """Q by a kernel that reads the torch weights in place (a `QActor`), for networks of numbers."""

    def __init__(self, network: QNetwork, scaling: ObservationScaling) -> None:
        self._network = network
        self._statistics = scaling.statistics.numpy()
        self.bind()

    def bind(self) -> None:
        """Take hold of the present weights."""
        network = self._network
        layers = [*network.body.layers, network.head]
        layers += [] if network.value is None else [network.value]
        parameters = [part for layer in cast("list[nn.Linear]", layers) for part in _parts(layer)]
        arrays = cast("list[Floats32]", arrays_of(parameters))
        weights, biases = arrays[0::2], arrays[1::2]
        self._links = np.zeros(len(network.body.layers) + 1, np.uint8)
        self._activation = ACTIVATION_CODES[network.body.activation]
        width = max(max(array.shape) for array in arrays)
        self._scratch = np.zeros((3, width), np.float32)
        count = len(network.body.layers)
        half = network.head.in_features
        self._streams = [(tuple(weights), tuple(biases))]
        if network.dueling:
            self._streams = [
                _stream(weights, biases, count, slice(half, None), count),
                _stream(weights, biases, count, slice(half), count + 1),
            ]

    def values(self, observations: Any) -> Floats32:
        """Q(s, .) of raw observations, (k, n)."""
        rows = flat_rows(observations)
        values = np.empty((len(rows), self._network.actions), np.float32)
        self._fill(0, rows, values)
        if self._network.dueling:
            value = np.empty((len(rows), 1), np.float32)
            self._fill(1, rows, value)
            values += value - values.mean(1, keepdims=True)
        return values

    def _fill(self, stream: int, rows: Floats, outputs: Floats32) -> None:
        """Outputs of one stream of layers for each row."""
        _fill_outputs(
            *self._streams[stream],
            self._links,
            self._activation,
            self._statistics,
            rows,
            self._scratch,
            outputs,
        )


class FrameActor:
    """Q by torch's convolutions (a `QActor`), for networks of frames."""

    def __init__(self, network: QNetwork) -> None:
        self._network = network
        self._host = network
        self.bind()

    def bind(self) -> None:
        """Take hold of the present weights."""
        device = next(self._network.parameters()).device
        if device.type == HOST.type:
            self._host = self._network
            return
        if self._host is self._network:
            self._host = copy.deepcopy(self._network).to(HOST)
        self._host.load_state_dict(self._network.state_dict())

    def values(self, observations: Any) -> Floats32:
        """Q(s, .) of frames as the environment shows them, (k, n)."""
        frames = torch.from_numpy(np.require(observations, requirements="W"))
        with torch.inference_mode():
            rows = [self._host(frames[i : i + 1]) for i in range(len(frames))]
            whole: Floats32 = torch.cat(rows).numpy()
        return whole


@kernel
def _fill_outputs(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    activation: int,
    scaling: Floats,
    observations: Floats,
    scratch: Floats32,
    outputs: Floats32,
) -> None:
    """Fill the head's outputs of each row, (k, outputs)."""
    for i in range(observations.shape[0]):
        head = forward_row(weights, biases, links, activation, scaling, observations[i], scratch)
        for j in range(outputs.shape[1]):
            outputs[i, j] = head[j]


def _parts(layer: nn.Linear) -> tuple[torch.Tensor, torch.Tensor]:
    return layer.weight, layer.bias


def _stream(
    weights: list[Floats32], biases: list[Floats32], hidden: int, half: slice, head: int
) -> tuple[tuple[Floats32, ...], tuple[Floats32, ...]]:
    """Layers of one stream of a dueling network: a half of the last hidden one, and a head."""
    before = slice(hidden - 1)
    return (
        (*weights[before], weights[hidden - 1][half], weights[head]),
        (*biases[before], biases[hidden - 1][half], biases[head]),
    )
