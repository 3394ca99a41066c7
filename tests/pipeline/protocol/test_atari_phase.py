"""The evaluation phase on the emulator, by policies that need no checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from pipeline.protocol import atari_phase
from pipeline.protocol.atari_phase import AtariPhase, NearlyGreedy, departures, play_phase
from storage.errors import ConfigError
from storage.randomness import derive_seed
from training.environments.environment import make_environment
from training.environments.environment_config import EnvironmentConfig, WrapperConfig


def agent(act: Callable[[Any], Any], **config: Any) -> Any:
    environment = EnvironmentConfig(**{"id": "Atari/Pong"} | config)
    return SimpleNamespace(config=SimpleNamespace(environment=environment), act=act)


def still(_: Any) -> int:
    return 0


def test_whole_episodes_until_the_frames_are_spent() -> None:
    told: list[int] = []
    kwargs = {"max_frames": 400, "frame_skip": 8}
    episodes = play_phase(agent(still, kwargs=kwargs), AtariPhase(frames=900), told.append).episodes
    assert [episode.length for episode in episodes] == [50, 50, 50]
    assert told == [400, 800, 1200]
    seeds = [derive_seed(0, "atari protocol", number) for number in range(3)]
    assert [episode.seed for episode in episodes] == seeds


def test_scores_are_the_game_s_own() -> None:
    (episode,) = play_phase(agent(still), AtariPhase(frames=1, epsilon=0.0)).episodes
    assert episode.episode_return == -21.0  # who does nothing loses every ball
    assert episode.length > 700


def test_repeatable_and_by_its_seed() -> None:
    def play(**phase: Any) -> list[Any]:
        kwargs = {"max_frames": 400}
        played = AtariPhase(frames=800, epsilon=0.5, **phase)
        return play_phase(agent(still, kwargs=kwargs), played).episodes

    assert play() == play()
    assert [each.seed for each in play()] != [each.seed for each in play(seed=1)]


@pytest.mark.parametrize(("at", "ended"), [(0, 0), (99, 0), (100, 1), (250, 2)])
def test_an_interrupt_leaves_the_episodes_that_had_ended(at: int, ended: int) -> None:
    calls = iter(range(1_000))

    def stopped(_: Any) -> int:
        if next(calls) == at:
            raise KeyboardInterrupt
        return 0

    phase = AtariPhase(frames=1200, epsilon=0.0)
    played = play_phase(agent(stopped, kwargs={"max_frames": 400}), phase)
    assert (played.frames, played.complete) == (400 * ended, False)
    whole = play_phase(agent(still, kwargs={"max_frames": 400}), phase)
    assert played.episodes == whole.episodes[:ended]
    assert (whole.frames, whole.complete) == (1200, True)


def test_an_interrupt_behind_the_last_episode_takes_nothing() -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    kwargs = {"max_frames": 400}
    played = play_phase(agent(still, kwargs=kwargs), AtariPhase(frames=400), stop)
    assert (len(played.episodes), played.complete) == (1, True)


def test_no_op_starts_are_the_phase_s(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[EnvironmentConfig] = []

    def watched(config: EnvironmentConfig) -> Any:
        made.append(config)
        return make_environment(config)

    monkeypatch.setattr(atari_phase, "make_environment", watched)
    kwargs = {"max_frames": 40, "noop_max": 3, "sticky": 0.25}
    play_phase(agent(still, kwargs=kwargs), AtariPhase(frames=1))
    play_phase(agent(still, kwargs=kwargs), AtariPhase(frames=1, noop_max=7))
    assert [config.kwargs["noop_max"] for config in made] == [30, 7]
    assert all(config.kwargs | {"noop_max": 3} == kwargs for config in made)


def test_in_what_a_game_is_not_the_protocol_s() -> None:
    assert departures(agent(still)) == []
    wrappers = [WrapperConfig("ClipReward")]
    assert departures(agent(still, kwargs={"sticky": 0.25}, wrappers=wrappers)) == [
        "the game is wrapped in ClipReward",
        "sticky is 0.25, the protocol's 0.0",
    ]


def test_random_actions_as_often_as_epsilon_says() -> None:
    space = Discrete(4, start=2)
    act = NearlyGreedy(lambda _: np.int64(5), space, 0.2, seed=3)
    actions = np.array([act(None) for _ in range(5_000)])
    assert set(actions) == {2, 3, 4, 5}
    assert all(space.contains(action) for action in actions[:100])
    counts = [(actions == action).mean() for action in (2, 3, 4)]
    assert counts == pytest.approx([0.05] * 3, abs=0.01)
    again = NearlyGreedy(lambda _: np.int64(5), space, 0.2, seed=3)
    assert [again(None) for _ in range(100)] == actions[:100].tolist()
    never = NearlyGreedy(lambda _: 5, space, 0.0, seed=3)
    assert {never(None) for _ in range(1_000)} == {5}
    always = NearlyGreedy(lambda _: 9, space, 1.0, seed=3)
    assert 9 not in {always(None) for _ in range(1_000)}


class Endless(gymnasium.Env[Any, Any]):
    observation_space = Box(0, 1)
    action_space: Any = Discrete(2)


def test_what_the_protocol_cannot_play(monkeypatch: pytest.MonkeyPatch) -> None:
    phase = AtariPhase(frames=1)
    with pytest.raises(ConfigError, match=r"CartPole-v1 is no Atari game .* runs on Atari/GAME"):
        play_phase(agent(still, id="CartPole-v1"), phase)
    env = Endless()
    monkeypatch.setattr(atari_phase, "make_environment", lambda _: env)
    with pytest.raises(ConfigError, match=r"Atari/Pong has no limit of steps"):
        play_phase(agent(still), phase)
    monkeypatch.setattr(env, "action_space", Box(-1, 1), raising=False)
    with pytest.raises(ConfigError, match=r"acted in by Box.*only agents such as dqn have"):
        play_phase(cast(Any, agent(still)), phase)
