"""Files that are larger than any of their kind, and headers that fit nothing, under checksums."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from typing import Any

import pytest

import storage
from storage.checksum import crc32c
from storage.log_header import LogHeader
from tests.storage.damage import Sound

HUGE = 100 * 2**30
_SCRIPT = """
import json, resource, sys, storage
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30,) * 2)
told = [[e.kind for e in storage.verify(sys.argv[1], workers=1).findings]]
told.append([a.kind for a in storage.repair(sys.argv[1], workers=1).actions])
print(json.dumps(told))
"""


def test_no_more_is_read_of_a_file_than_one_of_its_kind_can_have(sound: Sound) -> None:
    paths = sound.paths
    kept = paths.quarantine / "000001.000"
    kept.mkdir()
    (kept / "note.json").touch()
    huge = [
        paths.log(1),
        paths.episode_table(0),
        paths.open_episode(2),
        paths.segment(3) / "reward" / "zarr.json",
        paths.description,
    ]
    log = paths.log(1).read_bytes()
    for file in (*huge, kept / "note.json"):
        os.truncate(file, HUGE)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(sound.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, repaired = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found) == sorted(
        ["root-copy", "quarantine", "episode-table", "log-too-long", "open-note", "array-metadata"]
    )
    assert sorted(repaired) == ["cut-tail", "derive", "derive", "derive", "restore-root"]
    assert sound.kinds() == set()
    assert sound.readable() == set(sound.episodes)
    assert paths.log(1).read_bytes() == log
    old = paths.quarantine / "000001.001" / "log" / "000001.log"
    assert old.stat().st_size == HUGE
    assert old.open("rb").read(len(log)) == log


@pytest.mark.parametrize(
    "fields", [{"lane": 10**40}, {"lane": -(10**40)}, {"run": "\ud800\x1b"}], ids=ascii
)
def test_a_header_that_fits_no_table_is_a_finding(fields: dict[str, Any], sound: Sound) -> None:
    path = sound.paths.log(1)
    data = path.read_bytes()
    _, size = LogHeader.decode(data, path)
    record = struct.unpack_from("<8sIIII", data)[3]
    text = json.dumps(json.loads(data[24:size]) | fields).encode()
    text += b" " * (-(24 + len(text)) % 64)
    start = struct.pack("<8sIIII", b"SWAVELOG", 1, 24 + len(text), record, 0)
    start = start[:-4] + crc32c(start + text).to_bytes(4, "little")
    path.write_bytes(start + text + data[size:])
    (error,) = storage.verify(sound.path).errors
    assert (error.kind, error.segment) == ("log-unreadable", 1)
    (action,) = storage.repair(sound.path).actions
    assert (action.kind, action.episodes) == (
        "set-aside",
        sum(1 for segment, _ in sound.episodes if segment == 1),
    )
    assert sound.kinds() == set()
