"""Sectors that a device cannot read: the kernel answers with an I/O error, by strace's hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import storage
from tests.storage.damage import Sound, column_file

_SCRIPT = """
import json, sys, storage
report = storage.verify(sys.argv[1], workers=1)
print(json.dumps(report.to_json()["findings"]))
if sys.argv[2:]:
    print(json.dumps(storage.repair(sys.argv[1], workers=1).to_json()))
"""


def run_with_bad_sectors(sound: Sound, file: Path, faults: list[str], *words: str) -> list[object]:
    if shutil.which("strace") is None:
        pytest.skip("there is no strace, which makes reads fail")
    injected = [f"--inject={fault}:error=EIO" for fault in faults]
    traced = ["-f", "--seccomp-bpf", "-o", str(sound.path.parent / "trace"), "-P", str(file)]
    command = [sys.executable, "-c", _SCRIPT, str(sound.path), *words]
    done = subprocess.run(
        ["strace", *traced, *injected, *command], capture_output=True, text=True, check=False
    )
    if "ptrace" in done.stderr:
        pytest.skip(f"tracing is not allowed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_column_that_cannot_be_read_is_a_finding_and_hides_nothing(sound: Sound) -> None:
    """Through a map it would be SIGBUS, which ends the process."""
    file = column_file(sound, 0, "reward").path
    (found,) = run_with_bad_sectors(sound, file, ["preadv,preadv2"])
    (fault,) = found  # type: ignore[misc]
    assert fault["kind"] == "unreadable-column"
    assert fault["what"].startswith("rows cannot be read: Input/output error")
    assert len(fault["ordinals"]) == sum(1 for each in sound.episodes if each[0] == 0)


def test_only_the_episodes_whose_rows_cannot_be_read_go(sound: Sound) -> None:
    """The first read, of a whole block, fails and so does that of row 0; all others succeed."""
    file = column_file(sound, 0, "reward").path
    faults = ["preadv,preadv2:when=1..2", "pread64:when=1"]
    found, repaired = run_with_bad_sectors(sound, file, faults, "repair")
    assert [(each["kind"], each["ordinals"]) for each in found] == [  # type: ignore[index, attr-defined]
        ("unreadable-column", [0])
    ]
    assert repaired["actions"] == []  # type: ignore[index, call-overload]
    assert storage.verify(sound.path).findings == ()
