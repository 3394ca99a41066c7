from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from storage.checksum import crc32c
from storage.commit_log import CommitLog
from storage.errors import CorruptStoreError, FormatVersionError
from storage.log_appender import LogAppender
from storage.log_header import LogHeader
from storage.log_record import LogRecord, record_dtype
from storage.repairing.mended_log import mended_log
from storage.verification.raw_log import read_raw_log

HEADER = LogHeader("uuid", 7, ["observation", "reward"], 1024, "run", 3)
SIZE = record_dtype(2).itemsize


def record(index: int, start: int, length: int = 2, seed: int | None = 0) -> LogRecord:
    return LogRecord(index, index, start, length, 1, 1.5, seed, index, 0, 9, 5, 6, (1, 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "000007.log"
    made.write_bytes(HEADER.encode())
    return made


def fill(path: Path, count: int, first: int = 0) -> None:
    appender = LogAppender(path, 2)
    for index in range(first, first + count):
        appender.episode(record(index, 3 * index))
    appender.close()


def test_round_trip(path: Path) -> None:
    appender = LogAppender(path, 2)
    appender.episode(record(0, 0, length=4, seed=None))
    appender.episode(record(1, 5, seed=2**64 - 1))
    appender.seal(2, 2, 8, 77)
    appender.close()
    log = CommitLog(path)
    assert log.header == HEADER
    assert (log.rows, log.steps, log.sequence, log.sealed) == (8, 6, 3, True)
    assert log.records["start"].tolist() == [0, 5]
    assert log.records["seed_known"].tolist() == [False, True]
    assert log.records["seed"].tolist() == [0, 2**64 - 1]
    assert log.records["return"].tolist() == [1.5, 1.5]
    assert log.column_checksums.tolist() == [[1, 2], [1, 2]]


def test_refresh_reads_only_what_is_new(path: Path) -> None:
    log = CommitLog(path)
    assert not log.refresh()
    fill(path, 3)
    assert log.refresh()
    fill(path, 2, first=3)
    assert log.refresh()
    assert not log.refresh()
    assert log.records["ordinal"].tolist() == [0, 1, 2, 3, 4]
    assert log.rows == 15


def test_a_torn_tail_is_ignored_and_measured(path: Path) -> None:
    fill(path, 2)
    whole = path.stat().st_size
    fill(path, 1, first=2)
    os.truncate(path, whole + SIZE - 5)
    log = CommitLog(path)
    assert len(log.records) == 2
    assert log.torn_bytes() == SIZE - 5
    assert log.end == whole


def test_a_bad_last_record_is_a_torn_tail_too(path: Path) -> None:
    fill(path, 3)
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    assert len(CommitLog(path).records) == 2


def test_a_bad_record_before_good_ones_is_corruption(path: Path) -> None:
    fill(path, 4)
    data = bytearray(path.read_bytes())
    data[len(HEADER.encode()) + SIZE + 20] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptStoreError, match=r"record 1 of .*000007\.log fails its checksum"):
        CommitLog(path)


def test_records_that_do_not_follow_each_other_are_corruption(path: Path) -> None:
    fill(path, 2)
    appender = LogAppender(path, 2)
    appender.episode(record(2, 99))
    appender.close()
    with pytest.raises(CorruptStoreError, match=r"record 2 of .* does not follow") as caught:
        CommitLog(path)
    says = str(caught.value)
    assert "the 2 episodes before it are good" in says
    assert f"`sharpwave repair {path.parent.parent}` keeps what is good of segment 000007" in says


def test_a_voided_episode_counts_for_nobody_and_keeps_its_rows(path: Path) -> None:
    fill(path, 4)
    before = CommitLog(path)
    data = mended_log(read_raw_log(path), [1, 2])
    assert len(data) == path.stat().st_size
    path.with_name("new").write_bytes(data)
    path.with_name("new").replace(path)
    for log in (before, CommitLog(path)):
        log.refresh()
        assert log.records["ordinal"].tolist() == [0, 3]
        assert log.records["start"].tolist() == [0, 9]
        assert log.voids["ordinal"].tolist() == [1, 2]
        assert log.column_checksums.tolist() == [[1, 2], [1, 2]]
        assert (log.ordinals, log.rows, log.steps, log.sequence) == (4, 12, 4, 4)
    assert CommitLog(path).rows_at(2) == 6
    fill(path, 1, first=4)
    assert log.refresh()
    assert log.records["ordinal"].tolist() == [0, 3, 4]


def test_the_checksum_of_a_log_outlives_a_repair(path: Path) -> None:
    fill(path, 4)
    log = CommitLog(path)
    assert log.checksum == crc32c(path.read_bytes())
    at_three = log.checksum_at(3)
    assert at_three == crc32c(path.read_bytes()[: log.byte_at(3)])
    path.write_bytes(mended_log(read_raw_log(path), [0, 3]))
    repaired = CommitLog(path)
    assert repaired.checksum == log.checksum
    assert repaired.checksum_at(3) == at_three


def test_what_is_distrusted_is_not_shown_and_not_written(path: Path) -> None:
    fill(path, 3)
    data = path.read_bytes()
    log = CommitLog(path)
    log.distrust([2])
    assert (log.records["ordinal"].tolist(), log.steps, log.ordinals) == ([0, 1], 4, 3)
    fill(path, 1, first=3)
    log.refresh()
    assert log.records["ordinal"].tolist() == [0, 1, 3]
    assert path.read_bytes()[: len(data)] == data


@pytest.mark.parametrize(
    "forged",
    [
        {"start": -3},
        {"length": 0},
        {"length": -1},
        {"length": 1024},
        {"start": 2**63 - 1, "length": 2**63 - 1},
        {"ending": 0},
        {"ending": 5},
        {"kind": 4},
    ],
)
def test_records_that_point_out_of_their_segment_are_refused(path: Path, forged: dict) -> None:
    row = np.zeros(1, record_dtype(2))
    for name, value in ({"kind": 1, "ending": 1, "length": 2} | forged).items():
        row[name] = value
    data = row.tobytes()[:-4]
    with path.open("ab") as file:
        file.write(data + crc32c(data).to_bytes(4, "little"))
    with pytest.raises(CorruptStoreError, match=r"record 0 of .* says what no writer says"):
        CommitLog(path)


def test_nothing_follows_the_seal(path: Path) -> None:
    appender = LogAppender(path, 2)
    appender.seal(0, 0, 0, 5)
    log = CommitLog(path)
    appender.episode(LogRecord(0, 1, 0, 2, 1, 0.0, 0, 0, 0, 0, 0, 0, (1, 2)))
    appender.close()
    for read in (log.refresh, lambda: CommitLog(path)):
        with pytest.raises(CorruptStoreError, match=r"record 1 of .* follows the seal"):
            read()


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (replace(HEADER, capacity=0), "0 rows"),
        (replace(HEADER, capacity=100), "100 rows"),
        (replace(HEADER, capacity=2**40), "rows"),
        (replace(HEADER, segment=8), "log of segment 8"),
        (replace(HEADER, segment="7"), "does not describe"),
        (replace(HEADER, columns=["a", 3]), "does not describe"),
    ],
)
def test_headers_that_no_writer_makes_are_refused(path: Path, header: LogHeader, says: str) -> None:
    path.write_bytes(header.encode())
    with pytest.raises(CorruptStoreError, match=says):
        CommitLog(path)


