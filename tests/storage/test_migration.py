from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    DiskFullError,
    FormatVersionError,
    OverlayInUseError,
    SegmentLockedError,
    StoreNotFoundError,
)
from storage.layout import StorePaths
from storage.migration import STEPS as RELEASED
from storage.migration import migrate, stored_version
from storage.salvage import salvage
from storage.writer import Writer
from tests.storage.made_up_version import STEPS, from_0_to_1, to_version_0
from tests.storage.test_salvage import die
from tests.storage.zoo import check_tiny, f4_spec, play, tiny_spec, write_f4_episode

CAP = 256


def long_episode(writer: Writer, steps: int, seed: int) -> None:
    writer.begin(0, np.zeros(3), seed=seed, lane_episode=seed)
    for t in range(steps):
        row = np.full(3, t + 1.0)
        writer.step(
            0,
            action=np.zeros(2, np.float32),
            raw_action=np.full(2, 0.001 * t, np.float32),
            reward=float(t),
            observation=row,
            terminated=t == steps - 1,
            truncated=False,
            behaviour=np.full(4, 0.5, np.float32),
            policy_update=t,
        )


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A version 0 store: an episode that ends where its segment's capacity does, others, a cut."""
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(capacity=CAP, row_budget=CAP, run="made") as writer:
        long_episode(writer, CAP - 1, seed=77)  # with its closing row: the segment's every row
        for episode in range(4):
            play(writer, 0, episode)
        play(writer, 0, 7, steps=3)
    with store.replay(window=100, overlay="kept") as view:
        view.sample(8)
    assert next(info.rows for info in store.segments) == CAP
    to_version_0(store.path)
    return store.path


def bytes_of(root: Path) -> dict[str, bytes]:
    files = (file for file in root.rglob("*") if file.is_file() and file.suffix != ".lock")
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


def test_every_episode_is_as_before(old: Path, tmp_path: Path) -> None:
    """LeRobot 2401: a migration put the episode at a segment's cap into the wrong file."""
    before = bytes_of(old)
    reports: list[tuple[str, int, int]] = []
    kept = migrate(old, steps=STEPS, progress=lambda *report: reports.append(report))
    assert kept == tmp_path / "store.v0"
    assert bytes_of(kept) == before
    store = storage.open(old)
    assert store.problems() == []
    assert next((info.rows, info.sealed) for info in store.segments) == (CAP, True)
    records = [episode.record for episode in store.iterate_episodes()]
    assert records[0].length == CAP - 1
    first = store.episode(0)
    np.testing.assert_array_equal(first.reward, np.arange(CAP - 1.0))
    np.testing.assert_array_equal(first.observation[:, 1], np.arange(CAP * 1.0))
    for record in records[1:]:
        check_tiny(store, record, 3 if record.lane_episode == 7 else None)
    after = bytes_of(old)
    columns = [name for name in before if "/c.0" in name]
    assert len(columns) > 20
    assert {name: after[name] for name in columns} == {name: before[name] for name in columns}
    assert reports[-1] == ("replace", 2, 2)
    assert [report for report in reports if report[0] == "files"][-1][1:] == (
        len([*kept.rglob("*")]) + 1,
    ) * 2
    assert sorted(os.listdir(tmp_path)) == ["store", "store.v0"]


def test_doing_it_again_changes_nothing(old: Path, tmp_path: Path) -> None:
    migrate(old, steps=STEPS)
    before = bytes_of(tmp_path)
    assert migrate(old, steps=STEPS) is None
    assert migrate(old) is None
    assert bytes_of(tmp_path) == before


def test_the_new_store_is_written_on_and_the_old_one_kept_by_name(old: Path) -> None:
    old.with_name("store.v0").mkdir()
    kept = migrate(old, steps=STEPS)
    assert kept == old.with_name("store.v0.1")
    store = storage.open(old, mode="r+")
    with store.writer(run="later") as writer:
        play(writer, 0, 5)
    assert store.n_episodes == 7
    assert stored_version(kept) == 0


