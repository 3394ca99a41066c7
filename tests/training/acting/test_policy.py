from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from storage.environment_spec import EnvironmentSpec
from storage.errors import UnsupportedSpaceError
from storage.layout import BehaviourKind
from training.acting.actor import GaussianActor
from training.acting.policy import GaussianPolicy, RandomPolicy
from training.agents.vracer.network import VRacerNetwork
from training.scaling import ObservationScaling

BOX = spaces.Box(-2.0, 10.0, (3,), np.float32)


def draws(policy, count=2000):
    return [policy.act(0, step, None) for step in range(count)]


def test_random_box_actions_are_uniform_and_raw_actions_their_inverse():
    steps = draws(RandomPolicy(BOX, seed=0))
    raw = np.array([step.raw_action for step in steps])
    actions = np.array([step.action for step in steps])
    assert all(step.action in BOX for step in steps)
    np.testing.assert_allclose(actions, -2.0 + 6.0 * (raw + 1.0), atol=1e-5)
    assert raw.mean(0) == pytest.approx(np.zeros(3), abs=0.06)
    assert raw.var(0) == pytest.approx(np.full(3, 1 / 3), abs=0.03)
    assert np.abs(np.corrcoef(raw.T) - np.eye(3)).max() < 0.1
    assert {step.behaviour_kind for step in steps} == {BehaviourKind.UNIFORM}
    assert steps[0].behaviour is None
    assert steps[0].value is None


def test_random_draws_are_a_function_of_seed_step_and_lane():
    policy = RandomPolicy(BOX, seed=0)
    first = policy.act(1, 5, None).raw_action
    np.testing.assert_array_equal(RandomPolicy(BOX, seed=0).act(1, 5, None).raw_action, first)
    for other in (policy.act(1, 6, None), policy.act(2, 5, None)):
        assert (other.raw_action != first).all()
    assert (RandomPolicy(BOX, seed=1).act(1, 5, None).raw_action != first).all()


def test_a_box_without_bounds_draws_standard_normal_numbers():
    space = spaces.Box(np.array([-np.inf, -1.0]), np.array([np.inf, 1.0]), dtype=np.float64)
    steps = draws(RandomPolicy(space, seed=0))
    raw = np.array([step.raw_action for step in steps])
    assert raw.std(0) == pytest.approx(np.ones(2), abs=0.06)
    assert all(step.action in space for step in steps)
    np.testing.assert_array_equal([step.action[0] for step in steps], raw[:, 0])
    assert steps[0].behaviour_kind == BehaviourKind.GAUSSIAN
    assert steps[0].behaviour.tolist() == [0, 0, 1, 1]


def test_random_discrete_actions():
    steps = draws(RandomPolicy(spaces.Discrete(3, start=5), seed=0))
    values, counts = np.unique([step.action for step in steps], return_counts=True)
    assert values.tolist() == [5, 6, 7]
    assert counts / 2000 == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    assert steps[0].behaviour_kind == BehaviourKind.CATEGORICAL
    assert steps[0].behaviour.tolist() == pytest.approx([1 / 3] * 3)
    assert steps[0].raw_action is None
    assert steps[0].action in spaces.Discrete(3, start=5)


@pytest.mark.parametrize(
    ("space", "probabilities"),
    [
        (spaces.MultiDiscrete([2, 4], start=[1, -1]), [1 / 2] * 2 + [1 / 4] * 4),
        (spaces.MultiBinary((2, 2)), [1 / 2] * 8),
        (spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(1)]), [1 / 2] * 4),
    ],
)
def test_random_product_spaces_concatenate_probabilities(space, probabilities):
    steps = draws(RandomPolicy(space, seed=0), 50)
    assert all(step.action in space for step in steps)
    assert len({str(step.action) for step in steps}) > 2
    assert steps[0].behaviour.tolist() == pytest.approx(probabilities)
    assert steps[0].behaviour_kind == BehaviourKind.CATEGORICAL


