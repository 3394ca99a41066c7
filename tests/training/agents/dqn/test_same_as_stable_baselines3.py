"""One update from the same weights and batch equals stable-baselines3's DQN."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from training.agents.dqn.config import DqnConfig
from training.agents.dqn.network import QNetwork
from training.agents.dqn.stage import DqnStage
from training.batches.discrete_batch import DiscreteBatch
from training.engines.adam import AdamRule
from training.engines.engine import EagerEngine
from training.engines.following import frozen_copy
from training.stage import ScheduleTensors

SIZE, RATE, DISCOUNT, CLIP = 64, 1e-3, 0.97, 10.0


def transitions() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "observation": rng.normal(size=(SIZE, 4)).astype(np.float32),
        "next_observation": rng.normal(size=(SIZE, 4)).astype(np.float32),
        "action": rng.integers(0, 2, SIZE),
        "reward": (20 * rng.normal(size=SIZE)).astype(np.float32),
        "done": (rng.uniform(size=SIZE) < 0.3).astype(np.float32),
    }


def ours(updates: int) -> list[np.ndarray]:
    """Parameters after some updates on the batch, layer by layer."""
    network = q_network()
    target = frozen_copy(q_network(seed=1))
    settings = DqnConfig(
        hidden=[64, 64], discount=DISCOUNT, optimizer="adam", learning_rate=RATE, engine="eager"
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, eps=settings.adam_epsilon)
    engine = EagerEngine(
        DqnStage(network, target, settings),
        dict(network.named_parameters()),
        optimizer,
        max_gradient_norm=CLIP,
        rule=AdamRule,
    )
    schedule = ScheduleTensors("learning_rate", "beta", "far_bound", "reward_scale", "exploration")
    schedule.set(learning_rate=RATE, beta=1.0, far_bound=5.0, reward_scale=1.0, exploration=0.1)
    steps = transitions()
    batch = DiscreteBatch(
        torch.from_numpy(steps["observation"]),
        torch.from_numpy(steps["next_observation"]),
        torch.from_numpy(steps["action"]),
        torch.from_numpy(steps["reward"]),
        torch.from_numpy(1 - steps["done"]),
        torch.full((SIZE, 2), 0.5),
        torch.ones(SIZE),
    )
    for _ in range(updates):
        engine.update(batch, schedule)
    return [tensor.detach().numpy() for tensor in network.parameters()]


def q_network(seed: int = 0) -> QNetwork:
    return QNetwork(4, 2, hidden=[64, 64], generator=torch.Generator().manual_seed(seed))


def sequential(seed: int = 0) -> torch.nn.Sequential:
    """The same network as stable-baselines3 builds it."""
    layers = torch.nn.Sequential(
        torch.nn.Linear(4, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 2),
    )
    _copy(q_network(seed), layers)
    return layers


def _copy(network: torch.nn.Module, other: torch.nn.Module) -> None:
    with torch.no_grad():
        for there, here in zip(other.parameters(), network.parameters(), strict=True):
            there.copy_(here)


@pytest.mark.parametrize("updates", [1, 10])
def test_updates_equal_a_twin_in_torch(updates):
    network, target = sequential(), sequential(seed=1)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    steps = {name: torch.from_numpy(array) for name, array in transitions().items()}
    for _ in range(updates):
        with torch.no_grad():
            best = target(steps["next_observation"]).max(1).values
            goals = steps["reward"] + (1 - steps["done"]) * DISCOUNT * best
        chosen = network(steps["observation"]).gather(1, steps["action"][:, None])[:, 0]
        optimizer.zero_grad()
        functional.smooth_l1_loss(chosen, goals).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
    for mine, theirs in zip(ours(updates), network.parameters(), strict=True):
        assert mine == pytest.approx(theirs.detach().numpy(), abs=1e-6)


@pytest.mark.parametrize("updates", [1, 10])
def test_updates_equal_stable_baselines3(updates):
    library = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.buffers import ReplayBufferSamples
    from stable_baselines3.common.logger import configure

    model = library.DQN(
        "MlpPolicy", "CartPole-v1", learning_rate=RATE, gamma=DISCOUNT, max_grad_norm=CLIP
    )
    model.set_logger(configure(None, []))
    _copy(q_network(), model.q_net)
    _copy(q_network(seed=1), model.q_net_target)
    steps = {name: torch.from_numpy(array) for name, array in transitions().items()}
    samples = {
        "observations": steps["observation"],
        "actions": steps["action"][:, None],
        "next_observations": steps["next_observation"],
        "dones": steps["done"][:, None],
        "rewards": steps["reward"][:, None],
    }
    if "discounts" in ReplayBufferSamples._fields:
        samples["discounts"] = None
    model.replay_buffer.sample = lambda *given, **options: ReplayBufferSamples(**samples)
    model.train(gradient_steps=updates, batch_size=SIZE)
    for mine, theirs in zip(ours(updates), model.q_net.parameters(), strict=True):
        assert mine == pytest.approx(theirs.detach().numpy(), abs=1e-5)
