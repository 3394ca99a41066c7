from __future__ import annotations

import gymnasium
import numpy as np

from storage.randomness import derive_seed
from tests.training.tiny import ROUND, run, tiny_config
from tests.training.zoo import Counting
from training import evaluation
from training.evaluation import Episode, evaluation_rounds, play_episode


def test_an_episode_is_played_to_its_end_from_its_seed():
    env = Counting(4)
    seen = []

    def act(observation):
        seen.append(observation.tolist())
        return np.zeros(1, np.float32)

    assert play_episode(env, act, 17) == Episode(17, 1.0 + 2 + 3 + 4, 4)
    assert seen == [[17.0, float(step)] for step in range(4)]


def test_every_evaluation_has_seeds_of_its_own_and_acts_greedily(tmp_path, monkeypatch):
    seeds = []

    def watched(env: gymnasium.Env, act, seed: int) -> Episode:
        seeds.append(seed)
        observation = np.array([0.1, 0.2, 0.3])
        assert np.array_equal(act(observation), act(observation))
        return Episode(seed, 1.0, 1)

    monkeypatch.setattr(evaluation, "play_episode", watched)
    run(tiny_config(steps=11 * ROUND, evaluate_every=5 * ROUND), tmp_path)
    expected = [
        derive_seed(1, "evaluation", steps, number)
        for steps in (10 * ROUND, 11 * ROUND)
        for number in range(2)
    ]
    assert seeds == expected


def test_intervals_are_whole_rounds():
    assert evaluation_rounds(10_000, 64) == 156
    assert evaluation_rounds(10, 64) == 1
