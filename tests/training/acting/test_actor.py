from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from storage.errors import ConfigError
from storage.randomness import normal_pair, philox, stream_key
from training.acting.actor import GaussianActor
from training.acting.noise import NOISE_LIMIT
from training.agents.vracer.network import VRacerNetwork
from training.scaling import ObservationScaling

SIZES = [(17, 6, (128, 128), False), (5, 1, (16,), False), (4, 3, (12, 12, 7), True)]


def make(observation=17, action=6, hidden=(128, 128), dependent=False, seed=0):
    network = VRacerNetwork(
        observation,
        action,
        hidden=hidden,
        state_dependent_stdev=dependent,
        generator=torch.Generator().manual_seed(1),
    )
    with torch.no_grad():
        network.head.weight.mul_(10)
    scaling = ObservationScaling(observation)
    rng = np.random.default_rng(2)
    scaling.mean[:] = rng.normal(size=observation)
    scaling.stdev[:] = rng.uniform(0.5, 2.0, size=observation)
    return network, scaling, GaussianActor(network, scaling, seed=seed)


def observations(count, size):
    return np.random.default_rng(3).normal(size=(count, size)) * 2


def by_torch(network, scaling, rows):
    with torch.no_grad():
        value, mean, stdev = network(torch.from_numpy(scaling.scale(rows)))
    return value.numpy(), mean.numpy(), stdev.expand_as(mean).numpy()


@pytest.mark.parametrize(("observation", "action", "hidden", "dependent"), SIZES)
def test_actor_equals_the_torch_forward(observation, action, hidden, dependent):
    network, scaling, actor = make(observation, action, hidden, dependent)
    rows = observations(50, observation)
    value, mean, stdev = by_torch(network, scaling, rows)
    for i, row in enumerate(rows):
        acted = actor.act(0, i, row, greedy=True)
        assert acted.value == pytest.approx(value[i], abs=1e-5)
        np.testing.assert_allclose(acted.raw_action, mean[i], atol=1e-5)
        np.testing.assert_allclose(acted.behaviour, np.concatenate([mean[i], stdev[i]]), atol=1e-5)
    np.testing.assert_allclose(actor.values(rows), value, atol=1e-5)


def test_a_matrix_gives_the_bits_of_single_rows():
    _, _, actor = make()
    rows = observations(9, 17)
    acted = np.array([actor.act(0, 0, row).value for row in rows], np.float32)
    np.testing.assert_array_equal(actor.values(rows), acted)
    np.testing.assert_array_equal(actor.values(rows[4:5]), acted[4:5])


def test_updates_in_place_are_seen():
    network, scaling, actor = make()
    row = observations(1, 17)[0]
    before = actor.act(0, 0, row, greedy=True)
    with torch.no_grad():
        network.head.bias += 1.0
        network.raw_stdev += 0.5
    after = actor.act(0, 0, row, greedy=True)
    assert after.value == pytest.approx(before.value + 1.0, abs=1e-5)
    assert (after.behaviour[6:] > before.behaviour[6:]).all()
    scaling.mean[:] += 1.0
    assert actor.act(0, 0, row).value != after.value
    network.load_state_dict({k: torch.zeros_like(v) for k, v in network.state_dict().items()})
    assert actor.act(0, 0, row).value == 0.0


def test_replaced_weights_need_bind():
    network, _, actor = make()
    row = observations(1, 17)[0]
    old = actor.act(0, 0, row).value
    network.head.bias.data = network.head.bias.data + 1.0
    assert actor.act(0, 0, row).value == old
    actor.bind()
    assert actor.act(0, 0, row).value == pytest.approx(old + 1.0, abs=1e-5)


def test_noise_is_a_function_of_seed_step_and_lane():
    _, _, actor = make()
    _, _, other = make()
    _, _, reseeded = make(seed=1)
    row = observations(1, 17)[0]
    drawn = actor.act(3, 100, row).raw_action
    np.testing.assert_array_equal(other.act(3, 100, row).raw_action, drawn)
    for different in (actor.act(2, 100, row), actor.act(3, 101, row), reseeded.act(3, 100, row)):
        assert (different.raw_action != drawn).all()


