"""A commit log read without trust: every record on its own, good or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.log_header import LogHeader
from storage.log_record import RecordKind, good_records, impossible
from storage.verification.regular_files import read_file

__all__ = ["RawLog", "parse_raw_log", "read_raw_log"]


@dataclass(frozen=True)
class RawLog:
    """A log whose header could be read.

    Records sit in slots of one size. ``usable`` says of each slot whether its record is whole and
    in its place; what cannot be used before the last usable slot is a hole, what comes after it is
    the tail.
    """

    header: LogHeader
    header_bytes: bytes
    slots: np.ndarray[Any, Any]
    """record_dtype, as they are in the file."""
    whole: np.ndarray[Any, Any]
    """bool, one a slot: whether its checksum is right."""
    usable: np.ndarray[Any, Any]
    rest: bytes
    """What comes after the last slot: part of a record."""

    @property
    def _used(self) -> int:
        """Slots up to the last usable one."""
        found = np.flatnonzero(self.usable)
        return int(found[-1]) + 1 if len(found) else 0

    @property
    def holes(self) -> list[int]:
        """Slots of lost records that have usable ones behind them."""
        return [int(slot) for slot in np.flatnonzero(~self.usable[: self._used])]

    @property
    def tail(self) -> bytes:
        """The bytes behind the last usable record."""
        return self.slots[self._used :].tobytes() + self.rest

    @property
    def contradicting(self) -> list[int]:
        """Slots of the tail whose checksum is right: a writer that died leaves none."""
        return [int(slot) for slot in self._used + np.flatnonzero(self.whole[self._used :])]

    def _of(self, kind: RecordKind) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.slots[self.usable & (self.slots["kind"] == kind)]
        return found

    @property
    def episodes(self) -> np.ndarray[Any, Any]:
        """The usable records of episodes."""
        return self._of(RecordKind.EPISODE)

    @property
    def voids(self) -> np.ndarray[Any, Any]:
        """The usable records of episodes that a repair took out."""
        return self._of(RecordKind.VOID)

    @property
    def sealed(self) -> bool:
        """Whether the last usable record says that no more episodes come."""
        return bool(len(self._of(RecordKind.SEAL)))

    @property
    def rows(self) -> int:
        """Rows that the usable records speak of."""
        spoken = self.slots[self.usable & (self.slots["kind"] != RecordKind.SEAL)]
        return int(spoken["start"][-1] + spoken["length"][-1] + 1) if len(spoken) else 0


def read_raw_log(path: Path) -> RawLog:
    """The log at ``path``; see ``parse_raw_log``. Raises OSError, too."""
    return parse_raw_log(read_file(path), path)


def parse_raw_log(data: bytes, path: Path) -> RawLog:
    """A log from its content.

    Raises CorruptStoreError or FormatVersionError when its header cannot be read.
    """
    header, size = LogHeader.decode(data, path)
    slots, whole = good_records(data[size:], len(header.columns))
    usable = _chained(slots, whole & ~impossible(slots, header.capacity))
    rest = data[size + slots.nbytes :]
    return RawLog(header, data[:size], slots, whole, usable, rest)


def _chained(slots: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which whole records fit those before them: number, ordinal, first row; none after a seal.

    A lost record leaves room for one episode of at least one step.
    """
    if whole.all() and _consecutive(slots):
        return whole
    usable = np.zeros(len(slots), bool)
    rows = ordinal = lost = 0
    sealed = False
    for place, slot in enumerate(slots):
        if not whole[place] or sealed or slot["sequence"] != place:
            lost += 1
            continue
        start, first = int(slot["start"]), int(slot["ordinal"])
        exact = not lost and start == rows and first == ordinal
        spaced = lost and start >= rows + 2 * lost and first == ordinal + lost
        if not (exact or spaced):
            lost += 1
            continue
        usable[place], lost = True, 0
        sealed = slot["kind"] == RecordKind.SEAL
        rows, ordinal = start + int(slot["length"]) + 1, first + 1
    return usable


def _consecutive(slots: np.ndarray[Any, Any]) -> bool:
    """Whether every record follows its predecessor, as almost always."""
    seal = slots["kind"] == RecordKind.SEAL
    ends = slots["start"] + slots["length"] + 1
    follows = slots["start"][1:] == ends[:-1]
    first = not len(slots) or (slots["start"][0] == 0 and slots["ordinal"][0] == 0)
    numbered = (slots["sequence"] == np.arange(len(slots))).all()
    counted = (slots["ordinal"] == np.arange(len(slots))).all()
    return bool(first and follows.all() and numbered and counted and not seal[:-1].any())
