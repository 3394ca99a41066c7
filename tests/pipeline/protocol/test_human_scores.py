from __future__ import annotations

import pytest

from pipeline.protocol.human_scores import (
    HUMAN_SCORES,
    GameScores,
    game_of,
    human_normalised,
    improvement,
    scores_of,
)
from storage.errors import ConfigError
from training.environments.atari import atari_games


@pytest.mark.parametrize(
    ("environment", "game"),
    [
        ("Atari/Pong", "pong"),
        ("Atari/MsPacman", "ms_pacman"),
        ("ALE/UpNDown-v5", "up_n_down"),
        ("PongNoFrameskip-v4", "pong"),
        ("KungFuMasterDeterministic-v0", "kung_fu_master"),
        ("Atari/space_invaders", "space_invaders"),
    ],
)
def test_games_by_their_environments(environment: str, game: str) -> None:
    assert game_of(environment) == game


def test_the_table() -> None:
    assert len(HUMAN_SCORES) == 57
    assert {game_of(f"Atari/{name}") for name in atari_games()} > set(HUMAN_SCORES)
    assert all(scores.human > scores.random for scores in HUMAN_SCORES.values())
    assert scores_of("pong") == GameScores(-20.7, 14.6)
    assert scores_of("skiing") == GameScores(-17098.1, -4336.9)
    assert scores_of("private_eye") == GameScores(24.9, 69571.3)


def test_human_normalised_scores() -> None:
    pong = scores_of("pong")
    assert human_normalised(-20.7, pong) == 0.0
    assert human_normalised(14.6, pong) == pytest.approx(100.0)
    assert human_normalised(-3.05, pong) == pytest.approx(50.0)
    assert human_normalised(-38.35, pong) == pytest.approx(-50.0)


def test_video_pinball_has_two_random_scores() -> None:
    usual, zero = scores_of("video_pinball"), scores_of("video_pinball", video_pinball_random=0.0)
    assert (usual.random, zero.random, zero.human) == (16256.9, 0.0, 17667.9)
    assert human_normalised(300_000, usual) == pytest.approx(20_109.4, abs=0.1)
    assert human_normalised(300_000, zero) == pytest.approx(1_698.0, abs=0.1)
    assert scores_of("pong", video_pinball_random=0.0) == scores_of("pong")
    for none in (float("nan"), float("inf"), -5.0, 17667.9):
        with pytest.raises(ConfigError, match=r"cannot score .* in Video Pinball"):
            scores_of("video_pinball", video_pinball_random=none)


def test_improvement_over_a_baseline() -> None:
    scores = GameScores(random=10.0, human=110.0)
    assert improvement(60.0, 10.0, scores) == 50.0  # half of what a human has over random play
    assert improvement(60.0, 60.0, scores) == 0.0
    assert improvement(10.0, 60.0, scores) == -50.0
    assert improvement(410.0, 210.0, scores) == 100.0  # a baseline beyond humans is the measure


def test_an_unknown_game_gets_close_names() -> None:
    with pytest.raises(ConfigError, match=r"no human score of the game 'pnog'; close names: pong"):
        scores_of("pnog")
    with pytest.raises(ConfigError, match="it has the 57 usual ones"):
        scores_of("zzzzzz")
