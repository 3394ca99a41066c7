from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import softsign

from storage.errors import ConfigError
from training.agents.vracer.network import VRacerNetwork
from training.network import Mlp


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_equal_widths_add_the_layer_before():
    mlp = Mlp(4, (8, 8, 5), generator=generator())
    inputs = torch.randn(3, 4, generator=generator(1))
    first = softsign(mlp.layers[0](inputs))
    second = softsign(mlp.layers[1](first)) + first
    third = softsign(mlp.layers[2](second))
    assert torch.equal(mlp(inputs), third)


def test_an_input_as_wide_as_the_first_layer_is_not_added():
    assert Mlp(8, (8, 8), generator=generator()).links == (False, True)
    assert Mlp(8, (8, 8), residual=False, generator=generator()).links == (False, False)


def test_initial_weights_and_biases():
    network = VRacerNetwork(17, 6, generator=generator())
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    assert shapes == {
        "raw_stdev": (6,),
        "body.layers.0.weight": (128, 17),
        "body.layers.0.bias": (128,),
        "body.layers.1.weight": (128, 128),
        "body.layers.1.bias": (128,),
        "head.weight": (7, 128),
        "head.bias": (7,),
    }
    for layer in network.body.layers:
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))
        for parameter in (layer.weight.detach(), layer.bias.detach()):
            assert 0.95 * bound < parameter.abs().max() <= 1.000001 * bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    bound = 0.1 / math.sqrt(128)
    assert 0.95 * bound < network.head.weight.abs().max() <= 1.000001 * bound
    assert network.head.bias.count_nonzero() == 0


@pytest.mark.parametrize("state_dependent", [False, True])
def test_initial_stdev_is_the_root_of_a_fifth(state_dependent):
    network = VRacerNetwork(
        3, 2, hidden=(16,), state_dependent_stdev=state_dependent, generator=generator()
    )
    value, mean, stdev = network(torch.zeros(5, 3))
    assert value.shape == (5,)
    assert mean.shape == (5, 2)
    assert stdev.shape == ((5, 2) if state_dependent else (2,))
    assert torch.allclose(stdev, torch.full_like(stdev, 0.4472136), atol=0.05)


def test_construction_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = VRacerNetwork(3, 2, generator=generator(5))
    assert torch.equal(torch.rand(3), expected)
    second = VRacerNetwork(3, 2, generator=generator(5))
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation_size": 0, "action_size": 1}, "positive sizes"),
        ({"observation_size": 1, "action_size": 0}, "at least one action"),
        ({"observation_size": 1, "action_size": 1, "hidden": ()}, "at least one hidden"),
        ({"observation_size": 1, "action_size": 1, "initial_stdev": 0.0}, "initial_stdev"),
    ],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        VRacerNetwork(**arguments, generator=generator())
