from __future__ import annotations

import numpy as np
import pytest
import torch

from storage.errors import ConfigError
from training.acting.actor import GaussianActor
from training.agents.naf.network import NafNetwork
from training.engines.following import frozen_copy
from training.scaling import ObservationScaling


def net(seed: int = 0, **settings) -> NafNetwork:
    generator = torch.Generator().manual_seed(seed)
    return NafNetwork(3, 2, **{"hidden": (8, 8), "generator": generator} | settings)


@pytest.mark.parametrize("activation", ["softsign", "relu", "tanh"])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_actor_acts_by_the_mean_and_the_fixed_deviation(activation, bounded):
    network = net(activation=activation, bounded_mean=bounded, output_bound=1.0, stdev=0.3)
    actor = GaussianActor(network, ObservationScaling(3), seed=0)
    assert not actor.has_value
    observation = np.array([0.3, -1.0, 2.0])
    greedy = actor.act(0, 0, observation, greedy=True)
    mean = network(torch.from_numpy(observation)[None].float()).mean[0].detach().numpy()
    assert greedy.raw_action == pytest.approx(mean, rel=1e-5)
    assert greedy.behaviour == pytest.approx([*mean, 0.3, 0.3], rel=1e-5)
    assert greedy.value is None
    draws = np.array([actor.act(0, i, observation).raw_action for i in range(2000)])
    assert draws.std(0) == pytest.approx([0.3, 0.3], rel=0.06)


def test_values_alone_are_those_of_the_whole():
    network, observation = net(), torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(network.values(observation), network(observation).value)


def test_the_first_noise_is_a_setting_and_no_checkpoint_holds_it():
    network = net(stdev=0.2)
    output = network(torch.zeros(1, 3))
    assert output.stdev.tolist() == pytest.approx([0.2, 0.2], rel=1e-6)
    assert set(network.state_dict()) == set(dict(network.named_parameters()))
    assert not any(name.startswith("raw_stdev") for name, _ in network.named_parameters())
    copied = frozen_copy(network)
    assert copied(torch.zeros(1, 3)).stdev.tolist() == output.stdev.tolist()
    assert not any(parameter.requires_grad for parameter in copied.parameters())


def test_the_last_layer_and_its_bound():
    head = net(output_bound=3e-3).head
    assert head.out_features == 1 + 3 + 2
    assert 2e-3 < head.weight.abs().max() <= 3e-3
    assert 1e-4 < head.bias.abs().max() <= 3e-3
    assert not net().head.bias.any()


def test_impossible_sizes_are_refused():
    with pytest.raises(ConfigError, match="at least one action dimension, not 0"):
        NafNetwork(3, 0, generator=torch.Generator())
    with pytest.raises(ConfigError, match=r"stdev = 0.0 must be positive"):
        net(stdev=0.0)