def test_draw_is_mean_plus_scaled_philox_noise():
    _, _, actor = make(5, 3, (8,))
    acted = actor.act(7, 42, observations(1, 5)[0])
    key = stream_key(0, "action noise")
    mean, stdev = acted.behaviour[:3], acted.behaviour[3:]
    z = []
    for pair in range(2):
        block = philox(*key, *(np.uint64(x) for x in (42, 7, pair, 0)))
        z.extend(normal_pair(block[0], block[1]))
    assert np.abs(z[:3]).max() < NOISE_LIMIT
    np.testing.assert_allclose(acted.raw_action, mean + stdev * np.array(z[:3]), rtol=1e-6)


def test_noise_is_standard_normal_within_three():
    _, _, actor = make(2, 2, (4,))
    row = np.zeros(2)
    drawn = np.array([actor.act(0, step, row).raw_action for step in range(40_000)], np.float64)
    behaviour = actor.act(0, 0, row).behaviour
    z = ((drawn - behaviour[:2]) / behaviour[2:]).ravel()
    assert np.abs(z).max() <= NOISE_LIMIT + 1e-5
    assert z.mean() == pytest.approx(0.0, abs=4 / math.sqrt(z.size))
    assert z.std() == pytest.approx(0.99, abs=0.02)
    outside_two = (np.abs(z) > 2).mean()
    assert outside_two == pytest.approx(0.0455 - 0.0027 + 0.0027 / 3, abs=0.004)


def test_evaluate_gives_importance_ratios():
    network, scaling, actor = make(4, 2, (8, 8))
    rows = observations(6, 4)
    acted = [actor.act(0, i, row) for i, row in enumerate(rows)]
    raw = np.array([a.raw_action for a in acted])
    behaviour = np.array([a.behaviour for a in acted])
    kinds = np.array([1, 1, 1, 1, 3, 0], np.uint8)
    values, ratios = actor.evaluate(rows, raw, behaviour, kinds)
    np.testing.assert_array_equal(values, np.array([a.value for a in acted], np.float32))
    np.testing.assert_allclose(ratios[:4], 1.0, rtol=1e-5)
    assert math.isnan(ratios[5])
    behaviour[:, :2] += 0.3
    _, mean, stdev = by_torch(network, scaling, rows)
    policy = torch.distributions.Normal(torch.from_numpy(mean), torch.from_numpy(stdev))
    old = torch.distributions.Normal(
        torch.from_numpy(behaviour[:, :2]), torch.from_numpy(behaviour[:, 2:])
    )
    action = torch.from_numpy(raw)
    log_policy = policy.log_prob(action).sum(-1)
    expected = (log_policy - old.log_prob(action).sum(-1)).exp().numpy()
    _, ratios = actor.evaluate(rows, raw, behaviour, kinds)
    np.testing.assert_allclose(ratios[:4], expected[:4], rtol=1e-4)
    assert ratios[4] == pytest.approx(4 * math.exp(log_policy[4]), rel=1e-4)


@pytest.mark.parametrize("distance", [2.5, 1000.0])
def test_importance_ratios_are_clamped(distance):
    _, _, actor = make(4, 2, (8, 8))
    rows = observations(2, 4)
    policy = actor.act(0, 0, rows[0], greedy=True).behaviour
    far = policy[:2] + np.float32(distance)
    stdev = [0.3, 0.3]
    raw = np.array([policy[:2], far], np.float32)
    behaviour = np.array([[*far, *stdev], [*far, *stdev]], np.float32)
    _, ratios = actor.evaluate(rows[[0, 0]], raw, behaviour, np.ones(2, np.uint8))
    np.testing.assert_allclose(ratios, [math.exp(7), math.exp(-7)], rtol=1e-6)


def test_observations_of_another_size_are_refused():
    network, _, actor = make(4, 2, (8,))
    with pytest.raises(ConfigError, match=r"\(5,\).*\(4,\)"):
        actor.act(0, 0, np.zeros(5))
    with pytest.raises(ConfigError, match="5 numbers"):
        GaussianActor(network, ObservationScaling(5), seed=0)
    with pytest.raises(ConfigError, match="float64"):
        GaussianActor(network.double(), ObservationScaling(4), seed=0)
