from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from storage import orphans
from storage.errors import CheckpointError, ConfigError, SegmentLockedError
from storage.layout import Ending
from storage.salvage import salvage
from storage.segment_writer import SegmentWriter
from storage.writer import Writer
from tests.storage.test_salvage import die
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec

LANES = 2
TOTAL = 60
SETTINGS: dict[str, Any] = {"run": "run", "row_budget": 40, "publish_interval": 60, "lanes": LANES}


class Loop:
    """Steps all lanes in turn, as a collector does; its state is (episode, step) a lane."""

    def __init__(self, writer: Writer, episodes: list[int], steps: list[int]) -> None:
        self.writer = writer
        self.episodes = episodes
        self.steps = steps

    def run(self, count: int) -> None:
        for _ in range(count):
            for lane in range(LANES):
                tiny = Tiny(lane, self.episodes[lane])
                if self.writer.open_episode(lane) is None:
                    self.writer.begin(lane, tiny.observation(0), seed=tiny.episode)
                record = self.writer.step(lane, **tiny.step(self.steps[lane]))
                self.steps[lane] += 1
                if record is not None:
                    self.episodes[lane] += 1
                    self.steps[lane] = 0


def straight(path: Path) -> None:
    with storage.create(path, tiny_spec()).writer(**SETTINGS) as writer:
        Loop(writer, [0, 0], [0, 0]).run(TOTAL)


def contents(path: Path) -> dict[str, np.ndarray]:
    store = storage.open(path)
    columns = {name: store.columns[name][:] for name in store.columns}
    segments = [(i.id, i.rows, i.episodes, i.sealed, i.run, i.lane) for i in store.segments]
    return columns | {"segments": np.array(segments, dtype=object)}


def same(a: Path, b: Path) -> None:
    ours, theirs = contents(a), contents(b)
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)
    assert storage.content_hash(a) == storage.content_hash(b)


def files(path: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(path)): p.read_bytes()
        for p in sorted(path.rglob("*"))
        if p.is_file() and "locks" not in p.parts
    }


@pytest.mark.parametrize(
    ("at", "more", "stop"),
    [
        (0, 5, "close"),
        (1, 0, "close"),
        (23, 31, "close"),
        (40, 0, "die"),
        (7, 31, "die"),
        (23, 1, "die and salvage"),
        (7, 0, "die and salvage"),
        (0, 31, "die and salvage"),
    ],
)
def test_resumed_equals_straight(tmp_path: Path, at: int, more: int, stop: str) -> None:
    straight(tmp_path / "straight")
    store = storage.create(tmp_path / "resumed", tiny_spec())
    writer = store.writer(**SETTINGS)
    loop = Loop(writer, [0, 0], [0, 0])
    loop.run(at)
    position = storage.StorePosition.from_json(json.loads(json.dumps(writer.position().to_json())))
    assert position == writer.position()
    episodes, steps = list(loop.episodes), list(loop.steps)
    loop.run(more)
    writer.close() if stop == "close" else die(writer)
    store = storage.open(tmp_path / "resumed", mode="r+")
    if stop == "die and salvage":
        salvage(store)
    storage.rewind(store, position, "run")
    with store.writer(continue_from=position, **SETTINGS) as writer:
        for lane in range(LANES):
            opened = writer.open_episode(lane)
            assert (opened.steps if opened else 0) == steps[lane]
        Loop(writer, episodes, steps).run(TOTAL - at)
    same(tmp_path / "straight", tmp_path / "resumed")
    for episode in storage.open(tmp_path / "resumed").iterate_episodes():
        cut = episode.record.ending is Ending.CUT
        check_tiny(store, episode.record, steps=episode.record.length if cut else None)


def interrupted(path: Path) -> tuple[storage.Store, storage.StorePosition]:
    store = storage.create(path, tiny_spec())
    writer = store.writer(**SETTINGS)
    loop = Loop(writer, [0, 0], [0, 0])
    loop.run(22)
    position = writer.position()
    loop.run(30)
    writer.close()
    return store, position


