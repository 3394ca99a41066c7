"""The derived episode table of a segment against its log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from storage.episode_table import episode_table
from storage.errors import CorruptStoreError, FormatVersionError
from storage.layout import StorePaths
from storage.log_header import LogHeader
from storage.log_record import RECORD, take_fields
from storage.verification.raw_log import RawLog, read_head
from storage.verification.regular_files import read_file

__all__ = ["judge_table", "read_table"]

_MAGIC = b"ARROW1\0\0"


_BASE = 2**16
_EPISODE = 256
"""Bytes that one episode takes in a table, without the name of its run: far more than it has."""


def read_table(paths: StorePaths, segment: int) -> bytes | str | None:
    """The file's bytes, read before the log; None where there is none, words where it is none.

    No more than the segment's episodes can take, which its log's header tells. Raises
    CannotJudgeError.
    """
    try:
        return read_file(paths.episode_table(segment), _largest(paths.log(segment)))
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _largest(log: Path) -> int:
    try:
        header, _ = LogHeader.decode(read_head(log), log)
    except (CorruptStoreError, FormatVersionError, OSError):
        return _BASE  # without a log, nothing is compared with the table
    return _BASE + header.capacity // 2 * (_EPISODE + 4 * len(header.run))


def judge_table(data: bytes, log: RawLog) -> str:
    """What is wrong with the table; nothing where it equals the log's first episodes."""
    import pyarrow as pa

    if not data.startswith(_MAGIC):  # which pyarrow does not look at, and others do
        return "it does not start as an Arrow file"
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"Arrow cannot read it: {str(error).splitlines()[0][:100]}"
    records = np.zeros(len(log.episodes), RECORD)
    take_fields(records, log.episodes)
    expected = episode_table([(log.header, records)])
    if table.num_rows > expected.num_rows:
        return f"it has {table.num_rows:,} episodes, the log {expected.num_rows:,}"
    if not table.schema.equals(expected.schema):
        return "its columns are not those of an episode table"
    if not table.equals(expected.slice(0, table.num_rows)):
        return "its episodes are not those of the log"
    return ""
