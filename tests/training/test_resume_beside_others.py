"""A run goes on beside what others write into its store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from tests.training.tiny import ROUND, checkpoint_content, differences, rows, run, tiny_config
from tests.training.zoo import Drift
from training.assembly import build, trainer


class _StopError(Exception):
    pass


@pytest.mark.parametrize("while_running", [True, False])
def test_what_others_write_into_the_store_is_as_in_a_run_that_was_left_alone(
    tmp_path, while_running
):
    """A run replays its own episodes; those of other writers stay in the store, and out of it."""
    config = tiny_config(rounds=16, checkpoint_rounds=4, lanes=2)
    run(config, tmp_path / "straight")
    folder = tmp_path / "resumed"
    module, data = build(config, folder)
    learn, calls = module.learn, [0]

    def visited(view, steps):
        calls[0] += 1
        if calls[0] in (3 * ROUND + 3, 9 * ROUND + 5) and while_running:
            _collect(folder / "store", seed=calls[0])
        if calls[0] == 10 * ROUND + 7:
            raise _StopError
        learn(view, steps)

    module.learn = visited
    with pytest.raises(_StopError):
        trainer(config, folder).fit(module, data)
    _collect(folder / "store", seed=5)
    others = _others(folder / "store")
    run(config, folder, resume=True)
    left, right = checkpoint_content(tmp_path / "straight"), checkpoint_content(folder)
    for content in (left, right):
        content["OnlineExperience"].pop("position")
        content["OnlineExperience"]["view"] = _without_identities(content["OnlineExperience"])
    assert differences(left, right) == []
    assert rows(tmp_path / "straight") == rows(folder)
    assert _others(folder / "store") == others
    assert len(others) == (3 if while_running else 1)
    own = [_episodes(each / "store", "run") for each in (tmp_path / "straight", folder)]
    assert own[0] == own[1]


def _collect(store: Path, seed: int) -> None:
    """Another program's episodes; `sharpwave collect` refuses the store of a run."""
    env = Drift()
    env.action_space.seed(seed)
    with storage.open(store, mode="r+") as opened, opened.writer(run=f"other {seed}") as writer:
        for episode in range(3):
            writer.begin(0, env.reset(seed=seed + episode)[0], seed=seed + episode)
            ended = False
            while not ended:
                action = env.action_space.sample()
                observation, reward, terminated, truncated, _ = env.step(action)
                ended = terminated or truncated
                writer.step(
                    0,
                    action=action,
                    reward=reward,
                    observation=observation,
                    terminated=terminated,
                    truncated=truncated,
                )


def _others(store: Path) -> list[tuple[int, int]]:
    with storage.open(store) as opened:
        return [(each.id, each.steps) for each in opened.segments if each.run != "run"]


def _episodes(store: Path, run_name: str) -> list[tuple[int, bytes]]:
    """Seed and rewards of the run's episodes, in the order of its lanes."""
    with storage.open(store) as opened:
        names = {each.id for each in opened.segments if each.run == run_name}
        found = [
            (each.record.seed, np.asarray(each.reward).tobytes())
            for each in opened.iterate_episodes()
            if each.record.segment in names
        ]
    return sorted(found)


def _without_identities(experience: dict) -> dict:
    """A view's state without the numbers of its segments, which depend on who else claimed some."""
    view = dict(experience["view"])
    view.pop("consumed")
    view["episodes"] = view["episodes"]["data"][:, 1:]
    return view
