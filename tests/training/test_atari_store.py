from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

import storage
from storage.position import StorePosition
from tests.training.atari_play import play
from training.acting.policy import RandomPolicy
from training.collector import Collector, reset_seed
from training.environments.environment import describe_recorded, make_environment
from training.environments.environment_config import EnvironmentConfig
from training.environments.lanes import EnvLanes
from training.evaluation import play_episode
from training.preflight import stored_environment

GAME = EnvironmentConfig("Atari/breakout", {"max_frames": 240, "noop_max": 8, "sticky": 0.25})
SEED = 4


def _store(path: Any) -> storage.Store:
    spec, recording = describe_recorded(GAME)
    return storage.create(path, spec, **dataclasses.asdict(recording))


def _collector(store: storage.Store, writer: Any) -> Collector:
    lanes = EnvLanes([partial(make_environment, GAME)] * 2)
    policy = RandomPolicy(store.env_spec.action_space, seed=SEED)
    return Collector(lanes, writer, policy, seed=SEED, life_loss=store.schema.life_loss)


def _advance(collector: Collector, steps: int) -> None:
    while collector.steps < steps:
        collector.advance()


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> storage.Store:
    """Two lanes, 130 steps each: two episodes of 60 steps and one that is cut."""
    path = tmp_path_factory.mktemp("atari") / "store"
    with _store(path) as store, store.writer(lanes=2) as writer:
        _advance(_collector(store, writer), 260)
    return storage.open(path, mode="r+")


def test_the_store_describes_the_game(collected):
    assert collected.env_spec.id == "Atari/Breakout"
    assert collected.env_spec.max_episode_steps == 60
    schema = collected.schema
    assert (schema.frame_stack, schema.first_stack_padding, schema.life_loss) == (4, "zero", True)
    assert (schema.behaviour_family, schema.behaviour_size) == ("categorical", 4)


def test_a_step_takes_little_more_than_its_frame(collected):
    assert collected.schema.column("observation").row_bytes == 84 * 84
    assert collected.schema.row_bytes <= 1.02 * 84 * 84


def test_stacks_and_lives_equal_those_of_the_same_episodes_played_again(collected):
    """The environment is made from the store's own description of it."""
    env = make_environment(stored_environment(collected.path))
    losses = 0
    for episode in collected.iterate_episodes():
        played = _again(env, episode)
        np.testing.assert_array_equal(np.array(episode.observation), np.stack(played[0]))
        assert episode.columns["reward"][: len(played[1])].tolist() == played[1]
        lost = [after < before for before, after in zip(played[2], played[2][1:], strict=False)]
        assert episode.columns["life_lost"][: len(lost)].tolist() == lost
        losses += sum(lost)
    assert losses > 0
    assert len(collected.episodes) == 6


def _again(env: Any, episode: Any) -> tuple[list[np.ndarray], list[float], list[int]]:
    shown, info = env.reset(seed=episode.record.seed)
    stacks, rewards, lives = [shown], [], [info["lives"]]
    for action in episode.columns["action"][: episode.record.length]:
        shown, reward, *_, info = env.step(int(action))
        stacks.append(shown)
        rewards.append(reward)
        lives.append(info["lives"])
    return stacks, rewards, lives


def test_batches_show_whole_stacks_with_zeros_at_an_episodes_start(collected):
    stacks = {
        (episode.record.segment, episode.record.start + step): stack
        for episode in collected.iterate_episodes()
        for step, stack in enumerate(np.array(episode.observation))
    }
    with collected.replay(window=1000, seed=1, overlay="mine") as view:
        batch = view.sample(240)
    starts = 0
    places = zip(batch.segment.tolist(), batch.row.tolist(), strict=True)
    for index, place in enumerate(places):
        np.testing.assert_array_equal(batch.observation[index], stacks[place])
        np.testing.assert_array_equal(batch.next_observation[index], stacks[place[0], place[1] + 1])
        starts += not batch.observation[index][2].any()
    assert starts > 0


@pytest.mark.parametrize("at", [2, 66, 110, 122])
def test_gone_on_from_the_middle_of_an_episode_the_store_is_the_same(tmp_path, collected, at):
    with _store(tmp_path / "s") as store:
        with store.writer(lanes=2, run="a") as writer:
            collector = _collector(store, writer)
            _advance(collector, at)
            position = StorePosition.from_json(writer.position().to_json())
            state = collector.state()
            _advance(collector, at + 6)
        store.refresh()
        storage.rewind(store, position, "a")
        with store.writer(lanes=2, run="a", continue_from=position) as writer:
            collector = _collector(store, writer)
            collector.restore(state, store.schema.observation)
            _advance(collector, 260)
    assert storage.content_hash(tmp_path / "s") == storage.content_hash(collected.path)


def test_an_evaluation_episode_is_that_of_its_seed():
    env = make_environment(GAME)
    seed = reset_seed(SEED, 0, 0)
    played = play(env, seed, action=1)
    episode = play_episode(env, lambda observation: 1, seed)
    assert (episode.episode_return, episode.length) == (sum(played.rewards), len(played.actions))
