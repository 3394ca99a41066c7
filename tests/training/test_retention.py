"""A run that drops what left its window: bounded, resumable, and nothing that is named goes."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from pipeline.learning_curve import read_learning_curve
from storage.errors import ConfigError, DiskFullError
from storage.retention import dropped_episodes
from tests.training.tiny import differences, run, tiny_config
from training.checkpoints.checkpoint import named_segments
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config import ReplayConfig, RunConfig

STEPS = 6 * 1024


def dropping(steps: int = STEPS, **options: Any) -> RunConfig:
    """A run of several segments, 1,024 rows each, whose window holds a fraction of one."""
    config = tiny_config(steps=steps, ratio=0.1, **{"retention": "drop", **options})
    loop = dataclasses.replace(config.loop, round_steps=64)
    checkpoint = dataclasses.replace(config.checkpoint, every_steps=512)
    return dataclasses.replace(config, loop=loop, checkpoint=checkpoint)


def segments(folder: Path) -> list[int]:
    with storage.open(folder / "store") as store:
        assert store.problems() == []
        return [each.id for each in store.segments]


def state(folder: Path) -> dict[str, Any]:
    """All of the last checkpoint but times, names and what the settings say."""
    content = read_checkpoint(folder / "checkpoints/last.ckpt")
    content["sharpwave"]["counters"].pop("wall_time")
    content["sharpwave"].pop("config")
    experience = content["OnlineExperience"]
    experience.pop("store")
    experience["position"].pop("store_uuid")
    for each in experience["position"]["segments"]:
        each[2:] = []  # checksums of logs, which hold times
    for lane in experience["position"]["lanes"]:
        if lane["open"]:
            lane["open"].pop("begin_time")
    keys = ("state_dict", "optimizer_states", "sharpwave", "OnlineExperience", "global_step")
    return {key: content[key] for key in keys}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight")
    run(dropping(), folder)
    return folder


def test_a_long_run_keeps_what_window_and_checkpoints_need(straight: Path) -> None:
    left = segments(straight)
    assert left[-1] >= 5
    assert len(left) <= 3
    for file in (straight / "checkpoints").glob("*.ckpt"):
        assert named_segments(file) <= set(left)
    assert len(dropped_episodes(storage.open(straight / "store").paths)) == left[-1] + 1 - len(left)


def test_dropped_episodes_stay_in_the_learning_curve(straight: Path, tmp_path: Path) -> None:
    run(dropping(retention="keep"), tmp_path)
    dropped, kept = read_learning_curve(straight), read_learning_curve(tmp_path)
    np.testing.assert_array_equal(dropped.returns, kept.returns)
    np.testing.assert_array_equal(dropped.steps, kept.steps)


@pytest.mark.parametrize("rounds", [40, 77])
def test_a_stopped_and_resumed_run_equals_the_straight_one(
    straight: Path, tmp_path: Path, rounds: int
) -> None:
    run(dropping(), tmp_path, max_steps=rounds)
    run(dropping(), tmp_path, resume=True)
    assert differences(state(straight), state(tmp_path)) == []
    assert segments(straight) == segments(tmp_path)
    hashes = {storage.content_hash(folder / "store") for folder in (straight, tmp_path)}
    assert len(hashes) == 1


def test_a_run_that_kept_everything_drops_it_once_told_to(straight: Path, tmp_path: Path) -> None:
    run(dropping(4 * 1024, retention="keep"), tmp_path)
    assert segments(tmp_path)[0] == 0
    run(dropping(), tmp_path, resume=True)
    assert segments(tmp_path) == segments(straight)


def test_nothing_goes_while_a_checkpoint_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/best.ckpt").write_bytes(b"damaged")
    run(dropping(3 * 1024), tmp_path)
    assert segments(tmp_path)[0] == 0
    assert "best.ckpt" in caplog.text


def test_what_the_best_checkpoint_names_stays(tmp_path: Path) -> None:
    """Going back to best.ckpt needs the segments of its window."""
    config = dropping(2 * 1024)
    run(config, tmp_path)
    best = tmp_path / "checkpoints/best.ckpt"
    best.write_bytes((tmp_path / "checkpoints/last.ckpt").read_bytes())
    named = named_segments(best)
    run(dropping(), tmp_path, resume=True)
    assert named <= set(segments(tmp_path))


def test_a_disk_that_everything_would_fill_is_enough(small_disk: Path) -> None:
    """google/dopamine: the store outgrows the disk."""
    long = 14 * 1024
    with pytest.raises(DiskFullError, match="free"):
        run(dropping(long, retention="keep"), small_disk / "keep")
    shutil.rmtree(small_disk / "keep")
    agent = run(dropping(long), small_disk / "drop")
    assert agent.finished
    assert len(segments(small_disk / "drop")) <= 3


def test_a_fixed_store_is_not_dropped_from() -> None:
    with pytest.raises(ConfigError, match="retention"):
        ReplayConfig(store="somewhere", retention="drop")
    with pytest.raises(ConfigError, match="retention"):
        ReplayConfig(retention="forget")  # type: ignore[arg-type]
