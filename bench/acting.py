"""Acting: microseconds one observation takes, from raw observation to raw action, μ and V."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bench.cheetah import ACTIONS, HIDDEN, OBSERVATIONS
from bench.eager_policy import EagerActor
from bench.effort import Effort
from bench.figure import Figure
from bench.products import act_products, layer_sizes
from bench.timing import alternate, microseconds
from training.acting.actor import GaussianActor
from training.agents.vracer.network import VRacerNetwork
from training.scaling import ObservationScaling

__all__ = ["measure"]


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """The actor beside its bare matrix products, and beside the same through torch's modules."""
    generator = torch.Generator().manual_seed(0)
    network = VRacerNetwork(OBSERVATIONS, ACTIONS, hidden=(HIDDEN, HIDDEN), generator=generator)
    scaling = ObservationScaling(OBSERVATIONS)
    actor = GaussianActor(network, scaling, seed=0)
    eager = EagerActor(network, scaling, seed=0)
    observation = np.random.default_rng(0).normal(size=OBSERVATIONS)
    products = act_products(layer_sizes(OBSERVATIONS, ACTIONS, (HIDDEN, HIDDEN)))
    samples = alternate(
        {
            "act": microseconds(lambda: actor.act(0, 7, observation)),
            "products": microseconds(products),
            "eager": microseconds(lambda: eager.act(observation)),
        },
        effort.repeats(200),
    )
    act, sizes = samples["act"], {"hidden": [HIDDEN, HIDDEN]}
    return [
        Figure.of("act", "µs", act, samples["products"], "bare matrix products", details=sizes),
        Figure.of("act, beside torch", "µs", act, samples["eager"], "torch modules", details=sizes),
    ]
