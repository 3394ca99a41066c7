from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from tests.training.atari_play import digest_of, play, shrink
from training.environments.atari import register_atari
from training.environments.atari_game import AtariGame
from training.environments.atari_settings import AtariSettings


def test_spaces_and_names():
    game = AtariGame("Pong")
    assert game.observation_space == gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    assert game.action_space == gymnasium.spaces.Discrete(6)
    assert game.action_names[:2] == ["NOOP", "FIRE"]
    assert game.spec.id == "Atari/Pong"
    assert game.spec.max_episode_steps == 27_000
    full = AtariGame("pong", AtariSettings(full_actions=True, stack=2, screen=42))
    assert full.action_space == gymnasium.spaces.Discrete(18)
    assert full.reset(seed=0)[0].shape == (2, 42, 42)


def test_frames_rewards_and_lives_equal_those_of_the_bare_emulator():
    """Grey, the larger of the last two frames, by area; only at a game's very end an old frame."""
    register_atari()
    settings = {"frameskip": 1, "repeat_action_probability": 0.0, "obs_type": "grayscale"}
    bare = gymnasium.make("ALE/Breakout-v5", **settings).unwrapped
    game = AtariGame("Breakout")
    frame, _ = bare.reset(seed=3)
    shown, _ = game.reset(seed=3)
    rng = np.random.default_rng(0)
    worst, ended, points, steps = np.abs(shrink(frame) - shown[-1]).max(), False, 0.0, 0
    while not ended:
        action, frames, reward = int(rng.integers(game.action_space.n)), [frame], 0.0
        for _ in range(4):
            frame, point, ended, _, info = bare.step(action)
            frames.append(frame)
            reward += point
            if ended:
                break
        shown, *outcome, known = game.step(action)
        assert outcome == [reward, ended, False]
        assert known["lives"] == info["lives"]
        if not ended and steps % 4 == 0:
            difference = np.abs(shrink(np.maximum(frames[-1], frames[-2])) - shown[-1])
            worst = max(worst, difference.max())
        points, steps = points + reward, steps + 1
    assert worst <= 0.5 + 1e-9  # rounding to whole numbers
    assert points > 0.0
    assert steps > 100


def test_a_stack_begins_with_zeros_and_moves_by_one_frame_a_step():
    played = play(AtariGame("Breakout"), 1, 12)
    first = played.observations[0]
    assert not first[:3].any()
    assert first[3].any()
    for before, after in itertools.pairwise(played.observations):
        np.testing.assert_array_equal(after[:3], before[1:])


@pytest.mark.parametrize("noops", [0, 30])
def test_an_episode_is_a_function_of_seed_and_actions_whatever_was_played_before(noops):
    game = AtariGame("Seaquest", AtariSettings(noop_max=noops, sticky=0.25, max_frames=600))
    alone = {seed: play(game, seed) for seed in (1, 2)}
    play(game, 7, steps=20)
    assert [play(game, seed).digest for seed in (2, 1)] == [alone[2].digest, alone[1].digest]
    assert alone[1].digest != alone[2].digest
    assert alone[1].truncated


def test_an_episode_is_the_same_in_a_fresh_process():
    settings = {"noop_max": 30, "sticky": 0.25}
    script = (
        "from tests.training.atari_play import digest_of\n"
        f"print(digest_of('MsPacman', 5, 80, **{settings}))"
    )
    root = Path(__file__).parents[3]
    shown = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == digest_of("MsPacman", 5, 80, **settings)


def test_large_seeds_are_seeds_too():
    digests = {digest_of("Seaquest", seed, 1, noop_max=30) for seed in (1, 2**31, 2**63 + 1)}
    assert len(digests) == 3
    assert digest_of("Seaquest", 2**63 + 1, 1, noop_max=30) in digests


def test_resets_without_a_seed_go_on_from_the_latest_one():
    def starts() -> list[int]:
        game = AtariGame("Breakout", AtariSettings(noop_max=30))
        game.reset(seed=4)
        return [game.reset()[1]["episode_frame_number"] for _ in range(5)]

    first = starts()
    assert first == starts()
    assert len(set(first)) > 2


def test_no_op_starts_are_frames_from_none_to_the_largest_number():
    game = AtariGame("Breakout", AtariSettings(noop_max=3))
    frames = [game.reset(seed=seed)[1]["episode_frame_number"] for seed in range(12)]
    assert set(frames) <= {0, 1, 2, 3}
    assert len(set(frames)) >= 3
    none = AtariGame("Breakout")
    assert {none.reset(seed=seed)[1]["episode_frame_number"] for seed in range(3)} == {0}


def test_sticky_actions_make_the_seed_matter():
    def seen(sticky: float) -> int:
        game = AtariGame("Breakout", AtariSettings(sticky=sticky))
        return len({_after(game, seed).tobytes() for seed in range(6)})

    assert seen(0.0) == 1
    assert seen(0.5) > 3


def _after(game: AtariGame, seed: int) -> np.ndarray:
    """The frame after the same actions, which move the paddle to and fro."""
    game.reset(seed=seed)
    for action in (2, 3) * 6:
        observation = game.step(action)[0]
    return observation[-1]


@pytest.mark.parametrize(("frames", "steps"), [(100, 25), (102, 26)])
@pytest.mark.parametrize("noops", [0, 30])
def test_the_frame_cap_truncates_and_counts_no_no_ops(frames, steps, noops):
    game = AtariGame("Pong", AtariSettings(max_frames=frames, noop_max=noops))
    played = play(game, 2)
    assert (len(played.actions), played.terminated, played.truncated) == (steps, False, True)


def test_a_game_over_at_the_cap_is_no_truncation():
    length = len(play(AtariGame("Breakout"), 1).actions)
    for spare, over in ((-4, False), (0, True)):
        settings = AtariSettings(max_frames=4 * length + spare)
        played = play(AtariGame("Breakout", settings), 1)
        assert (played.terminated, played.truncated) == (over, not over)


def test_rewards_are_points_and_lost_lives_end_no_episode():
    played = play(AtariGame("SpaceInvaders"), 1)
    assert max(played.rewards) > 1.0
    assert played.lives[0] == 3
    assert set(played.lives) == {3, 2, 1, 0}
    assert played.terminated


def test_what_cannot_be_stepped_is_refused():
    game = AtariGame("Breakout", AtariSettings(max_frames=8))
    with pytest.raises(gymnasium.error.ResetNeeded):
        game.step(0)
    game.reset(seed=0)
    for action in (-1, 4):
        with pytest.raises(ValueError, match="0 to 3"):
            game.step(action)
    game.step(0)
    assert game.step(0)[3]
    with pytest.raises(gymnasium.error.ResetNeeded):
        game.step(0)
    game.close()
    game.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        game.reset(seed=0)