def test_random_mixed_spaces_have_an_unknown_behaviour():
    space = spaces.Dict({"move": BOX, "fire": spaces.Discrete(2)})
    steps = draws(RandomPolicy(space, seed=0), 50)
    assert all(step.action in space for step in steps)
    assert steps[0].behaviour_kind == BehaviourKind.UNKNOWN
    assert steps[0].behaviour is None
    assert steps[0].raw_action is None


def gaussian(observation_space, action_space=BOX):
    sizes = spaces.utils.flatdim(observation_space), 3
    network = VRacerNetwork(*sizes, hidden=(8,), generator=torch.Generator().manual_seed(0))
    actor = GaussianActor(network, ObservationScaling(sizes[0]), seed=0)
    spec = EnvironmentSpec("Test-v0", observation_space, action_space)
    return GaussianPolicy(actor, spec), actor


def test_gaussian_policy_draws_in_the_box_and_keeps_the_raw_action():
    policy, actor = gaussian(spaces.Box(-np.inf, np.inf, (2,), np.float64))
    observation = np.array([0.5, -2.0])
    step = policy.act(1, 7, observation)
    drawn = actor.act(1, 7, observation)
    np.testing.assert_array_equal(step.raw_action, drawn.raw_action)
    np.testing.assert_array_equal(step.behaviour, drawn.behaviour)
    assert step.behaviour_kind == BehaviourKind.GAUSSIAN
    assert step.action in BOX
    expected = np.clip(-2.0 + 6.0 * (drawn.raw_action + 1.0), -2.0, 10.0)
    np.testing.assert_allclose(step.action, expected, atol=1e-5)
    assert step.value == drawn.value == policy.value(observation)
    greedy = policy.act(1, 7, observation, greedy=True)
    np.testing.assert_array_equal(greedy.raw_action, step.behaviour[:3])


@pytest.mark.parametrize(
    ("space", "observation", "flat"),
    [
        (spaces.Box(0, 255, (2, 1), np.uint8), np.array([[3], [4]], np.uint8), [3.0, 4.0]),
        (
            spaces.Dict({"b": spaces.Box(-1, 1, (1,)), "a": spaces.MultiBinary(2)}),
            {"a": np.array([0, 1], np.int8), "b": np.array([0.5], np.float32)},
            [0.0, 1.0, 0.5],
        ),
    ],
)
def test_gaussian_policy_reads_any_observation(space, observation, flat):
    leaves = list(space.spaces) if isinstance(space, spaces.Dict) else []
    assert leaves in ([], ["a", "b"])
    policy, actor = gaussian(space)
    assert policy.act(0, 0, observation).value == actor.act(0, 0, np.array(flat)).value


def test_gaussian_policy_reads_a_discrete_observation():
    network = VRacerNetwork(1, 3, hidden=(8,), generator=torch.Generator().manual_seed(0))
    actor = GaussianActor(network, ObservationScaling(1), seed=0)
    policy = GaussianPolicy(actor, EnvironmentSpec("Test-v0", spaces.Discrete(5), BOX))
    assert policy.act(0, 0, np.int64(3)).value == actor.act(0, 0, np.array([3.0])).value


def test_gaussian_policy_refuses_discrete_actions():
    with pytest.raises(UnsupportedSpaceError, match="needs boxes"):
        gaussian(spaces.Box(-1, 1, (2,)), spaces.Discrete(2))


def test_arrays_of_a_decision_are_never_written_again():
    policy, _ = gaussian(spaces.Box(-np.inf, np.inf, (2,), np.float64))
    first = policy.act(0, 0, np.zeros(2))
    kept = first.action.copy(), first.raw_action.copy(), first.behaviour.copy()
    policy.act(0, 1, np.ones(2))
    np.testing.assert_array_equal(first.action, kept[0])
    np.testing.assert_array_equal(first.raw_action, kept[1])
    np.testing.assert_array_equal(first.behaviour, kept[2])
