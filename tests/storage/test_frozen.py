"""Stores of every format version that a release wrote, as they lie on disk, are read for ever."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import storage
from storage.layout import Ending
from storage.open_episode import read_note
from storage.verification import verify
from tests.storage.frozen import life

ARCHIVE = Path(__file__).with_name("frozen") / "version_1.tar.xz"
CONTENT = "d4ffa757d1c8087a8b3d219b10b833eeb5b79dc40ab43bc3e188cd052cd9f06a"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only read by the tests."""
    return unpacked(tmp_path_factory.mktemp("frozen"))


def unpacked(folder: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "version_1"


def assert_nested(read: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert read.keys() == wanted.keys()
        for key in wanted:
            assert_nested(read[key], wanted[key])
    elif isinstance(wanted, tuple):
        for one, other in zip(read, wanted, strict=True):
            assert_nested(one, other)
    else:
        np.testing.assert_array_equal(read, wanted, strict=True)


def stacked(rows: list[Any]) -> Any:
    """Rows of a nested space as one array a leaf."""
    if isinstance(rows[0], dict):
        return {key: stacked([row[key] for row in rows]) for key in rows[0]}
    if isinstance(rows[0], tuple):
        return tuple(stacked([row[i] for row in rows]) for i in range(len(rows[0])))
    return np.array(rows)


def check_step_columns(columns: dict[str, np.ndarray], number: int, steps: int) -> None:
    lived = [life.step(number, t) for t in range(steps)]
    for name in ("raw_action", "reward", "behaviour_kind", "policy_update", "life_lost"):
        wanted = [step[name] for step in lived]
        np.testing.assert_array_equal(columns[name][:steps], wanted)
        blank = -1 if name == "policy_update" else 0
        assert (columns[name][steps] == blank).all()
    for t, step in enumerate(lived):
        parameters = np.full(6, np.nan) if step["behaviour"] is None else step["behaviour"]
        np.testing.assert_array_equal(columns["behaviour"][t], parameters.astype(np.float32))
    assert np.isnan(columns["behaviour"][steps]).all()
    assert columns["kind"].tolist() == [1] * steps + [2]
    for t in range(steps + 1):
        known = life.info(number, t)
        assert columns["info.wind"][t].tolist() == known["wind"].tolist()
        assert columns["info.wind.valid"][t]
        assert columns["info.fuel.valid"][t] == ("fuel" in known)
        assert columns["info.fuel"][t] == known.get("fuel", 0)


def test_every_value_is_what_was_written(frozen: Path) -> None:
    store = storage.open(frozen)
    assert store.problems() == []
    assert (store.n_episodes, store.n_steps) == (5, 19)
    episodes = list(store.iterate_episodes())
    for episode, place in zip(episodes, life.EPISODES, strict=True):
        segment, ordinal, number, steps, ending, seed = place
        record = episode.record
        assert (record.segment, record.ordinal, record.lane_episode) == (segment, ordinal, number)
        assert (record.length, record.ending, record.seed) == (steps, Ending[ending.upper()], seed)
        assert record.episode_return == sum(number - t / 2 for t in range(steps))
        assert_nested(
            episode.observation, stacked([life.observation(number, t) for t in range(steps + 1)])
        )
        assert_nested(
            episode.action, stacked([life.step(number, t)["action"] for t in range(steps)])
        )
        assert episode.terminated.tolist() == [False] * (steps - 1) + [ending == "terminated"]
        assert episode.truncated.tolist() == [False] * (steps - 1) + [ending != "terminated"]
        check_step_columns(episode.columns, number, steps)


def test_its_content_hash_is_the_one_it_had(frozen: Path) -> None:
    assert storage.content_hash(frozen) == CONTENT


def test_its_description_is_read(frozen: Path) -> None:
    store = storage.open(frozen)
    assert store.env_spec == life.spec()
    assert [info.run for info in store.segments] == ["first", "second", "third"]
    assert [info.sealed for info in store.segments] == [False, True, False]
    assert store.schema.life_loss
    assert [item.key for item in store.schema.info] == ["fuel", "wind"]
    root = json.loads((frozen / "steps.zarr/zarr.json").read_text())["attributes"]
    assert root["format_version"] == 1


def test_the_episode_that_a_repair_took_out_stays_out(frozen: Path) -> None:
    segment, ordinal, number, steps = life.VOID
    log = storage.open(frozen).log(segment)
    assert log.voids["ordinal"].tolist() == [ordinal]
    assert (log.voids["length"][0], log.voids["lane_episode"][0]) == (steps, number)


def test_the_overlay_holds_what_was_learnt(frozen: Path) -> None:
    overlay = storage.open(frozen).overlay("learnt")
    first, second = overlay.segment(0, 22), overlay.segment(1, 8)
    for caches, rows, errors in (
        (first, [0, 3, 5, 8, 18, 20], range(6)),
        (second, [2, 5], (6, 7)),
    ):
        wanted = np.array(errors, np.float32)
        np.testing.assert_allclose(caches.array("priority")[rows], wanted + 1e-5, rtol=1e-6)
        np.testing.assert_allclose(caches.array("importance_ratio")[rows], wanted, atol=1e-30)
        assert caches.array("value")[rows].tolist() == (wanted / 4).tolist()
        assert caches.array("divergence")[rows].tolist() == (wanted / 8).tolist()
        assert caches.array("draw_count")[rows].tolist() == [1] * len(rows)
        assert caches.array("draw_count").sum() == len(rows)
    assert np.flatnonzero(first.array("far")).tolist() == [0, 20]
    assert np.flatnonzero(second.array("far")).tolist() == [2, 5]


def test_verify_finds_it_whole(frozen: Path) -> None:
    report = verify(frozen)
    assert {each.severity for each in report.findings} == {"note"}


def test_a_foreign_reader_sees_the_same(frozen: Path) -> None:
    group = zarr.open_group(frozen / "steps.zarr", mode="r")
    assert group["000001/reward"][:].tolist() == [5.0, 0.0, 6.0, 5.5, 5.0, 4.5, 4.0, 0.0]


def test_the_open_note_is_read_and_the_store_written_on(tmp_path: Path, caplog) -> None:
    """Its machine is gone, so nothing vouches for the open episode's rows: they are not kept."""
    path = unpacked(tmp_path)
    segment, number, steps = life.OPEN
    store = storage.open(path, mode="r+")
    note = read_note(store.paths.open_episode(segment))
    assert note is not None
    assert (note.start, note.seed, note.lane_episode) == (0, 77, number)
    assert store.segment(segment).rows == 0
    with store.writer(run="later") as writer:
        first = life.observation(8, 0)
        writer.begin(0, first, seed=8, info=life.info(8, 0))
        writer.step(0, **life.step(8, 0, "terminated"))
    assert f"{steps} steps of an open episode are not kept" in caplog.text
    assert (store.n_episodes, store.n_steps) == (6, 20)
    with store.replay(window=64, scheme="per", overlay="learnt") as view:
        assert view.n_steps == 20
    assert storage.content_hash(path) != CONTENT
