"""A log that was cut between two records: what it lacks is told, and passed off as nothing else."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.column_file import ColumnFile
from storage.layout import Ending, RowKind
from storage.log_header import LogHeader
from storage.log_record import record_dtype
from storage.lost_records import lacks_records, written_end
from storage.open_episode import OpenEpisodeNote, create_note, read_note
from storage.salvage import salvage
from tests.storage.test_salvage import die
from tests.storage.test_trust import reboot
from tests.storage.zoo import Tiny, play, tiny_spec

EPISODES = 6
STEP, CLOSING, NEVER = RowKind.STEP, RowKind.CLOSING, RowKind.NEVER_WRITTEN


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store of six episodes and two steps of a seventh, whose writer was killed."""
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer(publish_interval=1e9)
    for episode in range(EPISODES):
        play(writer, 0, episode)
    tiny = Tiny(0, EPISODES)
    writer.begin(0, tiny.observation(0), seed=77)
    for t in range(2):
        writer.step(0, **tiny.step(t) | {"terminated": False, "truncated": False})
    die(writer)
    return tmp_path / "store"


def cut_log(path: Path, records: int) -> None:
    """Take the last records off."""
    log = path / "log/000000.log"
    data = log.read_bytes()
    header, _ = LogHeader.decode(data, log)
    log.write_bytes(data[: len(data) - records * record_dtype(len(header.columns)).itemsize])


def kinds(path: Path) -> np.ndarray:
    with storage.open(path) as store:
        info = store.segments[0]
        file = ColumnFile(
            path / "steps.zarr/000000/kind", store.schema.column("kind"), info.capacity
        )
        return file.map(file.allocated(), writable=False).copy()


def first_rows(path: Path) -> list[int]:
    with storage.open(path) as store:
        return [*store.records(0)["start"].tolist(), store.segments[0].rows]


@pytest.mark.parametrize(
    ("start", "behind", "lacking"),
    [
        (10, [STEP, STEP, NEVER], False),
        (10, [STEP, CLOSING, STEP], False),
        (11, [NEVER], True),
        (9, [NEVER], False),
        (None, [STEP, STEP], False),
        (None, [STEP, CLOSING, NEVER], False),
        (None, [STEP, CLOSING], False),
        (None, [NEVER, CLOSING, STEP], False),
        (None, [STEP, CLOSING, STEP], True),
        (None, [], False),
    ],
)
def test_what_tells_that_records_are_gone(start, behind, lacking) -> None:
    """The note where it is whole; else a closing row with anything behind it."""
    note = None if start is None else OpenEpisodeNote(start, None, 0, 0)
    assert lacks_records(10, note, np.array(behind, np.uint8)) is lacking


def test_the_end_of_what_was_written() -> None:
    assert written_end(5, np.array([1, 2, 1, 0, 0], np.uint8)) == 8
    assert written_end(5, np.zeros(3, np.uint8)) == 5


def test_a_store_whose_writer_was_killed_lacks_nothing(killed: Path) -> None:
    report = storage.verify(killed)
    assert [each.kind for each in report.findings] == ["open-episode"]
    (record,) = salvage(storage.open(killed, mode="r+")).episodes
    assert (record.ordinal, record.ending, record.seed) == (EPISODES, Ending.SALVAGED, 77)


@pytest.mark.parametrize("blank", [False, True])
@pytest.mark.parametrize("records", [1, 2, EPISODES])
def test_verify_names_what_a_cut_log_lacks(killed: Path, records: int, blank: bool) -> None:
    rows = first_rows(killed)
    cut_log(killed, records)
    if blank:
        create_note(killed / "log/000000.open")
    report = storage.verify(killed)
    (error,) = (each for each in report.errors if each.kind == "lost-records")
    assert error.file == "log/000000.log"
    others = {"group-metadata", "array-metadata", "episode-table"}  # the first was published
    assert {each.kind for each in report.errors} - {"lost-records"} <= others
    assert error.rows == (rows[EPISODES - records], rows[-1] + 2)
    told = f"up to row {rows[-1] + 2}" if blank else f"names row {rows[-1]} as an episode's first"
    assert f"it ends at row {rows[EPISODES - records]}, and" in error.what
    assert told in error.what
    assert report.episodes == EPISODES - records