def test_killed_at_every_report_and_run_again(old: Path, tmp_path: Path) -> None:
    reports: list[object] = []
    trial = tmp_path / "trial"
    shutil.copytree(old, trial / "store")
    migrate(trial / "store", steps=STEPS, progress=lambda *report: reports.append(report))
    wanted = storage.content_hash(trial / "store")
    shutil.rmtree(trial)
    count = len(reports)
    instants = sorted({0, 1, count // 2, *range(count - 5, count)})
    for at in instants:
        shutil.copytree(old, trial / "store")
        script = Path(__file__).with_name("made_up_version.py")
        command = [sys.executable, os.fspath(script), os.fspath(trial / "store"), str(at)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        killed = subprocess.run(command, check=False, env=environment, capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        assert stored_version(trial / "store") in (0, 1)
        if at < count - 3:
            assert stored_version(trial / "store") == 0
        migrate(trial / "store", steps=STEPS)
        assert storage.content_hash(trial / "store") == wanted
        assert sorted(os.listdir(trial)) == ["store", "store.v0"]
        assert bytes_of(trial / "store.v0") == bytes_of(old)
        shutil.rmtree(trial)


def test_a_kill_between_two_renames(old: Path, tmp_path: Path) -> None:
    """Where a file system cannot swap two folders, there is an instant without a store."""
    migrate(old, steps=STEPS)
    wanted = storage.content_hash(old)
    old.rename(tmp_path / ".store.migrating")
    assert migrate(old, steps=STEPS) is None
    assert storage.content_hash(old) == wanted
    assert sorted(os.listdir(tmp_path)) == ["store", "store.v0"]


def test_half_a_copy_is_never_taken_for_a_store(old: Path, tmp_path: Path) -> None:
    shutil.copytree(old, tmp_path / ".store.migrating")
    shutil.rmtree(tmp_path / ".store.migrating/log")
    old.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreNotFoundError):
        migrate(old, steps=STEPS)
    (tmp_path / "elsewhere").rename(old)
    migrate(old, steps=STEPS)
    assert storage.open(old).n_episodes == 6


def test_a_step_that_fails_leaves_the_store_as_it_was(old: Path, tmp_path: Path) -> None:
    def fails(paths: StorePaths) -> None:
        from_0_to_1(paths)
        raise OSError(28, "No space left on device")

    def forgets(paths: StorePaths) -> None:
        del paths

    def loses(paths: StorePaths) -> None:
        from_0_to_1(paths)
        (paths.segment(0) / "reward/c.0").unlink()

    before = bytes_of(old)
    for step, error, words in (
        (fails, DiskFullError, "disk full"),
        (forgets, CorruptStoreError, "left version 0"),
        (loses, CorruptStoreError, r"stays as it was.*reward/c\.0"),
    ):
        with pytest.raises(error, match=words):
            migrate(old, steps={0: step})
        assert sorted(os.listdir(tmp_path)) == ["store"]
        assert bytes_of(old) == before


def test_nobody_may_write_meanwhile(old: Path) -> None:
    migrate(old, steps=STEPS)
    store = storage.open(old, mode="r+")
    newer = {1: lambda paths: None}
    with store.writer(run="later") as writer:
        play(writer, 0, 5)
        with pytest.raises(SegmentLockedError, match="another live writer holds"):
            migrate(old, steps=newer, version=2)
    with store.replay(window=8), pytest.raises(OverlayInUseError):
        migrate(old, steps=newer, version=2)
    with pytest.raises(CorruptStoreError, match="left version 1"):
        migrate(old, steps=newer, version=2)


def test_two_migrations_at_once(old: Path) -> None:
    def again(paths: StorePaths) -> None:
        with pytest.raises(SegmentLockedError, match="being migrated by another process"):
            migrate(old, steps=STEPS)
        from_0_to_1(paths)

    assert migrate(old, steps={0: again}) is not None


def test_versions_that_no_step_starts_from(old: Path) -> None:
    with pytest.raises(FormatVersionError, match="no way from 0 to 1"):
        migrate(old)
    with pytest.raises(FormatVersionError, match="no way from 1 to 2"):
        migrate(old, steps=STEPS, version=3)
    migrate(old, steps=STEPS)
    with pytest.raises(FormatVersionError, match="Install a newer"):
        migrate(old, steps={}, version=0)
    assert RELEASED == {}


def test_what_is_no_store_is_not_touched(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "a/b/none", tmp_path):
        with pytest.raises(StoreNotFoundError):
            migrate(path)
    (tmp_path / "steps.zarr").mkdir()
    (tmp_path / "steps.zarr/zarr.json").write_text("{}")
    with pytest.raises(CorruptStoreError, match="names no format version"):
        migrate(tmp_path)
    with pytest.raises(ConfigError, match="mounted"):
        migrate("/proc")


def test_links_in_an_old_store_are_not_followed(old: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (old / "episodes/stray").symlink_to(secret)
    with pytest.raises(CorruptStoreError, match="stray is a symbolic link"):
        migrate(old, steps=STEPS)
    assert sorted(os.listdir(tmp_path)) == ["secret", "store"]


def test_a_store_behind_a_link(old: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(old)
    migrate(tmp_path / "link", steps=STEPS)
    assert (tmp_path / "link").is_symlink()
    assert storage.open(tmp_path / "link").n_episodes == 6


def test_an_open_episode_is_salvaged_after_the_migration(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", f4_spec())
    writer = store.writer(run="f4")
    for name in "AD":
        write_f4_episode(writer, name)
    die(writer)
    to_version_0(store.path)
    migrate(store.path, steps=STEPS)
    again = storage.open(store.path, mode="r+")
    salvage(again)
    again.refresh()
    assert [(e.record.length, e.record.ending.name) for e in again.iterate_episodes()] == [
        (5, "TERMINATED"),
        (4, "SALVAGED"),
    ]
