"""The bare matrix products of an update and of an act: the limits that arithmetic sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch

__all__ = ["act_products", "layer_sizes", "update_products"]


def layer_sizes(observations: int, actions: int, hidden: Sequence[int]) -> list[int]:
    """Widths from a layer to the next of V-RACER's network, V and the means as outputs."""
    return [observations, *hidden, 1 + actions]


def act_products(sizes: Sequence[int]) -> Callable[[], None]:
    """Matrix-vector products with preallocated results, nothing else."""
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=(b, a)).astype(np.float32) for a, b in pairwise(sizes)]
    states = [draw.normal(size=size).astype(np.float32) for size in sizes]

    def products() -> None:
        for number, weight in enumerate(weights):
            np.dot(weight, states[number], out=states[number + 1])

    return products


def update_products(sizes: Sequence[int], batch: int) -> Callable[[], None]:
    """Products of forward and backward with preallocated results, nothing else."""
    draw = torch.Generator().manual_seed(0)
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        inputs = torch.randn(batch, fan_in, generator=draw)
        weight = torch.randn(fan_out, fan_in, generator=draw)
        gradient = torch.randn(batch, fan_out, generator=draw)
        outputs = torch.empty_like(gradient), torch.empty_like(weight), torch.empty_like(inputs)
        layers.append((inputs, weight, gradient, outputs))

    def products() -> None:
        with torch.inference_mode():
            for number, (inputs, weight, gradient, outputs) in enumerate(layers):
                torch.mm(inputs, weight.t(), out=outputs[0])
                torch.mm(gradient.t(), inputs, out=outputs[1])
                if number:
                    torch.mm(gradient, weight, out=outputs[2])

    return products
