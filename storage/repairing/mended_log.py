"""A commit log without its damage: lost and damaged episodes become void ones, the tail goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from storage.layout import Ending
from storage.log_record import LogRecord, RecordKind, encode_record, with_kind
from storage.verification.raw_log import RawLog

__all__ = ["lost_rows", "mended_log"]


def mended_log(log: RawLog, damaged: Collection[int]) -> bytes:
    """The whole file's content, with the episodes of the ordinals ``damaged`` made void.

    A lost record becomes a void one over the rows between its neighbours. Where several are lost
    in a row, nobody knows where one ended and the next began: all but the last get one step.
    """
    lost = dict(_voids(log))
    records = []
    used = len(log.slots) - (len(log.tail) - len(log.rest)) // log.slots.dtype.itemsize
    for place, slot in enumerate(log.slots[:used]):
        data = slot.tobytes()
        if place in lost:
            data = encode_record(RecordKind.VOID, lost[place], len(log.header.columns))
        elif slot["kind"] == RecordKind.EPISODE and int(slot["ordinal"]) in damaged:
            data = with_kind(data, RecordKind.VOID)
        records.append(data)
    return log.header_bytes + b"".join(records)


def lost_rows(log: RawLog) -> list[tuple[int, int]]:
    """Rows [first, end) of episodes whose records are lost."""
    return [(record.start, record.start + record.length + 1) for _, record in _voids(log)]


def _voids(log: RawLog) -> Iterator[tuple[int, LogRecord]]:
    """Each lost slot and what stands for it."""
    row = ordinal = 0
    waiting: list[int] = []
    for place, slot in enumerate(log.slots):
        if not log.usable[place]:
            waiting.append(place)
            continue
        for number, hole in enumerate(waiting, 1):
            end = int(slot["start"]) if number == len(waiting) else row + 2
            yield hole, _void(hole, ordinal, row, end)
            row, ordinal = end, ordinal + 1
        waiting = []
        row, ordinal = int(slot["start"]) + int(slot["length"]) + 1, int(slot["ordinal"]) + 1


def _void(sequence: int, ordinal: int, start: int, end: int) -> LogRecord:
    length = end - start - 1
    return LogRecord(ordinal, sequence, start, length, Ending.CUT, 0.0, None, -1, -1, -1, 0, 0, ())
