from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from storage import EnvironmentSpec
from training.agents.dqn.policy import DiscretePolicy

VALUES = np.array([[0.1, 0.7, 0.4]], np.float32)


class Known:
    """An actor whose values are known; counts how often it is asked."""

    asked = 0

    def bind(self):
        pass

    def values(self, observations):
        self.asked += 1
        self.seen = observations
        return VALUES


def policy(exploration=lambda step: 0.3, actor=None, *, temperature=0.0, seed=1, **spaces):
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    given = {"observation_space": box, "action_space": gymnasium.spaces.Discrete(3, start=5)}
    spec = EnvironmentSpec("Test-v0", **(given | spaces))
    return DiscretePolicy(actor or Known(), spec, exploration, temperature=temperature, seed=seed)


OBSERVATION = np.zeros(2, np.float32)


def test_a_step_holds_the_whole_distribution():
    step = policy().act(0, 7, OBSERVATION)
    assert step.behaviour == pytest.approx([0.1, 0.8, 0.1])
    assert step.behaviour.dtype == np.float32
    assert (step.behaviour_kind, step.raw_action, step.value) == (2, None, None)
    assert step.action in (5, 6, 7)
    assert isinstance(step.action, np.int64)
    assert policy().value(OBSERVATION) is None


def test_actions_have_the_spaces_dtype():
    space = gymnasium.spaces.Discrete(3, dtype=np.int32)
    step = policy(action_space=space).act(0, 7, OBSERVATION)
    assert isinstance(step.action, np.int32)
    assert space.contains(step.action)


def test_draws_are_a_function_of_seed_step_and_lane():
    acts = [policy().act(lane, step, OBSERVATION).action for step in range(50) for lane in (0, 1)]
    again = policy()
    backwards = [
        again.act(lane, step, OBSERVATION).action for step in range(49, -1, -1) for lane in (1, 0)
    ]
    assert acts == backwards[::-1]
    other = policy(seed=2)
    assert acts != [other.act(lane, s, OBSERVATION).action for s in range(50) for lane in (0, 1)]
    assert acts[::2] != acts[1::2]


def test_draws_follow_the_distribution():
    made = policy(lambda step: 0.6)
    drawn = [int(made.act(0, step, OBSERVATION).action) - 5 for step in range(6000)]
    assert np.bincount(drawn) / 6000 == pytest.approx([0.2, 0.6, 0.2], abs=0.025)


def test_exploration_goes_by_the_step_and_the_warmup_asks_no_network():
    actor = Known()
    made = policy(lambda step: 1.0 if step < 10 else 0.0, actor)
    assert made.act(0, 9, OBSERVATION).behaviour == pytest.approx([1 / 3] * 3)
    assert actor.asked == 0
    assert made.act(0, 10, OBSERVATION).behaviour.tolist() == [0, 1, 0]
    assert actor.asked == 1
    made.hold(0.3)
    assert made.act(0, 9, OBSERVATION).behaviour == pytest.approx([0.1, 0.8, 0.1])


def test_greedy_is_the_best_action_whatever_the_policy():
    for temperature in (0.0, 3.0):
        made = policy(lambda step: 1.0, temperature=temperature)
        for step in range(20):
            act = made.act(0, step, OBSERVATION, greedy=True)
            assert act.action == 6
            assert act.behaviour.tolist() == [0, 1, 0]


def test_the_softmax_does_not_explore_besides():
    made = policy(lambda step: 1.0, temperature=0.5)
    powers = np.exp(VALUES[0].astype(np.float64) / 0.5)
    assert made.act(0, 0, OBSERVATION).behaviour == pytest.approx(powers / powers.sum(), rel=1e-6)


def test_nested_observations_reach_the_actor_by_leaf():
    actor = Known()
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    space = gymnasium.spaces.Dict({"a": box, "b": gymnasium.spaces.Discrete(4)})
    policy(actor=actor, observation_space=space).act(0, 0, {"a": OBSERVATION, "b": 3})
    assert list(actor.seen) == ["observation.a", "observation.b"]
    assert actor.seen["observation.b"].tolist() == [3]
