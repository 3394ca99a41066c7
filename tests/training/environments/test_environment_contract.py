"""Environments that fail or break gymnasium's contract: one error that says where."""

from __future__ import annotations

import logging
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import storage
from storage import EnvironmentSpec
from storage.errors import EnvironmentFaultError, NonFiniteError, SchemaMismatchError
from tests.training.test_collector import StepNumbers
from tests.training.zoo import Counting
from training.collector import ATTEMPTS, Collector
from training.environments.lanes import EnvLanes
from training.environments.vector_lanes import VectorLanes


class Broken(Counting):
    """Ends its episodes after two steps; ``wrong`` changes what each step returns."""

    def __init__(self, wrong, length: int = 2):
        super().__init__(length)
        self.wrong = wrong
        self.steps = 0

    def step(self, action):
        self.steps += 1
        shown = super().step(action)
        return self.wrong(shown) if self.steps == 4 else shown


def _collect(path, lanes, steps: int = 12, nonfinite="refuse"):
    env = Counting()
    spec = EnvironmentSpec("Counting", env.observation_space, env.action_space)
    with (
        storage.create(path, spec) as store,
        store.writer(lanes=lanes.n_lanes, nonfinite=nonfinite) as writer,
    ):
        collector = Collector(lanes, writer, StepNumbers(), seed=7, nonfinite=nonfinite)
        while collector.steps < steps:
            collector.advance()
        return collector


def _raising(_):
    raise KeyError("joint")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (_raising, EnvironmentFaultError, r"step\(array\(\[7\.\].*raised KeyError: 'joint'"),
        (lambda shown: shown[:4], EnvironmentFaultError, "4 values of types ndarray, float, bool"),
        (lambda shown: None, EnvironmentFaultError, "one value of type NoneType; gymnasium's step"),
        (lambda shown: (*shown[:4], None), EnvironmentFaultError, "info is a dict"),
        (
            lambda shown: (shown[0], None, *shown[2:]),
            EnvironmentFaultError,
            "the reward None; it must be one number",
        ),
        (
            lambda shown: (shown[0], np.zeros(2), *shown[2:]),
            EnvironmentFaultError,
            r"the reward array\(\[0\., 0\.\]\)",
        ),
        (
            lambda shown: (*shown[:2], None, *shown[3:]),
            EnvironmentFaultError,
            "terminated = None; it must be True or False",
        ),
        (lambda shown: (np.zeros(3), *shown[1:]), SchemaMismatchError, r"shape \(3,\)"),
        (lambda shown: (None, *shown[1:]), SchemaMismatchError, "dtype object"),
        (lambda shown: ([[0], [1, 2]], *shown[1:]), SchemaMismatchError, "inhomogeneous"),
    ],
)
def test_a_broken_step_is_named_and_what_was_committed_is_kept(tmp_path, wrong, error, message):
    lanes = EnvLanes([Counting, partial(Broken, wrong)])
    with pytest.raises(error, match=f"(?s)^lane 1, episode 1, step 1: (?!lane).*{message}"):
        _collect(tmp_path / "s", lanes)
    with storage.open(tmp_path / "s") as store:
        assert [each.record.length for each in store.iterate_episodes()] == [3, 1, 2, 1]


@pytest.mark.parametrize(
    ("reward", "ended"), [(np.array([2.0]), np.array([True])), (np.float32(2), 1), (2, np.True_)]
)
def test_single_numbers_in_arrays_are_numbers(tmp_path, reward, ended):
    def wrong(shown):
        return shown[0], reward, False, ended, {}

    _collect(tmp_path / "s", EnvLanes([partial(Broken, wrong, 99)]), 5)
    with storage.open(tmp_path / "s") as store:
        records = [each.record for each in store.iterate_episodes()]
        assert [record.length for record in records] == [4, 1]
        assert records[0].episode_return == 1.0 + 2.0 + 3.0 + 2.0


class BareReset(Counting):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class FailingReset(Counting):
    def reset(self, *, seed=None, options=None):
        raise OSError("no simulator")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (BareReset, "lane 0, episode 0: .*one value of type ndarray; gymnasium's reset"),
        (FailingReset, r"lane 0, episode 0: .*reset\(seed=\d+\) raised OSError: no simulator"),
    ],
)
def test_a_broken_reset_is_named(tmp_path, env, message):
    """An observation of two numbers must not pass for an observation and an info."""
    with pytest.raises(EnvironmentFaultError, match=message):
        _collect(tmp_path / "s", EnvLanes([env]))


def test_a_vector_environment_that_fails_is_one_error(tmp_path):
    lanes = VectorLanes(SyncVectorEnv([Counting, partial(Broken, _raising)]))
    with pytest.raises(EnvironmentFaultError, match=r"lanes 0 to 1, step \d+ of them all: .*joint"):
        _collect(tmp_path / "s", lanes)


class BadStart(Counting):
    """Resets to NaN, but for every n-th time."""

    def __init__(self, good_every: int):
        super().__init__(3)
        self.good_every = good_every
        self.resets = 0

    def reset(self, *, seed=None, options=None):
        self.resets += 1
        observation, info = super().reset(seed=seed)
        return (observation if self.resets % self.good_every == 0 else observation * np.nan), info


def test_nan_from_reset_is_followed_by_the_next_seed(tmp_path):
    _collect(tmp_path / "s", EnvLanes([partial(BadStart, 5)]), 6, "end_episode")
    with storage.open(tmp_path / "s") as store:
        assert [each.record.lane_episode for each in store.iterate_episodes()] == [4, 9]
    with pytest.raises(NonFiniteError, match="not begun"):
        _collect(tmp_path / "t", EnvLanes([partial(BadStart, 5)]), 6)


class BadSteps(Counting):
    def step(self, action):
        observation, *rest = super().step(action)
        return observation * np.nan, *rest


@pytest.mark.parametrize("env", [partial(BadStart, 10**6), BadSteps])
def test_a_lane_without_any_finite_step_is_given_up(tmp_path, env, caplog):
    caplog.set_level(logging.ERROR)
    with pytest.raises(NonFiniteError, match=f"lane 0: in {ATTEMPTS} episodes in a row .0 to 19"):
        _collect(tmp_path / "s", EnvLanes([env]), 10**4, "end_episode")


def test_a_step_that_is_not_finite_now_and_then_is_none_too_many(tmp_path, caplog):
    class EverySecond(Counting):
        """Its odd episodes end by NaN in the second step."""

        resets = 0

        def reset(self, *, seed=None, options=None):
            self.resets += 1
            return super().reset(seed=seed)

        def step(self, action):
            observation, *rest = super().step(action)
            bad = self._step == 2 and self.resets % 2
            return (observation * np.nan if bad else observation), *rest

    caplog.set_level(logging.ERROR)
    collector = _collect(tmp_path / "s", EnvLanes([EverySecond]), 300, "end_episode")
    assert collector.steps == 300
