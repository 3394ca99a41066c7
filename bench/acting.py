"""Acting: microseconds one observation takes, from raw observation to raw action, μ and V."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from bench.cheetah import ACTIONS, HIDDEN, OBSERVATIONS
from bench.figure import Figure
from bench.timing import median_microseconds
from training.actor import GaussianActor
from training.network import VRacerNetwork
from training.scaling import ObservationScaling

__all__ = ["matrix_products", "measure"]


def measure(folder: Path) -> list[Figure]:
    generator = torch.Generator().manual_seed(0)
    network = VRacerNetwork(OBSERVATIONS, ACTIONS, hidden=(HIDDEN, HIDDEN), generator=generator)
    actor = GaussianActor(network, ObservationScaling(OBSERVATIONS), seed=0)
    observation = np.random.default_rng(0).normal(size=OBSERVATIONS)
    value = median_microseconds(lambda: actor.act(0, 7, observation), repeats=1000, inner=10)
    details = {"hidden": [HIDDEN, HIDDEN]}
    return [Figure("act", "µs", value, matrix_products(), "bare matrix products", details)]


def matrix_products() -> float:
    """Three matrix-vector products with preallocated results, nothing else."""
    draw = np.random.default_rng(0)
    sizes = [OBSERVATIONS, HIDDEN, HIDDEN, 1 + ACTIONS]
    weights = [draw.normal(size=(b, a)).astype(np.float32) for a, b in pairwise(sizes)]
    states = [draw.normal(size=size).astype(np.float32) for size in sizes]

    def products() -> None:
        for number, weight in enumerate(weights):
            np.dot(weight, states[number], out=states[number + 1])

    return median_microseconds(products, repeats=1000, inner=10)