def test_a_seal_alone_is_read(path: Path) -> None:
    appender = LogAppender(path, 2)
    appender.seal(0, 0, 0, 5)
    appender.close()
    log = CommitLog(path)
    assert (log.sealed, log.rows, log.sequence) == (True, 0, 1)


def test_a_replaced_log_is_read_anew(path: Path) -> None:
    fill(path, 4)
    log = CommitLog(path)
    shorter = path.with_name("new")
    shorter.write_bytes(path.read_bytes()[: len(HEADER.encode()) + 2 * SIZE])
    shorter.replace(path)
    assert log.refresh()
    assert (len(log.records), log.rows, log.sequence) == (2, 6, 2)


@pytest.mark.parametrize("byte", [3, 20, 40])
def test_a_damaged_header_is_named(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptStoreError, match=r"000007\.log"):
        CommitLog(path)


def test_newer_versions_are_refused(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:12] = (2).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(FormatVersionError, match="version 2; this release reads up to 1"):
        CommitLog(path)


def test_a_reader_that_meets_half_a_write_waits_for_the_next_refresh(path: Path) -> None:
    log = CommitLog(path)
    whole = CommitLog(path).end
    fill(path, 2)
    data = path.read_bytes()
    os.truncate(path, whole + SIZE + 9)
    log.refresh()
    assert len(log.records) == 1
    with path.open("r+b") as file:
        file.write(data)
    log.refresh()
    assert log.records["sequence"].tolist() == [0, 1]
    assert np.all(log.records["length"] == 2)
