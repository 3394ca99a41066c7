"""A store takes each seed once, also where two collections begin at the same instant."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from pipeline.collect import main
from storage.errors import ConfigError, StoreExistsError
from storage.file_lock import FileLock
from storage.layout import Ending
from storage.salvage import salvage
from tests.pipeline.test_collect import collect
from tests.storage.zoo import tiny_spec
from training.collector import reset_seed


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    words = ["collect", "InvertedPendulum-v5", "--store=s", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def seeds(path: Path) -> Counter[int]:
    with storage.open(path) as store:
        return Counter(store.episodes["seed"].to_pylist())


def test_two_at_the_same_instant_write_no_episode_twice(tmp_path: Path) -> None:
    """Neither has seen an episode of the other when it looks; the store is made by one of them."""
    children = [start(tmp_path, "--seed=0", "--steps=20000") for _ in range(2)]
    said = [child.communicate(timeout=240)[1] for child in children]
    assert sorted(child.returncode for child in children) == [0, 2], said
    refused = next(text for child, text in zip(children, said, strict=True) if child.returncode)
    assert "collected with --seed=0" in refused
    assert "Traceback" not in refused
    assert max(seeds(tmp_path / "s").values()) == 1
    assert os.listdir(tmp_path / "s/locks") == ["000000.lock"]
    with storage.open(tmp_path / "s") as store:
        assert store.n_steps == 20000


def test_other_seeds_are_collected_at_the_same_time(tmp_path: Path) -> None:
    children = [start(tmp_path, f"--seed={seed}", "--steps=300") for seed in range(2)]
    said = [child.communicate(timeout=240)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    with storage.open(tmp_path / "s") as store:
        assert store.n_steps == 600
        assert {info.run for info in store.segments} == {"collect-0", "collect-1"}


def test_a_seed_that_is_being_collected_is_refused_by_name(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "s", _pendulum())
    lock = FileLock(store.paths.locks / "seed-3.lock")
    lock.sign()
    with pytest.raises(ConfigError, match=r"just being collected with --seed=3 by this process, "):
        collect(tmp_path / "s", "--seed=3")
    collect(tmp_path / "s", "--seed=4")
    lock.release()
    collect(tmp_path / "s", "--seed=3")
    assert storage.verify(tmp_path / "s").findings == ()


def _pendulum() -> storage.EnvironmentSpec:
    from training.environments.environment import describe_environment
    from training.environments.environment_config import EnvironmentConfig

    return describe_environment(EnvironmentConfig("InvertedPendulum-v5"))


def test_a_kill_between_claim_and_first_episode_leaves_the_seed_free(tmp_path: Path) -> None:
    """The lock goes with its process; the file that it leaves is no claim, and no fault."""
    child = start(tmp_path, "--seed=0", "--steps=100000000")
    lock = tmp_path / "s/locks/seed-0.lock"
    deadline = time.monotonic() + 120
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert lock.exists()
    assert storage.verify(tmp_path / "s").sound
    assert not [f for f in storage.verify(tmp_path / "s").findings if f.kind == "stray"]
    with storage.open(tmp_path / "s", mode="r+") as store:
        salvage(store)
        written = store.n_episodes
    if written:  # the kill came too late for this
        pytest.skip("an episode was committed before the kill")
    collect(tmp_path / "s", "--seed=0")
    assert max(seeds(tmp_path / "s").values()) == 1


def test_the_episodes_of_every_lane_tell_a_seed(tmp_path: Path) -> None:
    """Lane 0 of a killed collection may have no episode where lane 1 has."""
    with storage.create(tmp_path / "s", _pendulum()) as store:
        writer = store.writer(lanes=2, run="killed")
        observation = np.zeros(4)
        writer.begin(1, observation, seed=reset_seed(5, 1, 0), lane_episode=0)
        step = {"action": [0.0], "reward": 0.0, "observation": observation}
        writer.step(1, **step, terminated=True, truncated=False)
        writer.close()
    with storage.open(tmp_path / "s") as store:
        assert [info.lane for info in store.segments] == [1]
        assert store.records(0)["ending"].tolist() == [Ending.TERMINATED]
    with pytest.raises(ConfigError, match="was collected with --seed=5 before"):
        main(["InvertedPendulum-v5", "--steps=9", f"--store={tmp_path / 's'}", "--seed=5"])


def test_a_store_that_another_process_made_meanwhile_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from storage import opening

    fill = opening._fill

    def slow(root: Path, attributes: Mapping[str, Any]) -> None:
        fill(root, attributes)
        (tmp_path / "s/steps.zarr").mkdir(parents=True)

    monkeypatch.setattr(opening, "_fill", slow)
    with pytest.raises(StoreExistsError, match="something is there"):
        storage.create(tmp_path / "s", tiny_spec())
    assert os.listdir(tmp_path) == ["s"]
