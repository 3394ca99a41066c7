"""DDPG's gradients by autograd against the formulas of the blend, at the networks' outputs."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.training.agents.ddpg.batches import NUMBERS, SIZE, batch, networks, schedule
from training.agents.ddpg.network import DdpgActor
from training.agents.ddpg.stage import (
    ActorStage,
    CriticStage,
    JointStage,
    Likeness,
    SteadyModule,
    actor_loss,
    critic_loss,
)
from training.batches.transition_batch import TransitionBatch
from training.refer import PRESETS

BETA, DISCOUNT = NUMBERS["beta"], 0.9
DOUBLE = torch.float64


def doubles(**settings):
    nets = networks(**settings).double()
    return nets, batch(nets), schedule(DOUBLE)


def formula(nets, steps, bound: float, rules: str):
    """Directions of ascent at the actor's and the critic's outputs, step by step, and rho."""
    rule_1, rule_2 = rules in ("ReF-ER-1", "ReF-ER"), rules in ("ReF-ER-2", "ReF-ER")
    means, values, ratios = [], [], []
    for i in range(SIZE):
        row = TransitionBatch(*(field[i : i + 1] for field in steps))
        mean = nets.actor(row.observation).detach().requires_grad_()
        slope = torch.autograd.grad(nets.critic(row.observation, mean).sum(), mean)[0][0]
        mean = mean.detach()[0]
        policy = torch.distributions.Normal(mean, torch.full_like(mean, 0.2))
        log_ratio = policy.log_prob(row.raw_action[0]).sum() - row.behaviour_log_density[0]
        ratio = math.exp(min(max(float(log_ratio), -7.0), 7.0))
        near = 1 / bound <= ratio <= bound
        beta = BETA if rule_2 else 1.0
        kept = 1.0 if near or not rule_1 else 0.0
        divergence = (mean - row.behaviour_mean[0]) / 0.2**2
        means.append(kept * beta * slope - ((1 - beta) * divergence if rule_2 else 0.0))
        future = nets.target_critic(row.next_observation, nets.target_actor(row.next_observation))
        target = row.reward / 2.0 + DISCOUNT * row.continuing * future
        error = target - nets.critic(row.observation, row.raw_action)
        values.append(kept * error.detach()[0])
        ratios.append(ratio)
    return torch.stack(means), torch.stack(values), torch.tensor(ratios, dtype=DOUBLE)


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("bound", [1.01, 3.0, 2000.0])
@pytest.mark.parametrize("bounded_mean", [False, True])
def test_output_gradients_are_those_of_the_table(rules, bound, bounded_mean):
    nets, steps, _ = doubles(bounded_mean=bounded_mean)
    numbers = schedule(DOUBLE, far_bound=bound)
    means, values, ratios = formula(nets, steps, bound, rules)
    near = (ratios <= bound) & (ratios >= 1 / bound)
    kinds = {1.01: (False, False), 3.0: (True, False), 2000.0: (True, True)}
    assert (bool(near.any()), bool(near.all())) == kinds[bound]
    likeness, settings = Likeness(ratios, near), PRESETS[rules]
    mean = nets.actor(steps.observation).detach().requires_grad_()
    value = nets.critic(steps.observation, steps.raw_action).detach().requires_grad_()
    with torch.no_grad():
        future = nets.target_critic(
            steps.next_observation, nets.target_actor(steps.next_observation)
        )
        target = steps.reward / 2.0 + DISCOUNT * steps.continuing * future
    worth = nets.critic(steps.observation, mean)
    acted, _ = actor_loss(mean, nets.actor.stdev, worth, likeness, steps, numbers, settings)
    judged, _ = critic_loss(value, target, likeness, steps, numbers, settings)
    weight = steps.sampling_weight / SIZE
    found = -torch.autograd.grad(acted, mean)[0], -torch.autograd.grad(judged, value)[0]
    # float32 holds the deviation's raw number, and the settings of the schedule.
    torch.testing.assert_close(found[0], weight[:, None] * means, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(found[1], weight * values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rules", PRESETS)
@pytest.mark.parametrize("action_layer", [0, 1])
def test_the_stages_send_these_gradients_to_their_own_network_alone(rules, action_layer):
    nets, steps, numbers = doubles(critic_action_layer=action_layer)
    means, values, ratios = formula(nets, steps, 3.0, rules)
    weight = steps.sampling_weight / SIZE
    actor, critic = (dict(each.named_parameters()) for each in (nets.actor, nets.critic))
    expected = {
        "actor": torch.autograd.grad(
            nets.actor(steps.observation), list(actor.values()), -weight[:, None] * means
        ),
        "critic": torch.autograd.grad(
            nets.critic(steps.observation, steps.raw_action),
            list(critic.values()),
            -weight * values,
        ),
    }
    settings = PRESETS[rules]
    joint = nets.parameters_of("actor", "critic")
    loss, feedback = JointStage(nets, settings, DISCOUNT)(joint, steps, numbers)
    both = torch.autograd.grad(loss, list(joint.values()), retain_graph=True)
    alone = {
        "actor": ActorStage(nets, settings)(actor, steps, numbers),
        "critic": CriticStage(nets, settings, DISCOUNT)(critic, steps, numbers),
    }
    torch.testing.assert_close(loss, alone["actor"][0] + alone["critic"][0])
    apart = [
        gradient
        for name, owned in (("actor", actor), ("critic", critic))
        for gradient in torch.autograd.grad(alone[name][0], list(owned.values()))
    ]
    wanted = [*expected["actor"], *expected["critic"]]
    for found, other, gradient in zip(both, apart, wanted, strict=True):
        torch.testing.assert_close(found, gradient, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(other, gradient, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(feedback["importance_ratio"], ratios, rtol=1e-5, atol=0)
    assert set(feedback) == {"importance_ratio", "divergence", "value", "priority_error"}
    assert {name for _, each in alone.values() for name in each} == set(feedback)
    for name, tensor in feedback.items():
        assert tensor.shape == (SIZE,)
        assert not tensor.requires_grad, name
        assert torch.equal(tensor, (alone["actor"][1] | alone["critic"][1])[name])


def test_feedback_is_the_temporal_difference_and_the_action_value():
    nets, steps, numbers = doubles()
    _, values, _ = formula(nets, steps, 3.0, "ER")
    joint = nets.parameters_of("actor", "critic")
    _, feedback = JointStage(nets, PRESETS["ReF-ER"], DISCOUNT)(joint, steps, numbers)
    torch.testing.assert_close(feedback["priority_error"], values.abs())
    judged = nets.critic(steps.observation, steps.raw_action)
    torch.testing.assert_close(feedback["value"], judged.detach())
    apart = nets.actor(steps.observation).detach() - steps.behaviour_mean
    torch.testing.assert_close(
        feedback["divergence"], (apart * apart).sum(1) / (2 * 0.2**2), rtol=1e-6, atol=1e-7
    )


def one_step(mean: float, behaviour: float, action: float):
    """A step in one dimension under an actor whose mean is constant."""
    actor = DdpgActor(1, 1, hidden=[2], generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        actor.head.weight.zero_()
        actor.head.bias.fill_(mean)

    def number(value: float) -> torch.Tensor:
        return torch.tensor([[value]], dtype=DOUBLE)

    density = torch.distributions.Normal(number(behaviour), 0.2).log_prob(number(action)).sum(1)
    ones = torch.ones(1, dtype=DOUBLE)
    states = number(0.0), number(0.0), number(action)
    kept = number(behaviour), number(0.2), density
    return actor, TransitionBatch(*states, ones, ones, *kept, ones)


@pytest.mark.parametrize(("action", "ratio", "far"), [(0.3, 1.0, False), (0.1, 0.1353352832, True)])
@pytest.mark.parametrize("divergence", ["behaviour_policy", "policy_behaviour"])
def test_known_ratios_and_divergences(action, ratio, far, divergence):
    actor, step = one_step(0.5, 0.1, action)
    nets: Any = SimpleNamespace(actor=actor, critic=lambda _, mean: 7.0 * mean[:, 0])
    settings = dataclasses.replace(PRESETS["ReF-ER"], divergence=divergence)
    parameters = dict(actor.named_parameters())
    loss, feedback = ActorStage(nets, settings)(parameters, step, schedule(DOUBLE, far_bound=5.0))
    assert feedback["importance_ratio"].item() == pytest.approx(ratio, rel=1e-6)
    assert feedback["divergence"].item() == pytest.approx(0.4**2 / (2 * 0.04), rel=1e-6)
    slope = torch.autograd.grad(loss, actor.head.bias)[0].item()
    pull = 0.7 * 0.4 / 0.04
    assert slope == pytest.approx(pull - (0.0 if far else 0.3 * 7.0), rel=1e-6)


def test_a_small_shift_has_the_known_divergence():
    actor, step = one_step(0.3, 0.2, 0.2)
    nets: Any = SimpleNamespace(actor=actor, critic=lambda _, mean: mean[:, 0])
    _, feedback = ActorStage(nets, PRESETS["ER"])(
        dict(actor.named_parameters()), step, schedule(DOUBLE)
    )
    assert feedback["divergence"].item() == pytest.approx(0.125, rel=1e-6)


def test_terminal_steps_have_no_future_and_truncated_ones_do():
    nets, steps, numbers = doubles()
    stage, critic = CriticStage(nets, PRESETS["ER"], DISCOUNT), dict(nets.critic.named_parameters())
    error = stage(critic, steps, numbers)[1]["priority_error"]
    value = nets.critic(steps.observation, steps.raw_action).detach()
    assert error[0] == pytest.approx(abs(float(steps.reward[0] / 2.0 - value[0])))
    moved = steps._replace(next_observation=steps.next_observation + 1.0)
    changed = stage(critic, moved, numbers)[1]["priority_error"] != error
    assert changed.tolist() == [False] + [True] * (SIZE - 1)


def test_a_steady_module_shares_weights_and_gets_no_gradient():
    nets, steps, _ = doubles()
    steady, own = SteadyModule(nets.critic), dict(nets.critic.named_parameters())
    action = steps.raw_action.requires_grad_()
    with torch.no_grad():
        nets.critic.head.bias += 3.0
    expected = nets.critic(steps.observation, action)
    for parameters in (own, {name: 1.0 * tensor for name, tensor in own.items()}):
        found = steady(parameters, steps.observation, action)
        assert torch.equal(found, expected)
        slopes = torch.autograd.grad(found.sum(), [action, *own.values()], allow_unused=True)
        assert slopes[0].abs().sum() > 0
        assert slopes[1:] == (None,) * len(own)
