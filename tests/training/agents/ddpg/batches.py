"""Networks and batches of DDPG for tests."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from training.agents.ddpg.config import DdpgConfig
from training.agents.ddpg.network import DdpgNetworks
from training.batches.transition_batch import TransitionBatch
from training.stage import ScheduleTensors

OBSERVATION, ACTION, SIZE = 3, 2, 12
NUMBERS = {
    "learning_rate": 1e-3,
    "actor_rate": 3e-4,
    "beta": 0.3,
    "far_bound": 3.0,
    "reward_scale": 2.0,
}


def networks(seed: int = 0, **settings: Any) -> DdpgNetworks:
    """Small networks whose targets differ from them."""
    own = DdpgConfig(**{"hidden": [8, 8]} | settings)
    generator = torch.Generator().manual_seed(seed)
    made = DdpgNetworks(OBSERVATION, ACTION, own, generator)
    with torch.no_grad():
        for name, tensor in made.named_parameters():
            if name.startswith("target_"):
                tensor.add_(0.05 * torch.randn(tensor.shape, generator=generator))
    return made


def schedule(dtype: torch.dtype = torch.float32, **changed: float) -> dict[str, Tensor]:
    values = ScheduleTensors(*NUMBERS)
    values.set(**NUMBERS | changed)
    return {name: tensor.to(dtype) for name, tensor in values.items()}


def batch(nets: DdpgNetworks, seed: int = 1, size: int = SIZE, spread: float = 0.15) -> Any:
    """Transitions, the first of them terminal, whose behaviour is about the present policy."""
    draw = torch.Generator().manual_seed(seed)
    kind = next(nets.parameters()).dtype
    observation, following = torch.randn(2, size, OBSERVATION, generator=draw, dtype=kind)
    stdev = torch.full((size, ACTION), 0.2, dtype=kind)
    with torch.no_grad():
        mean = nets.actor(observation)
    mean = mean + spread * torch.randn(mean.shape, generator=draw, dtype=kind)
    action = mean + stdev * torch.randn(mean.shape, generator=draw, dtype=kind)
    z = (action - mean) / stdev
    density = (-0.5 * z * z - stdev.log() - 0.5 * math.log(2 * math.pi)).sum(1)
    continuing = torch.ones(size, dtype=kind)
    continuing[0] = 0.0
    reward = torch.randn(size, generator=draw, dtype=kind)
    weight = torch.rand(size, generator=draw, dtype=kind) + 0.5
    return TransitionBatch(
        observation, following, action, reward, continuing, mean, stdev, density, weight
    )