def test_rewinding_again_changes_nothing(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    storage.rewind(store, position, "run")
    once = files(store.path)
    episodes = store.n_episodes
    for _ in range(2):
        storage.rewind(storage.open(store.path, mode="r+"), position, "run")
        assert files(store.path) == once
    assert storage.open(store.path).n_episodes == episodes


def test_what_came_after_is_kept_among_the_orphans(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    rewards = {i.id: store.segment(i.id).array("reward").copy() for i in store.segments}
    before = store.n_episodes
    storage.rewind(store, position, "run")
    assert store.n_episodes < before
    kept = {info.id: info.rows for info in store.segments}
    assert set(kept) == {each.id for each in position.segments}
    for folder in store.paths.orphans.iterdir():
        segment = int(folder.name[:6])
        if (folder / "orphan.json").exists():
            note = json.loads((folder / "orphan.json").read_text())
            saved = np.load(folder / "reward.npy")
            first = note["first_row"]
            after = rewards[segment][first:]
            np.testing.assert_array_equal(saved[: len(after)], after)
            assert len(saved) >= len(after)
        else:
            assert segment not in kept
            assert (folder / "steps" / "reward" / "c.0").exists()
            assert (folder / "log").exists()
    assert len(list(store.paths.orphans.iterdir())) >= 3


def test_caches_of_rows_that_are_no_more_are_reset(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    overlay = store.overlay("main", mode="r+")
    for info in store.segments:
        overlay.segment(info.id, info.rows).array("value")[:] = 5
        overlay.publish(info.id, info.rows)
    overlay.close()
    gone = {i.id for i in store.segments} - {each.id for each in position.segments}
    storage.rewind(store, position, "run")
    again = store.overlay("main")
    for lane in position.lanes:
        keep = lane.rows if lane.open is None else lane.open.start + lane.open.steps
        values = again.segment(lane.segment, 40).array("value")
        assert values[:keep].tolist() == [5] * keep
        assert values[keep:].tolist() == [0] * (40 - keep)
    assert gone
    for segment in gone:
        assert not (store.path / f"overlays/main.zarr/{segment:06d}").exists()


def test_other_runs_are_not_touched(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(run="other") as other:
        play(other, 0, 0)
    with store.writer(run="run") as first:
        play(first, 0, 0)
    writer = store.writer(run="run")
    play(writer, 0, 1)
    position = writer.position()
    play(writer, 0, 2)
    with store.writer(run="other") as other:
        play(other, 0, 5)
    writer.close()
    store.refresh()
    storage.rewind(store, position, "run")
    table = store.episodes.to_pydict()
    assert list(zip(table["run"], table["lane_episode"], strict=True)) == [
        ("other", 0),
        ("run", 0),
        ("run", 1),
        ("other", 5),
    ]


def test_a_live_writer_is_not_rewound(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(run="run") as writer:
        play(writer, 0, 0)
        position = writer.position()
        play(writer, 0, 1)
        with pytest.raises(SegmentLockedError):
            storage.rewind(storage.open(store.path, mode="r+"), position, "run")
        with pytest.raises(SegmentLockedError):
            store.writer(run="run", continue_from=position)
        assert store.refresh()
    assert storage.open(store.path).n_episodes == 2


def test_positions_that_do_not_fit(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    with pytest.raises(CheckpointError, match="rewind the store to the position first"):
        store.writer(continue_from=position, **SETTINGS)
    with pytest.raises(CheckpointError, match="2 lanes, the writer 3"):
        store.writer(continue_from=position, **(SETTINGS | {"lanes": 3}))
    other = storage.create(tmp_path / "other", tiny_spec())
    with pytest.raises(CheckpointError, match="belongs to store"):
        storage.rewind(other, position, "run")
    with pytest.raises(ConfigError, match="belongs to store"):
        other.writer(continue_from=position, lanes=2)
    store.paths.log(0).unlink()
    with pytest.raises(CheckpointError, match="has no segment 000000"):
        storage.rewind(store, position, "run")


def test_a_refused_continuation_holds_no_lock(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    with pytest.raises(CheckpointError):
        store.writer(continue_from=position, **SETTINGS)
    storage.rewind(store, position, "run")
    with store.writer(continue_from=position, **SETTINGS) as writer:
        assert writer.position() == position


@pytest.mark.parametrize("at", ["_reset_rows", "_reset_overlays", "publish"])
def test_a_rewind_that_was_killed_is_finished_by_the_next(
    tmp_path: Path, monkeypatch, at: str
) -> None:
    """Each step after the cut of the log is done again, though nothing is left to be cut."""
    store, position = interrupted(tmp_path / "store")
    shutil.copytree(store.path, tmp_path / "straight")
    storage.rewind(storage.open(tmp_path / "straight", mode="r+"), position, "run")
    place = SegmentWriter if at == "publish" else orphans
    with monkeypatch.context() as patch:
        patch.setattr(place, at, _killed)
        with pytest.raises(_KilledError):
            storage.rewind(store, position, "run")
    storage.rewind(storage.open(store.path, mode="r+"), position, "run")
    assert storage.verify(store.path).errors == ()
    same(tmp_path / "straight", store.path)
    assert set_aside(store.path) == set_aside(tmp_path / "straight")
    opened = storage.open(store.path, mode="r+").writer(**SETTINGS, continue_from=position)
    opened.close()


def set_aside(path: Path) -> dict[str, bytes]:
    """Everything below orphans/ but what tells the time."""
    kept = {p: p.read_bytes() for p in sorted((path / "orphans").rglob("*")) if p.is_file()}
    return {str(p.relative_to(path)): kept[p] for p in kept if p.name != "orphan.json"}


@pytest.mark.parametrize("lost", ["all", "some columns", "the cut of the log"])
def test_rows_that_power_cuts_bring_back_are_set_aside_once(tmp_path: Path, lost: str) -> None:
    """The cut of the log is on the device; that the rows were reset need not be, or only some."""
    store, position = interrupted(tmp_path / "store")
    shutil.copytree(store.path, tmp_path / "before")
    storage.rewind(store, position, "run")
    kept = set_aside(store.path)
    lanes = [f"{lane.segment:06d}" for lane in position.lanes]
    for _ in range(3):
        for lane in lanes:
            columns = sorted((tmp_path / f"before/steps.zarr/{lane}").rglob("c.0"))
            for number, column in enumerate(columns):
                if lost == "some columns" and number % 2 and column.parent.name != "kind":
                    continue
                shutil.copy(column, store.path / column.relative_to(tmp_path / "before"))
            if lost == "the cut of the log":
                shutil.copy(tmp_path / f"before/log/{lane}.log", store.path / f"log/{lane}.log")
        storage.rewind(storage.open(store.path, mode="r+"), position, "run")
        assert set_aside(store.path) == kept
    assert storage.verify(store.path).errors == ()


def test_rows_that_were_written_anew_are_set_aside_as_well(tmp_path: Path) -> None:
    store, position = interrupted(tmp_path / "store")
    storage.rewind(store, position, "run")
    before = set_aside(store.path)
    writer = store.writer(continue_from=position, **SETTINGS)
    other = Tiny(0, 99).step(0) | {"terminated": False, "truncated": False}
    if writer.open_episode(0) is None:
        writer.begin(0, Tiny(0, 99).observation(0), seed=99)
    writer.step(0, **other)
    writer.close()
    storage.rewind(storage.open(store.path, mode="r+"), position, "run")
    after = set_aside(store.path)
    assert after.items() > before.items()


def test_a_folder_that_a_kill_left_half_made_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, position = interrupted(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(orphans, "sync_tree", _killed)
        with pytest.raises(_KilledError):
            storage.rewind(store, position, "run")
    storage.rewind(storage.open(store.path, mode="r+"), position, "run")
    whole = [p.parent.name for p in store.paths.orphans.glob("*/orphan.json")]
    assert whole
    assert all(name.endswith((".000", ".001")) for name in whole)
    assert len({name[:6] for name in whole}) == len(whole)


class _KilledError(Exception):
    pass


def _killed(*_: object) -> None:
    raise _KilledError
