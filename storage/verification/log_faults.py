"""What can be wrong with a segment's log: as a whole, and record by record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storage.errors import CorruptStoreError, FormatVersionError
from storage.layout import FORMAT_VERSION
from storage.log_header import LogHeader
from storage.verification.raw_log import RawLog, parse_raw_log, read_log_bytes
from storage.verification.store_facts import StoreFacts

__all__ = ["Fault", "read_log", "record_faults"]

Fault = tuple[str, str]
"""Its kind, and what is wrong."""


def read_log(facts: StoreFacts, segment: int, content: bytes | None = None) -> RawLog | Fault:
    """The log, or why nothing of it can be used. Raises FileNotFoundError.

    With ``content``, as if that were in the file.
    """
    path = facts.paths.log(segment)
    try:
        data, excess = read_log_bytes(path) if content is None else (content, 0)
        log = parse_raw_log(data, excess, path)
    except FileNotFoundError:
        raise
    except FormatVersionError as error:
        if _is_known(data, path):
            return "log-unreadable", "the format version in its header was changed"
        return "log-version", str(error)
    except CorruptStoreError as error:
        return "log-unreadable", str(error)
    except OSError as error:
        return "log-unreadable", f"it cannot be read: {error.strerror}"
    if not _is_portable(log.header):
        return "log-unreadable", "its header names a lane or a run that no table can hold"
    if log.header.store_uuid != facts.uuid:
        return "log-foreign", f"it belongs to store {log.header.store_uuid}"
    if log.header.columns != [column.name for column in facts.schema.columns]:
        return "log-foreign", "its columns are not those of the store"
    return log


def _is_portable(header: LogHeader) -> bool:
    """Whether what else the header says fits an Arrow table."""
    try:
        header.run.encode()
    except UnicodeEncodeError:
        return False
    return abs(header.lane) < 2**63


def _is_known(data: bytes, path: Path) -> bool:
    """Whether the header's checksum is right if the version is the one that this release writes."""
    try:
        LogHeader.decode(data[:8] + FORMAT_VERSION.to_bytes(4, "little") + data[12:], path)
    except (CorruptStoreError, FormatVersionError):
        return False
    return True


def record_faults(log: RawLog, *, live: bool) -> Iterator[Fault]:
    """What is wrong with its records; a live writer's unfinished one is not."""
    for hole in log.holes:
        if log.whole[hole]:
            yield "log-order", f"record {hole} contradicts those around it"
        else:
            yield "log-record", f"record {hole} fails its checksum, good ones follow it"
    for slot in log.contradicting:
        yield "log-order", f"record {slot} does not follow its predecessor"
    if log.excess:
        yield "log-too-long", f"{log.excess:,} bytes lie behind all that a log of its rows can hold"
    elif log.tail and not log.contradicting and not live:
        yield "torn-tail", f"{len(log.tail):,} bytes of a record that its writer did not finish"
    if len(log.voids):
        was = "episode was" if len(log.voids) == 1 else "episodes were"
        yield "voided", f"{len(log.voids):,} {was} taken out by a repair"
