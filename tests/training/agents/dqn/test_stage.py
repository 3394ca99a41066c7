"""DQN's loss: its gradients at the outputs, its targets, and its feedback."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from training.agents.dqn.config import DqnConfig
from training.agents.dqn.network import QNetwork
from training.agents.dqn.stage import DqnStage, categorical_divergence, dqn_loss
from training.batches.discrete_batch import DiscreteBatch
from training.engines.following import frozen_copy
from training.refer import PRESETS, ReferSettings

BETA, WEIGHT, TAU = 0.3, 0.7, 0.5
VALUES = [0.2, 1.0, -0.4]
BEHAVIOUR = [0.2, 0.5, 0.3]


def tensor(*rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def schedule(bound=5.0, exploration=0.1, scale=2.0) -> dict[str, torch.Tensor]:
    numbers = {
        "beta": BETA,
        "far_bound": bound,
        "reward_scale": scale,
        "learning_rate": 0.0,
        "exploration": exploration,
    }
    return {name: torch.tensor(x, dtype=torch.float64) for name, x in numbers.items()}


def batch(size=1, action=0, behaviour=BEHAVIOUR, **fields) -> DiscreteBatch:
    known = {
        "observation": torch.zeros(size, 1),
        "next_observation": torch.zeros(size, 1),
        "action": torch.full((size,), action),
        "reward": torch.zeros(size, dtype=torch.float64),
        "continuing": torch.ones(size, dtype=torch.float64),
        "behaviour": tensor(*[behaviour] * size),
        "sampling_weight": torch.full((size,), WEIGHT, dtype=torch.float64),
    }
    return DiscreteBatch(**(known | fields))


def descent(settings, target, bound=5.0, **fields):
    """The gradient at the three outputs, and the feedback, of one step of action 0."""
    values = tensor(VALUES).requires_grad_()
    loss, feedback = dqn_loss(values, tensor(target), batch(**fields), schedule(bound), settings)
    return torch.autograd.grad(loss, values)[0][0].tolist(), feedback


def softmax() -> np.ndarray:
    powers = np.exp(np.array(VALUES) / TAU)
    return powers / powers.sum()


def divergence_gradient(direction="behaviour_policy") -> np.ndarray:
    policy, behaviour = softmax(), np.array(BEHAVIOUR)
    if direction == "behaviour_policy":
        return (policy - behaviour) / TAU
    logs = np.log(policy / behaviour)
    return policy * (logs - policy @ logs) / TAU


def soft(rules: str, **refer) -> DqnConfig:
    chosen = PRESETS[rules]
    settings = ReferSettings(rule_1=chosen.rule_1, rule_2=chosen.rule_2, **refer)
    return DqnConfig(policy="softmax", temperature=TAU, refer=settings)


NEAR, FAR = 50.0, 1.01
"""Bounds of which the ratio of 0.2 at action 0, under the softmax some 0.7, is within one."""


@pytest.mark.parametrize(("target", "slope"), [(0.7, 0.5), (-0.2, -0.4), (9.0, 1.0), (-9.0, -1.0)])
def test_without_rules_the_gradient_is_the_cut_error(target, slope):
    for policy in ("softmax", "epsilon_greedy"):
        for bound in (NEAR, FAR):
            gradient, _ = descent(DqnConfig(policy=policy), target, bound)
            assert gradient == pytest.approx([-WEIGHT * slope, 0, 0], abs=1e-12)


def test_a_squared_loss_is_not_cut():
    gradient, _ = descent(DqnConfig(loss="squared"), 9.0)
    assert gradient == pytest.approx([-WEIGHT * 8.8, 0, 0], abs=1e-12)


@pytest.mark.parametrize("policy", ["softmax", "epsilon_greedy"])
def test_rule_1_drops_far_steps(policy):
    settings = DqnConfig(policy=policy, temperature=TAU, refer=PRESETS["ReF-ER-1"])
    near, _ = descent(settings, 0.7, NEAR)
    far, feedback = descent(settings, 0.7, FAR)
    assert near == pytest.approx([-WEIGHT * 0.5, 0, 0], abs=1e-12)
    assert far == [0, 0, 0]
    assert not 1 / FAR <= feedback["importance_ratio"].item() <= FAR


@pytest.mark.parametrize("direction", ["behaviour_policy", "policy_behaviour"])
def test_rule_2_adds_the_divergence_of_every_step(direction):
    pull = WEIGHT * (1 - BETA) * divergence_gradient(direction)
    learnt = np.array([-WEIGHT * BETA * 0.5, 0, 0])
    for rules, bound, expected in (
        ("ReF-ER", NEAR, learnt + pull),
        ("ReF-ER", FAR, pull),
        ("ReF-ER-2", NEAR, learnt + pull),
        ("ReF-ER-2", FAR, learnt + pull),
    ):
        gradient, feedback = descent(soft(rules, divergence=direction), 0.7, bound)
        assert gradient == pytest.approx(expected, abs=1e-12)
        policy, behaviour = softmax(), np.array(BEHAVIOUR)
        pair = (behaviour, policy) if direction == "behaviour_policy" else (policy, behaviour)
        known = float(np.sum(pair[0] * np.log(pair[0] / pair[1])))
        assert feedback["divergence"].item() == pytest.approx(known, abs=1e-12)


def test_an_action_that_was_impossible_leaves_the_divergence_finite():
    values = tensor(VALUES).float()
    for direction in ("behaviour_policy", "policy_behaviour"):
        settings = soft("ReF-ER", divergence=direction)
        behaviour = torch.tensor([[0.0, 1.0, 0.0]])
        found = categorical_divergence(values, behaviour, settings)
        assert math.isfinite(found.item())
    found = categorical_divergence(values, behaviour, soft("ReF-ER"))
    assert found.item() == pytest.approx(-math.log(softmax()[1]), abs=1e-6)


def test_feedback():
    _, feedback = descent(DqnConfig(), 0.7)
    assert feedback["value"].item() == pytest.approx(0.2)
    assert feedback["priority_error"].item() == pytest.approx(0.5)
    assert feedback["divergence"].item() == 0
    assert feedback["importance_ratio"].item() == pytest.approx((0.1 / 3) / 0.2)
    _, feedback = descent(DqnConfig(), 0.7, action=1)
    assert feedback["importance_ratio"].item() == pytest.approx((0.9 + 0.1 / 3) / 0.5)
    _, feedback = descent(soft("ER"), 0.7)
    assert feedback["importance_ratio"].item() == pytest.approx(softmax()[0] / 0.2)
    assert feedback["divergence"].item() == 0


def test_ratios_stay_within_their_limits():
    rare = [1e-9, 0.5, 0.5 - 1e-9]
    _, feedback = descent(soft("ER"), 0.7, behaviour=rare)
    assert feedback["importance_ratio"].item() == pytest.approx(math.exp(7))


def networks(**options) -> tuple[QNetwork, QNetwork]:
    made = [
        QNetwork(3, 4, hidden=[6, 5], generator=torch.Generator().manual_seed(seed), **options)
        for seed in (0, 1)
    ]
    return made[0].double(), frozen_copy(made[1].double())


def random_batch(size=16) -> DiscreteBatch:
    rng = np.random.default_rng(3)
    return DiscreteBatch(
        torch.from_numpy(rng.normal(size=(size, 3))),
        torch.from_numpy(rng.normal(size=(size, 3))),
        torch.from_numpy(rng.integers(0, 4, size)),
        torch.from_numpy(4 * rng.normal(size=size)),
        torch.from_numpy(rng.integers(0, 2, size).astype(np.float64)),
        torch.from_numpy(rng.dirichlet(np.ones(4), size)),
        torch.from_numpy(rng.uniform(0.2, 1, size)),
    )


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_the_stage_equals_a_naive_twin(double, clip, dueling):
    network, target = networks(dueling=dueling)
    settings = DqnConfig(double=double, clip_rewards=clip, discount=0.9)
    steps = random_batch()
    parameters = dict(network.named_parameters())
    stage = DqnStage(network, target, settings)
    loss, feedback = stage(parameters, steps, schedule())
    values, following, own = (
        net(x).detach().numpy()
        for net, x in (
            (network, steps.observation),
            (target, steps.next_observation),
            (network, steps.next_observation),
        )
    )
    total, errors = 0.0, []
    for i in range(len(values)):
        reward = steps.reward[i].item()
        if clip:
            reward = max(-1.0, min(1.0, reward))
        best = int(np.argmax(own[i] if double else following[i]))
        goal = reward / 2.0 + 0.9 * steps.continuing[i].item() * following[i, best]
        error = goal - values[i, steps.action[i]]
        huber = 0.5 * error**2 if abs(error) < 1 else abs(error) - 0.5
        total += steps.sampling_weight[i].item() * huber / len(values)
        errors.append(abs(error))
    assert loss.item() == pytest.approx(total, abs=1e-12)
    assert feedback["priority_error"].numpy() == pytest.approx(errors, abs=1e-12)
    assert stage.errors(parameters, steps, schedule()).numpy() == pytest.approx(errors, abs=1e-12)


def test_no_gradient_reaches_the_target_or_flows_through_it():
    network, target = networks()
    parameters = dict(network.named_parameters())
    steps = random_batch()
    stage = DqnStage(network, target, DqnConfig(double=True))
    gradients = torch.autograd.grad(stage(parameters, steps, schedule())[0], [*parameters.values()])
    fixed = steps._replace(continuing=torch.zeros(16).double())
    with torch.no_grad():
        goals = stage._targets(parameters, steps, schedule())
    fixed = fixed._replace(reward=2.0 * goals)
    again = torch.autograd.grad(stage(parameters, fixed, schedule())[0], [*parameters.values()])
    for left, right in zip(gradients, again, strict=True):
        assert torch.allclose(left, right, atol=1e-12)
    assert not any(tensor.requires_grad for tensor in target.parameters())
