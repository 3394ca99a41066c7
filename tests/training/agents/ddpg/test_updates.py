"""Whole updates: engines agree, and the sequential order is that of common code."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from storage.environment_spec import EnvironmentSpec
from tests.training.agents.ddpg.batches import ACTION, OBSERVATION, batch, schedule
from tests.training.tiny import tiny_config
from training.agents.ddpg.agent import Ddpg
from training.agents.ddpg.config import DdpgConfig
from training.engines.adam import ADAM_EPSILON
from training.engines.compiler import compiler_problem
from training.refer import PRESETS

RATE, DECAY, TAU, DISCOUNT = 1e-3, 1e-2, 0.05, 0.9
BOX = gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)
STATES = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float64)


def make_agent(seed: int = 3, **settings: Any) -> Ddpg:
    own = {"hidden": [8, 8], "batch_size": 12, "discount": DISCOUNT, "target_rate": TAU}
    config = tiny_config(agent=DdpgConfig(**own | settings), seed=seed)
    return Ddpg(config, EnvironmentSpec("Test-v0", STATES, BOX))


def common(**settings: Any) -> Ddpg:
    """An agent with all that common code has."""
    return make_agent(
        order="sequential",
        engine="eager",
        refer=PRESETS["ER"],
        residual=False,
        activation="relu",
        bounded_mean=True,
        learning_rate=RATE,
        actor_learning_rate=RATE,
        critic_weight_decay=DECAY,
        **settings,
    )


def batches(agent: Ddpg, count: int = 4) -> list[Any]:
    """Batches as common code has them: without sampling weights."""
    drawn = [batch(agent.networks, seed) for seed in range(count)]
    return [each._replace(sampling_weight=torch.ones_like(each.reward)) for each in drawn]


def learn(agent: Ddpg, steps: list[Any], engine: Any = None) -> dict[str, Tensor]:
    """Updates the agent by one batch after the other; the feedback of the last."""
    engine = engine or agent.make_engine(agent.configure_optimizers(), None)
    numbers = schedule(learning_rate=RATE, actor_rate=RATE, reward_scale=1.0)
    for each in steps:
        feedback = engine.update(each, numbers)
    return feedback


class Twin:
    """One update as stable-baselines3 writes it down, on plain sequences of layers.

    Its critic's loss lacks the factor 1/2, which Adam takes away again with twice the epsilon and
    twice the decay.
    """

    def __init__(self, agent: Ddpg) -> None:
        made = agent.networks
        self.actor, self.actor_target = (
            copied(net, OBSERVATION, ACTION, nn.Tanh()) for net in (made.actor, made.target_actor)
        )
        self.critic, self.critic_target = (
            copied(net, OBSERVATION + ACTION, 1) for net in (made.critic, made.target_critic)
        )
        self.critic_optimizer, self.actor_optimizer = optimizers(self.critic, self.actor)

    def update(self, steps: Any) -> None:
        with torch.no_grad():
            action = self.actor_target(steps.next_observation).clamp(-1, 1)
            future = self.critic_target(torch.cat([steps.next_observation, action], 1))[:, 0]
            target = steps.reward + steps.continuing * DISCOUNT * future
        value = self.critic(torch.cat([steps.observation, steps.raw_action], 1))[:, 0]
        step(self.critic_optimizer, functional.mse_loss(value, target))
        action = self.actor(steps.observation)
        step(self.actor_optimizer, -self.critic(torch.cat([steps.observation, action], 1)).mean())
        for net, follower in (
            (self.critic, self.critic_target),
            (self.actor, self.actor_target),
        ):
            for tensor, behind in zip(net.parameters(), follower.parameters(), strict=True):
                behind.data.mul_(1 - TAU).add_(tensor.data, alpha=TAU)


def copied(net: nn.Module, inputs: int, outputs: int, *last: nn.Module) -> nn.Sequential:
    layers = nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, outputs)
    made = nn.Sequential(*layers, *last)
    for tensor, given in zip(made.parameters(), net.parameters(), strict=True):
        tensor.data.copy_(given.data)
    return made


def optimizers(critic: nn.Module, actor: nn.Module) -> tuple[Any, Any]:
    twice = {"eps": 2 * ADAM_EPSILON, "weight_decay": 2 * DECAY}
    once = {"eps": ADAM_EPSILON, "weight_decay": ADAM_EPSILON}
    return (
        torch.optim.Adam(critic.parameters(), lr=RATE, **twice),
        torch.optim.Adam(actor.parameters(), lr=RATE, **once),
    )


def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def assert_same(networks: nn.Module, others: dict[str, nn.Module]) -> None:
    for name, other in others.items():
        own = networks.get_submodule(name)
        for tensor, expected in zip(own.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(tensor.detach(), expected.detach(), rtol=0.0, atol=1e-6)


def test_the_sequential_order_is_that_of_common_code():
    agent = common()
    before, twin, steps = copy.deepcopy(agent.networks), Twin(agent), batches(agent)
    for count in (1, 3):
        learn(agent, steps[:count])
        for each in steps[:count]:
            twin.update(each)
        others = {name: getattr(twin, name) for name in ("actor", "critic")}
        others |= {f"target_{name}": getattr(twin, f"{name}_target") for name in others}
        assert_same(agent.networks, others)
        # The optimizer of the next round is new.
        twin.critic_optimizer, twin.actor_optimizer = optimizers(twin.critic, twin.actor)
    for name, tensor in agent.networks.named_parameters():
        assert (tensor - before.get_parameter(name)).abs().max() > 1e-5, name


def test_an_update_is_that_of_stable_baselines3():
    library = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.logger import Logger

    agent = common()
    made, steps = agent.networks, batches(agent)
    env = Spaces()
    theirs = library.DDPG(
        "MlpPolicy",
        env,
        learning_rate=RATE,
        tau=TAU,
        gamma=DISCOUNT,
        policy_kwargs={"net_arch": [8, 8]},
        device="cpu",
    )
    theirs.set_logger(Logger(None, []))
    pairs = {
        "actor": theirs.actor.mu,
        "critic": theirs.critic.q_networks[0],
        "target_actor": theirs.actor_target.mu,
        "target_critic": theirs.critic_target.q_networks[0],
    }
    for name, net in pairs.items():
        own = made.get_submodule(name)
        for tensor, given in zip(net.parameters(), own.parameters(), strict=True):
            tensor.data.copy_(given.data)
    theirs.critic.optimizer, theirs.actor.optimizer = optimizers(theirs.critic, theirs.actor)
    queue = [
        SimpleNamespace(
            observations=each.observation,
            actions=each.raw_action,
            next_observations=each.next_observation,
            dones=1 - each.continuing[:, None],
            rewards=each.reward[:, None],
            discounts=None,
        )
        for each in steps
    ]
    theirs.replay_buffer = SimpleNamespace(sample=lambda *_, **__: queue.pop(0))
    theirs.train(len(steps), batch_size=12)
    learn(agent, steps)
    assert_same(made, pairs)


class Spaces(gymnasium.Env[Any, Any]):
    """An environment that nobody steps."""

    observation_space = STATES
    action_space = BOX


def test_both_orders_take_the_same_critic_and_other_actors():
    found = {}
    for order in ("simultaneous", "sequential"):
        agent = make_agent(order=order, engine="eager", learning_rate=RATE)
        steps = batches(agent, 1)
        found[order] = learn(agent, steps), agent.networks
    (one, joint), (other, turns) = found.values()
    for name in ("importance_ratio", "divergence", "value", "priority_error"):
        assert torch.equal(one[name], other[name]), name
    for name in ("critic", "target_critic"):
        for a, b in zip(
            joint.get_submodule(name).parameters(),
            turns.get_submodule(name).parameters(),
            strict=True,
        ):
            assert torch.equal(a, b)
    assert not torch.equal(joint.actor.head.weight, turns.actor.head.weight)
    assert one["loss"] != other["loss"]
    assert float(one["loss"]) == pytest.approx(float(other["loss"]), abs=0.05)
    assert one["gradient_norm"] == pytest.approx(float(other["gradient_norm"]), rel=0.05)


def test_gradients_leave_nothing_behind_and_targets_go_their_part_of_the_way():
    agent = make_agent(engine="eager")
    before = copy.deepcopy(agent.networks)
    learn(agent, batches(agent, 1))
    assert all(tensor.grad is None for tensor in agent.parameters())
    for net, target in (("actor", "target_actor"), ("critic", "target_critic")):
        now, old = agent.networks.get_submodule(net), before.get_submodule(target)
        behind = agent.networks.get_submodule(target)
        for online, start, end in zip(
            now.parameters(), old.parameters(), behind.parameters(), strict=True
        ):
            torch.testing.assert_close(end, start + TAU * (online.detach() - start))


def test_the_critic_alone_decays_and_each_network_has_its_rate():
    agent = make_agent(critic_weight_decay=0.5, actor_learning_rate=3e-5)
    critic, actor = agent.configure_optimizers().param_groups
    assert (critic["weight_decay"], actor["weight_decay"]) == (0.5, ADAM_EPSILON)
    assert (critic.get("rate"), actor["rate"]) == (None, "actor_rate")
    held = {id(tensor) for group in (critic, actor) for tensor in group["params"]}
    learnt = agent.networks.parameters_of("actor", "critic").values()
    assert held == {id(tensor) for tensor in learnt}
    assert agent.rates(0) == {"learning_rate": 1e-4, "actor_rate": 3e-5}
    assert agent.rates(2_000_000)["actor_rate"] == pytest.approx(1.5e-5)


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("engine", ["fused", "compiled"])
def test_engines_agree(engine, order):
    if engine == "compiled" and compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))
    found = {}
    for name in ("eager", engine):
        agent = make_agent(
            order=order,
            engine=name,
            learning_rate=RATE,
            gradient_clip=0.5,
            refer=PRESETS["ReF-ER"],
        )
        found[name] = agent.networks, learn(agent, batches(agent))
    (one, eager), (other, fast) = found.values()
    for (name, tensor), expected in zip(one.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-6, msg=name)
    assert set(eager) == set(fast)
    for name, tensor in eager.items():
        torch.testing.assert_close(tensor, fast[name], rtol=1e-4, atol=1e-5, msg=name)