@pytest.mark.parametrize("records", [1, 3])
def test_a_writer_leaves_such_a_segment_alone_and_says_so(
    killed: Path, records: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No episode with a record of its own becomes a salvaged one; the log may be restored."""
    before = kinds(killed)
    whole = (killed / "log/000000.log").read_bytes()
    cut_log(killed, records)
    for opening in range(2):
        store = storage.open(killed, mode="r+")
        with caplog.at_level(logging.WARNING), store.writer() as writer:
            play(writer, 0, 20 + opening)
        assert "000000.log lacks records of episodes that were committed" in caplog.text
        caplog.clear()
    with storage.open(killed) as store:
        assert len(store.records(0)) == EPISODES - records
        assert Ending.SALVAGED not in store.records(0)["ending"].tolist()
    np.testing.assert_array_equal(kinds(killed), before)
    (killed / "log/000000.log").write_bytes(whole)
    assert storage.verify(killed).sound
    (record,) = salvage(storage.open(killed, mode="r+")).episodes
    assert record.length == 2


def test_a_torn_record_with_episodes_behind_it_is_not_cut_by_a_writer(killed: Path) -> None:
    """The last record was damaged, not begun: another one's rows follow its own."""
    log = killed / "log/000000.log"
    data = bytearray(log.read_bytes())
    for at in (-9, -8, -7):
        data[at] ^= 0x55
    log.write_bytes(data)
    assert {each.kind for each in storage.verify(killed).errors} == {"lost-records"}
    assert salvage(storage.open(killed, mode="r+")).episodes == ()
    assert log.read_bytes() == data


@pytest.mark.parametrize("records", [1, 2, EPISODES])
def test_a_repair_sets_their_rows_aside(killed: Path, records: int) -> None:
    rows = first_rows(killed)
    with storage.open(killed) as store:
        reward = store.columns["reward"][:]
    note = (killed / "log/000000.open").read_bytes()
    cut_log(killed, records)
    first, end = rows[EPISODES - records], rows[-1] + 2
    planned = storage.repair(killed, dry_run=True)
    done = storage.repair(killed)
    assert done.actions == planned.actions
    (action,) = (each for each in done.actions if each.kind == "keep-rows")
    assert action.episodes == records
    assert action.what == (
        f"set rows {first} to {end} aside, of {records} whole episode{'s' * (records > 1)} without "
        "a record"
    )
    assert done.episodes_lost == records
    (folder,) = done.quarantined
    kept = killed / folder / f"rows-{first}-{end}"
    np.testing.assert_array_equal(
        np.frombuffer((kept / "reward.bin").read_bytes())[: rows[-1] - first], reward[first:]
    )
    assert (killed / folder / "log/000000.open").read_bytes() == note
    assert storage.verify(killed).errors == storage.verify(killed).warnings == ()
    assert storage.repair(killed).actions == ()
    assert salvage(storage.open(killed, mode="r+")).episodes == ()
    with storage.open(killed) as store:
        assert store.n_episodes == EPISODES - records


@pytest.mark.parametrize("copied", [False, True])
def test_after_the_machine_went_down_or_in_a_copy_they_are_set_aside(
    killed: Path, tmp_path: Path, copied: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """There the log's end may be lost as rows are; what is there of them is kept, and told."""
    rows = first_rows(killed)
    with storage.open(killed) as store:
        reward = store.columns["reward"][:]
    cut_log(killed, 2)
    path = killed
    if copied:
        path = tmp_path / "copy"
        shutil.copytree(killed, path)
    else:
        reboot(killed)
    with caplog.at_level(logging.WARNING):
        assert salvage(storage.open(path, mode="r+")).episodes == ()
    first, end = rows[EPISODES - 2], rows[-1] + 2
    assert f"{end - first} rows of episodes whose records are not in the log" in caplog.text
    note = json.loads((path / "orphans/000000.000/orphan.json").read_text())
    assert (note["first_row"], note["end_row"]) == (first, end)
    kept = np.load(path / "orphans/000000.000/reward.npy")
    np.testing.assert_array_equal(kept[: rows[-1] - first], reward[first:])
    assert read_note(path / "log/000000.open") is None
    assert not kinds(path)[first:].any()
    assert storage.verify(path).sound
    caplog.clear()
    assert salvage(storage.open(path, mode="r+")).episodes == ()
    assert "rows of episodes" not in caplog.text


def test_rows_that_another_power_cut_brings_back_are_set_aside_once(
    killed: Path, tmp_path: Path
) -> None:
    """Nobody waited until the device had them reset."""
    cut_log(killed, 2)
    reboot(killed)
    shutil.copytree(killed, tmp_path / "before")
    for _ in range(3):
        salvage(storage.open(killed, mode="r+"))
        assert [each.name for each in (killed / "orphans").iterdir()] == ["000000.000"]
        for part in ("steps.zarr", "log"):
            shutil.copytree(tmp_path / "before" / part, killed / part, dirs_exist_ok=True)
        for lock in (tmp_path / "before/locks").iterdir():
            (killed / "locks" / lock.name).write_bytes(lock.read_bytes())


def test_the_open_episode_of_a_copy_is_told_truthfully(
    killed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No machine went down. The original keeps it; a copy made after that has it, too."""
    shutil.copytree(killed, tmp_path / "early")
    with caplog.at_level(logging.WARNING):
        assert salvage(storage.open(tmp_path / "early", mode="r+")).episodes == ()
    assert "2 steps of an open episode are not kept" in caplog.text
    assert "in a copy, or after the machine went down" in caplog.text
    assert len(salvage(storage.open(killed, mode="r+")).episodes) == 1
    shutil.copytree(killed, tmp_path / "late")
    with storage.open(tmp_path / "late", mode="r+") as store:
        salvage(store)
        assert store.records(0)["length"].tolist()[-1] == 2


def test_a_rewind_leaves_no_note_of_an_episode_that_it_took_out(tmp_path: Path) -> None:
    """A kill behind it would make that look like lost records."""
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer(run="r")
    for episode in range(3):
        play(writer, 0, episode)
    position = writer.position()
    for episode in range(3, 6):
        play(writer, 0, episode)
    die(writer)
    store = storage.open(tmp_path / "store", mode="r+")
    storage.rewind(store, position, "r")
    assert read_note(tmp_path / "store/log/000000.open") is None
    assert storage.verify(tmp_path / "store").sound
    assert salvage(store).episodes == ()
    assert store.n_episodes == 3
