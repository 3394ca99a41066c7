from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import ConfigError, StoreExistsError
from training.cliffwalk.memory import fill_store


@pytest.mark.parametrize("n", [2, 4, 8])
def test_every_sequence_is_there_once(memories: dict[int, storage.Store], n: int) -> None:
    store = memories[n]
    assert store.n_episodes == 2**n
    assert store.n_steps == 2 ** (n + 1) - 2
    assert len(store.segments) == 1
    assert store.segments[0].sealed
    steps = store.columns["kind"][:] == 1
    reward, terminated = store.columns["reward"][:][steps], store.columns["terminated"][:][steps]
    assert reward.sum() == 1.0
    assert np.count_nonzero(reward) == 1
    assert terminated.sum() == 2**n
    assert not store.columns["truncated"][:].any()


def test_copies_halve_along_the_chain(memories: dict[int, storage.Store]) -> None:
    store = memories[8]
    steps = store.columns["kind"][:] == 1
    states = store.columns["observation"][:][steps]
    actions = store.columns["action"][:][steps]
    for state in range(8):
        chosen = actions[states == state]
        assert np.bincount(chosen, minlength=2).tolist() == [2 ** (7 - state)] * 2


def test_the_seed_shuffles_and_nothing_else(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fill_store(tmp_path / name, 5, seed=seed)
    assert storage.content_hash(tmp_path / "a") == storage.content_hash(tmp_path / "b")
    assert storage.content_hash(tmp_path / "a") != storage.content_hash(tmp_path / "c")
    lengths = [sorted(lengths_of(tmp_path / name)) for name in "ac"]
    assert lengths[0] == lengths[1]
    assert lengths_of(tmp_path / "a") != lengths[0]


def lengths_of(path: Path) -> list[int]:
    with storage.open(path) as store:
        return store.records(0)["length"].tolist()


def test_the_store_says_how_its_environment_is_made(memories: dict[int, storage.Store]) -> None:
    spec = memories[4].env_spec
    assert (spec.id, spec.kwargs) == ("BlindCliffwalk-v0", {"n": 4})


def test_too_large_a_memory_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="4,194,302 steps; choose n up to 20"):
        fill_store(tmp_path / "s", 21)
    assert not (tmp_path / "s").exists()


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    fill_store(tmp_path / "s", 2)
    before = storage.content_hash(tmp_path / "s")
    with pytest.raises(StoreExistsError):
        fill_store(tmp_path / "s", 2, seed=1)
    assert storage.content_hash(tmp_path / "s") == before
