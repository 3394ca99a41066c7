from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

import storage
from storage.environment_spec import EnvironmentSpec
from storage.layout import BehaviourKind
from storage.randomness import normal_pair, philox, stream_key, uniform_double
from tests.training.tiny import differences, rows, run, tiny_config
from training.acting.actor import GaussianActor
from training.acting.noise import OU_DECAY, WHITE, EpisodeClock, Noise, noise_pair
from training.acting.policy import GaussianPolicy
from training.agents.ddpg.config import DdpgConfig
from training.agents.vracer.network import VRacerNetwork
from training.checkpoints.checkpoint_file import read_checkpoint
from training.refer import PRESETS
from training.scaling import ObservationScaling

KEY = stream_key(0, "action noise")
LANES = 3


def draws(step: int, lane: int, pair: int = 0) -> np.ndarray:
    """The independent draws of one act, as they are without any correlation."""
    block = philox(*KEY, *(np.uint64(x) for x in (step, lane, pair, 0)))
    bits = [np.uint64(word) for word in block]
    normal = normal_pair(bits[0], bits[1])
    within = [6.0 * uniform_double(word) - 3.0 for word in bits[2:]]
    return np.array([z if abs(z) <= 3 else u for z, u in zip(normal, within, strict=True)])


def process(steps: int, lane: int, episode_start: int) -> np.ndarray:
    """The process as it is written down: noise xi + 0.85 x, then x becomes 0.85 x + xi."""
    state, noises = np.zeros(2), []
    for k in range(steps):
        xi = draws(lane + (episode_start + k) * LANES, lane)
        noises.append(xi + 0.85 * state)
        state = 0.85 * state + xi
    return np.array(noises)


def test_the_sum_of_draws_is_the_process():
    expected = process(400, 1, 7)
    assert np.abs(expected).max() < 3 / (1 - OU_DECAY)
    reach = Noise(OU_DECAY).reach
    assert 0.85**reach < 2**-53 < 0.85 ** (reach - 1)
    for k in (0, 1, 2, 50, reach, 399):
        at = 1 + (7 + k) * LANES
        found = noise_pair(KEY, at, 1, 0, OU_DECAY, LANES, min(k, reach))
        assert found == pytest.approx(expected[k], rel=1e-13, abs=1e-13)


def test_white_noise_is_the_draw_itself():
    assert WHITE.reach == 0
    assert noise_pair(KEY, 42, 1, 2, 0.0, 1, 0) == tuple(draws(42, 1, 2))
    assert Noise.named("gaussian", 4) == WHITE
    assert Noise.named("ornstein_uhlenbeck", 4) == Noise(0.85, 4)


def test_its_deviation_grows_to_that_of_the_stationary_process():
    late = np.array(
        [noise_pair(KEY, 300 + 250 * i, 0, 0, OU_DECAY, 1, 227) for i in range(4000)]
    ).ravel()
    assert late.mean() == pytest.approx(0.0, abs=0.1)
    assert late.std() == pytest.approx(0.99 / math.sqrt(1 - 0.85**2), rel=0.04)


def test_a_clock_counts_the_steps_of_each_lanes_episode():
    clock = EpisodeClock(LANES)
    clock.begin(0, 0)
    clock.begin(2, 5)
    assert [clock.steps(0, step) for step in (30, 33, 36, 36, 33)] == [0, 1, 2, 2, 1]
    assert [clock.steps(2, step) for step in (32, 35)] == [5, 6]
    assert clock.steps(1, 31) == 0
    clock.begin(0, 0)
    assert clock.steps(0, 39) == 0


def policy(noise: Noise) -> GaussianPolicy:
    network = VRacerNetwork(2, 2, hidden=(8,), generator=torch.Generator().manual_seed(0))
    actor = GaussianActor(network, ObservationScaling(2), seed=0, noise=noise)
    box = spaces.Box(-1.0, 1.0, (2,), np.float32)
    return GaussianPolicy(actor, EnvironmentSpec("Test-v0", box, box))


def noises(acting: GaussianPolicy, lane: int, first: int, count: int) -> np.ndarray:
    found = []
    for k in range(first, first + count):
        step = acting.act(lane, lane + k * LANES, np.zeros(2))
        mean, stdev = step.behaviour[:2], step.behaviour[2:]
        found.append((np.float64(step.raw_action) - mean) / stdev)
    return np.array(found)


def test_a_policy_follows_the_process_in_every_lane_and_begins_anew_with_an_episode():
    acting = policy(Noise(OU_DECAY, LANES))
    for lane in (0, 2):
        acting.begin(lane, 0)
        assert noises(acting, lane, 4, 30) == pytest.approx(process(30, lane, 4), abs=1e-5)
    assert acting.act(0, 0, np.zeros(2), greedy=True).raw_action is not None
    assert noises(acting, 0, 34, 1) == pytest.approx(process(31, 0, 4)[-1:], abs=1e-5)
    acting.begin(0, 0)
    assert noises(acting, 0, 35, 5) == pytest.approx(process(5, 0, 35), abs=1e-5)


def test_a_policy_goes_on_bit_equal_in_an_episode_that_was_left_open():
    straight, resumed = (policy(Noise(OU_DECAY, LANES)) for _ in range(2))
    straight.begin(1, 0)
    expected = noises(straight, 1, 9, 300)
    resumed.begin(1, 260)
    assert np.array_equal(noises(resumed, 1, 269, 40), expected[260:])
    assert np.array_equal(noises(straight, 1, 100, 1), expected[91:92])


def test_correlated_behaviour_is_marked_as_nominal():
    for noise, kind in ((WHITE, BehaviourKind.GAUSSIAN), (Noise(0.85), 4)):
        assert policy(noise).act(0, 3, np.zeros(2)).behaviour_kind == kind


def test_runs_with_correlated_noise_resume_bit_equal(tmp_path):
    agent = DdpgConfig(
        hidden=[8, 8],
        batch_size=16,
        scaling_interval=20,
        noise="ornstein_uhlenbeck",
        refer=PRESETS["ER"],
        engine="eager",
    )
    config = tiny_config(
        rounds=24, lanes=2, agent=agent, environment="tests.training.zoo.LongDrift"
    )
    run(config, tmp_path / "straight")
    run(config, tmp_path / "resumed", max_steps=20)
    left = read_checkpoint(tmp_path / "resumed" / "checkpoints" / "last.ckpt")
    lanes = left["OnlineExperience"]["position"]["lanes"]
    assert all(lane["open"]["steps"] > 5 for lane in lanes), lanes
    run(config, tmp_path / "resumed", resume=True)
    kept = [
        read_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt")
        for name in ("straight", "resumed")
    ]
    assert differences(kept[0]["state_dict"], kept[1]["state_dict"]) == []
    assert rows(tmp_path / "straight") == rows(tmp_path / "resumed")
    columns = [stored(tmp_path / name / "store") for name in ("straight", "resumed")]
    for one, other in zip(*columns, strict=True):
        assert one.tobytes() == other.tobytes()
    other = dataclasses.replace(config, agent=dataclasses.replace(agent, noise="gaussian"))
    run(other, tmp_path / "gaussian")
    assert not np.array_equal(columns[0][0], stored(tmp_path / "gaussian" / "store")[0])


def stored(path) -> list[np.ndarray]:
    with storage.open(path) as store:
        episodes = list(store.iterate_episodes())
        names = ("raw_action", "behaviour", "behaviour_kind")
        return [np.concatenate([each.columns[name] for each in episodes]) for name in names]
