"""The first bytes of a commit log: what is fixed about its segment."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.checksum import crc32c
from storage.containment import read_regular
from storage.errors import CorruptStoreError, FormatVersionError
from storage.layout import FORMAT_VERSION, INNER_ROWS, LARGEST_CAPACITY, segment_id
from storage.log_record import record_dtype

__all__ = ["LogHeader", "is_blank"]

_MAGIC = b"SWAVELOG"
_PREFIX = struct.Struct("<8sIIII")
_KINDS = {"store_uuid": str, "segment": int, "columns": list, "capacity": int, "run": str}


def is_blank(path: Path) -> bool:
    """Whether a log holds no byte but zeros: the machine went down before its header was there.

    Nothing of its segment is known then. A log that is not there, as of a segment that was dropped
    since it was listed, is not blank.
    """
    try:
        return not read_regular(path).strip(b"\0")
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class LogHeader:
    """What is fixed about a segment from its first byte."""

    store_uuid: str
    segment: int
    columns: list[str]
    capacity: int
    run: str
    lane: int

    def encode(self) -> bytes:
        """The header's bytes, checksum included."""
        text = json.dumps(asdict(self), separators=(",", ":")).encode()
        text += b" " * (-(_PREFIX.size + len(text)) % 64)
        size, record = _PREFIX.size + len(text), record_dtype(len(self.columns)).itemsize
        unchecked = _PREFIX.pack(_MAGIC, FORMAT_VERSION, size, record, 0)
        checksum = crc32c(unchecked + text)
        return _PREFIX.pack(_MAGIC, FORMAT_VERSION, size, record, checksum) + text

    @classmethod
    def decode(cls, data: bytes, path: Path) -> tuple[LogHeader, int]:
        """The header at the start of a log file, and its size in bytes.

        Raises CorruptStoreError for bytes that no writer makes, FormatVersionError for a newer log.
        """
        if len(data) < _PREFIX.size or not data.startswith(_MAGIC):
            raise CorruptStoreError(
                f"{path} does not start as a commit log; `sharpwave repair` sets it aside"
            )
        magic, version, size, record, checksum = _PREFIX.unpack_from(data)
        if version > FORMAT_VERSION:
            raise FormatVersionError(
                f"{path} is of format version {version}; this release reads up to "
                f"{FORMAT_VERSION}. Install a newer Sharpwave."
            )
        text = data[_PREFIX.size : size]
        if checksum != crc32c(_PREFIX.pack(magic, version, size, record, 0) + text):
            raise CorruptStoreError(
                f"the header of {path} fails its checksum; `sharpwave repair` sets its segment "
                "aside, unless you restore the file from a copy"
            )
        return cls._checked(text, record, path), int(size)

    @classmethod
    def _checked(cls, text: bytes, record: int, path: Path) -> LogHeader:
        """The header in a JSON text; the checksum being right, only a forger makes a wrong one."""
        try:
            fields: dict[str, Any] = json.loads(text)
            header = cls(**fields)
            typed = all(type(fields[name]) is kind for name, kind in _KINDS.items())
            typed = typed and type(header.lane) is int
            typed = typed and all(type(name) is str for name in header.columns)
            "".join([header.run, *header.columns]).encode()
        except (ValueError, TypeError, KeyError, RecursionError):
            typed = False
        if not typed:
            raise CorruptStoreError(f"the header of {path} does not describe a segment")
        if not 0 <= header.lane < 2**31 or not 0 <= header.segment < 2**62:
            raise CorruptStoreError(f"the header of {path} names a lane or segment that none has")
        if header.capacity % INNER_ROWS or not 0 < header.capacity <= LARGEST_CAPACITY:
            raise CorruptStoreError(
                f"the header of {path} gives the segment {header.capacity} rows, which none has"
            )
        if record != record_dtype(len(header.columns)).itemsize:
            raise CorruptStoreError(f"the header of {path} gives records of {record} bytes")
        if segment_id(path.stem) not in (None, header.segment):
            raise CorruptStoreError(
                f"{path} is the log of segment {header.segment}: give the file its own name back"
            )
        return header
