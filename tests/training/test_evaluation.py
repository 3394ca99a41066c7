from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
from lightning.pytorch.callbacks import Callback

import storage
from storage.randomness import derive_seed
from tests.training.tiny import ROUND, differences, rows, run, tiny_config
from tests.training.zoo import Counting
from training import evaluation
from training.assembly import build, trainer
from training.evaluation import Episode, evaluation_rounds, longest_episode, play_episode


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

    def watched(env: gymnasium.Env, act, seed: int, *_) -> Episode:
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


def test_keyword_arguments_of_evaluations_are_theirs_alone(tmp_path):
    """Episodes of Drift have 5 steps up to what ``longest`` allows."""
    config = tiny_config(rounds=16, evaluate_every=8 * ROUND)
    kwargs = {"longest": 6}
    changed = dataclasses.replace(config.evaluation, environment_kwargs=kwargs)
    agent = run(dataclasses.replace(config, evaluation=changed), tmp_path)
    lengths = {row["evaluation_length"] for row in rows(tmp_path)} - {""}
    assert lengths == {"5.0"}
    with storage.open(tmp_path / "store") as store:
        assert max(len(each.reward) for each in store.iterate_episodes()) > 5
    assert agent.config.environment.kwargs == {}


def test_intervals_are_whole_rounds():
    assert evaluation_rounds(10_000, 64) == 156
    assert evaluation_rounds(10, 64) == 1


ENDLESS = "tests.training.zoo.Alike"


def endless(most: int, **changes):
    """A run whose greedy episodes never end by themselves."""
    config = tiny_config(environment=ENDLESS, **changes)
    return dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, max_steps=most)
    )


def test_an_episode_is_cut_at_the_most_steps():
    assert play_episode(Counting(4), np.zeros_like, 1, 3) == Episode(1, 1.0 + 2 + 3, 3, cut=True)
    assert play_episode(Counting(4), np.zeros_like, 1, 4) == Episode(1, 10.0, 4)
    left = play_episode(Counting(4), np.zeros_like, 1, None, lambda steps: steps < 2)
    assert left == Episode(1, 3.0, 2, cut=True)


def test_only_environments_without_a_limit_are_given_one():
    assert longest_episode(Counting(4), 9) == 9
    assert longest_episode(gymnasium.wrappers.TimeLimit(Counting(4), 20), 9) is None


def test_greedy_episodes_that_never_end_are_cut_and_told_of_once(tmp_path):
    config = endless(50, rounds=16, evaluate_every=ROUND)
    with pytest.warns(
        UserWarning, match=r"2 of the 2 greedy .* 50 steps \(evaluation\.max_"
    ) as told:
        run(config, tmp_path / "evaluated")
    assert sum("evaluation.max_steps" in str(each.message) for each in told) == 1
    lengths = [row["evaluation_length"] for row in rows(tmp_path / "evaluated")]
    assert {each for each in lengths if each} == {"50.0"}
    assert len([each for each in lengths if each]) > 1


class Stop(Callback):
    """Asks for a stop within the nth step of an evaluation, as a signal does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        self.stop_asked = False
        played = play_episode

        def watched(env, act, seed, most, going):
            def asked(steps: int) -> bool:
                self.stop_asked = self.stop_asked or steps >= step
                return going(steps)

            return played(env, act, seed, most, asked)

        monkeypatch.setattr(evaluation, "play_episode", watched)


def test_a_stop_leaves_an_evaluation_at_its_next_step_and_nothing_else_changes(
    tmp_path, monkeypatch
):
    """The run's bits are those of one that was never evaluated."""
    config = endless(10**9, rounds=12, evaluate_every=10 * ROUND)
    module, data = build(config, tmp_path / "stopped")
    made = trainer(config, tmp_path / "stopped")
    made.callbacks.insert(0, Stop(monkeypatch, 7))
    made.fit(module, data)
    assert module.steps == 10 * ROUND, "no further round"
    kept = rows(tmp_path / "stopped")
    assert [row["evaluation_return"] for row in kept if "evaluation_return" in row] in ([], [""])
    assert not (tmp_path / "stopped/checkpoints/best.ckpt").exists()
    assert (tmp_path / "stopped/checkpoints/last.ckpt").is_file()
    straight = run(endless(1, rounds=10), tmp_path / "straight")
    assert differences(straight.state_dict(), module.state_dict()) == []
