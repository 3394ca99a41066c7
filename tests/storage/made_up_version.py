"""A format version 0 that never was, for the machinery that brings stores up to date.

Its root metadata calls the environment ``env`` and has no copy, and its logs say version 0. Run as
a program, this migrates a store and kills itself at the K-th progress report:
``python made_up_version.py STORE K``.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from pathlib import Path

from storage.atomic import write_atomic
from storage.checksum import crc32c
from storage.layout import StorePaths
from storage.migration import migrate
from storage.root_metadata import write_root
from storage.zarr_metadata import encode, group_document


def to_version_0(root: Path) -> None:
    """Make a store of version 1 one of version 0."""
    paths = StorePaths(root)
    attributes = json.loads((paths.steps / "zarr.json").read_text())["attributes"]
    del attributes["checksum"]
    attributes["env"] = attributes.pop("environment")
    attributes["format_version"] = 0
    (paths.steps / "zarr.json").write_bytes(encode(group_document(attributes)))
    paths.description.unlink()
    for log in paths.logs.glob("*.log"):
        log.write_bytes(with_version(log.read_bytes(), 0))


def with_version(log: bytes, version: int) -> bytes:
    """The log's bytes with another format version in its header."""
    magic, _, size, record, _ = struct.unpack_from("<8sIIII", log)
    unchecked = struct.pack("<8sIIII", magic, version, size, record, 0) + log[24:size]
    header = unchecked[:20] + crc32c(unchecked).to_bytes(4, "little") + unchecked[24:]
    return header + log[size:]


def from_0_to_1(paths: StorePaths) -> None:
    for log in sorted(paths.logs.glob("*.log")):
        write_atomic(log, with_version(log.read_bytes(), 1), paths.staging)
    attributes = json.loads((paths.steps / "zarr.json").read_text())["attributes"]
    attributes["environment"] = attributes.pop("env")
    attributes["format_version"] = 1
    write_root(paths, attributes)


STEPS = {0: from_0_to_1}


def _killing(at: int):
    reports = iter(range(at))

    def tell(what: str, done: int, total: int) -> None:
        if next(reports, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    return tell


if __name__ == "__main__":
    migrate(sys.argv[1], steps=STEPS, progress=_killing(int(sys.argv[2])))
