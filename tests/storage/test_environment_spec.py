from __future__ import annotations

import json

import gymnasium
import numpy as np

import storage


def test_from_a_registered_environment() -> None:
    env = gymnasium.make("MountainCarContinuous-v0", goal_velocity=0.5)
    spec = storage.EnvironmentSpec.from_env(gymnasium.wrappers.NormalizeObservation(env))
    assert spec.id == "MountainCarContinuous-v0"
    assert spec.kwargs == {"goal_velocity": 0.5}
    assert spec.max_episode_steps == 999
    assert spec.wrappers[0]["name"] == "NormalizeObservation"
    again = storage.EnvironmentSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec


def test_from_a_vector_environment_and_from_one_without_a_spec() -> None:
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    spec = storage.EnvironmentSpec.from_env(vector)
    assert spec.observation_space == vector.single_observation_space
    assert spec.action_space == vector.single_action_space
    vector.close()

    class Bare(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

    assert storage.EnvironmentSpec.from_env(Bare()).id.endswith("Bare")


def test_what_json_cannot_hold_becomes_text() -> None:
    space = gymnasium.spaces.Discrete(2)
    spec = storage.EnvironmentSpec("X", space, space, kwargs={"f": np.float64, "limit": np.inf})
    described = json.loads(json.dumps(spec.to_json(), allow_nan=False))
    assert described["kwargs"] == {"f": "<class 'numpy.float64'>", "limit": "inf"}
