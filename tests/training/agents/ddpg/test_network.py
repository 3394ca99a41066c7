from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from storage.errors import ConfigError
from tests.training.agents.ddpg.batches import ACTION, OBSERVATION, networks
from training.acting.actor import GaussianActor
from training.agents.ddpg.config import DdpgConfig
from training.agents.ddpg.network import DdpgActor, DdpgNetworks
from training.network import ACTIVATIONS
from training.scaling import ObservationScaling

INPUT = torch.linspace(-1, 1, 4 * OBSERVATION).view(4, OBSERVATION)
ACTIONS = torch.linspace(-0.5, 0.7, 4 * ACTION).view(4, ACTION)


@pytest.mark.parametrize("activation", ["softsign", "relu", "tanh"])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_lean_actor_acts_by_the_mean_and_the_fixed_deviation(activation, bounded):
    nets = networks(activation=activation, bounded_mean=bounded, stdev=0.35)
    with torch.no_grad():
        nets.actor.head.weight.mul_(30)
        mean = nets.actor(INPUT)
    assert (mean.abs() < 1).all() == bounded
    actor = GaussianActor(nets.actor, ObservationScaling(OBSERVATION), seed=0)
    for row, expected in zip(INPUT.double().numpy(), mean.numpy(), strict=True):
        acted = actor.act(0, 1, row)
        np.testing.assert_allclose(acted.behaviour[:ACTION], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(acted.behaviour[ACTION:], 0.35, rtol=1e-6)
        assert acted.value is None
        assert not np.array_equal(acted.raw_action, acted.behaviour[:ACTION])
    assert not actor.values(INPUT.double().numpy()).any()


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("joins", [0, 1, 2])
def test_the_action_joins_the_critic_where_it_is_told(joins, residual):
    nets = networks(hidden=[8, 8, 8], critic_action_layer=joins, residual=residual)
    critic, squash = nets.critic, ACTIVATIONS["softsign"]
    layers = [*(critic.before.layers if critic.before else []), *critic.after.layers]
    assert len(layers) == 3
    hidden = INPUT
    for number, layer in enumerate(layers):
        inputs = torch.cat([hidden, ACTIONS], 1) if number == joins else hidden
        added = squash(functional.linear(inputs, layer.weight, layer.bias))
        linked = residual and number > 0 and number != joins
        hidden = added + hidden if linked else added
    expected = functional.linear(hidden, critic.head.weight, critic.head.bias)[:, 0]
    assert torch.equal(critic(INPUT, ACTIONS), expected)


def test_initial_weights_are_those_of_the_paper_of_ddpg_where_asked():
    made = networks(
        hidden=[40, 30], initialisation="fan_in", output_bound=3e-3, critic_action_layer=1
    )
    for layer, inputs in (
        (made.actor.body.layers[0], OBSERVATION),
        (made.actor.body.layers[1], 40),
        (made.critic.after.layers[0], 40 + ACTION),
    ):
        largest = layer.weight.abs().max()
        assert 0.8 * inputs**-0.5 < largest <= inputs**-0.5
    for net in (made.actor, made.critic):
        assert 0.5 * 3e-3 < net.head.weight.abs().max() <= 3e-3
        assert 0 < net.head.bias.abs().max() <= 3e-3


def test_targets_begin_as_frozen_copies():
    made = DdpgNetworks(
        OBSERVATION, ACTION, DdpgConfig(hidden=[8, 8]), torch.Generator().manual_seed(0)
    )
    state = made.state_dict()
    for name, tensor in state.items():
        if name.startswith("target_"):
            assert torch.equal(tensor, state[name.removeprefix("target_")])
            assert not made.get_parameter(name).requires_grad
    assert len(state) == 4 * 6
    assert not any("stdev" in name for name in state)
    learnt = made.parameters_of("actor", "critic")
    assert list(learnt) == [name for name in state if not name.startswith("target_")]
    assert all(tensor.requires_grad for tensor in learnt.values())


def test_impossible_actors_are_refused():
    draw = torch.Generator()
    with pytest.raises(ConfigError, match="at least one action"):
        DdpgActor(3, 0, generator=draw)
    with pytest.raises(ConfigError, match="stdev = 0"):
        DdpgActor(3, 1, stdev=0.0, generator=draw)
