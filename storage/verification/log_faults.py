"""What can be wrong with a segment's log: as a whole, and record by record."""

from __future__ import annotations

from collections.abc import Iterator

from storage.errors import CorruptStoreError, FormatVersionError
from storage.verification.raw_log import RawLog, read_raw_log
from storage.verification.store_facts import StoreFacts

__all__ = ["Fault", "read_log", "record_faults"]

Fault = tuple[str, str]
"""Its kind, and what is wrong."""


def read_log(facts: StoreFacts, segment: int) -> RawLog | Fault:
    """The log, or why nothing of it can be used. Raises FileNotFoundError."""
    try:
        log = read_raw_log(facts.paths.log(segment))
    except FileNotFoundError:
        raise
    except FormatVersionError as error:
        return "log-version", str(error)
    except CorruptStoreError as error:
        return "log-unreadable", str(error)
    except OSError as error:
        return "log-unreadable", f"it cannot be read: {error.strerror}"
    if log.header.store_uuid != facts.uuid:
        return "log-foreign", f"it belongs to store {log.header.store_uuid}"
    if log.header.columns != [column.name for column in facts.schema.columns]:
        return "log-foreign", "its columns are not those of the store"
    return log


def record_faults(log: RawLog, *, live: bool) -> Iterator[Fault]:
    """What is wrong with its records; a live writer's unfinished one is not."""
    for hole in log.holes:
        if log.whole[hole]:
            yield "log-order", f"record {hole} contradicts those around it"
        else:
            yield "log-record", f"record {hole} fails its checksum, good ones follow it"
    for slot in log.contradicting:
        yield "log-order", f"record {slot} does not follow its predecessor"
    if log.tail and not log.contradicting and not live:
        yield "torn-tail", f"{len(log.tail):,} bytes of a record that its writer did not finish"
    if len(log.voids):
        was = "episode was" if len(log.voids) == 1 else "episodes were"
        yield "voided", f"{len(log.voids):,} {was} taken out by a repair"
