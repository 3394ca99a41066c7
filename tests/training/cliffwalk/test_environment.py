from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation

from storage.errors import ConfigError
from training.cliffwalk import BlindCliffwalk, true_values
from training.cliffwalk.environment import discount, right_action, transitions
from training.environments.environment import describe_environment, make_environment
from training.environments.environment_config import EnvironmentConfig

IDENTIFIER = "training.cliffwalk:BlindCliffwalk-v0"


def walk(env: BlindCliffwalk, state: int) -> None:
    env.reset()
    for right in [0, 1, 0, 1][:state]:
        env.step(right)


@pytest.mark.parametrize(
    ("state", "action", "result"),
    [
        (0, 0, (1, 0.0, False)),
        (0, 1, (0, 0.0, True)),
        (1, 1, (2, 0.0, False)),
        (1, 0, (1, 0.0, True)),
        (2, 0, (3, 0.0, False)),
        (2, 1, (2, 0.0, True)),
        (3, 1, (3, 1.0, True)),
        (3, 0, (3, 0.0, True)),
    ],
)
def test_transitions_of_four_states(state: int, action: int, result: tuple) -> None:
    env = BlindCliffwalk(4)
    walk(env, state)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated) == result
    assert truncated is False
    assert info == {}


def test_true_values_are_those_of_the_reference() -> None:
    values = true_values(4)
    assert values[range(4), [0, 1, 0, 1]].tolist() == [0.421875, 0.5625, 0.75, 1.0]
    assert values[range(4), [1, 0, 1, 0]].tolist() == [0.0] * 4


def test_true_values_satisfy_bellman_s_equation() -> None:
    env, values = BlindCliffwalk(4), true_values(4)
    for state in range(4):
        for action in range(2):
            walk(env, state)
            after, reward, terminated, _, _ = env.step(action)
            target = reward + (0.0 if terminated else discount(4) * values[after].max())
            assert values[state, action] == pytest.approx(target, abs=1e-15)


def test_the_right_action_alternates() -> None:
    assert [right_action(state) for state in range(5)] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(("n", "steps"), [(2, 6), (4, 30), (8, 510), (16, 131070)])
def test_memory_sizes(n: int, steps: int) -> None:
    assert transitions(n) == steps


def test_gymnasium_s_checker_has_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("BlindCliffwalk-v0", n=5).unwrapped, skip_render_check=True)


def test_it_is_made_from_settings() -> None:
    config = EnvironmentConfig(IDENTIFIER, kwargs={"n": 6})
    env = make_environment(config)
    assert env.observation_space == gymnasium.spaces.Discrete(6)
    assert env.action_space == gymnasium.spaces.Discrete(2)
    spec = describe_environment(config)
    assert (spec.id, spec.kwargs, spec.max_episode_steps) == (
        "BlindCliffwalk-v0",
        {"n": 6},
        None,
    )


def test_a_standard_wrapper_gives_vectors() -> None:
    env = FlattenObservation(gymnasium.make("BlindCliffwalk-v0", n=3))
    assert np.array_equal(env.reset()[0], [1, 0, 0])
    assert np.array_equal(env.step(0)[0], [0, 1, 0])


@pytest.mark.parametrize("n", [1, 0, -4, 2.0, "8", True])
def test_impossible_sizes_are_refused(n: object) -> None:
    with pytest.raises(ConfigError, match="whole number of states, at least 2"):
        BlindCliffwalk(n)  # type: ignore[arg-type]
