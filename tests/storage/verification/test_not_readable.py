"""What may not be read says nothing about the store: no damage, and nothing to repair."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import storage
from tests.storage.damage import Sound, column_file, flip, row_at

_POWERS = "-dac_override,-dac_read_search,-fowner,-chown"
_SCRIPT = """
import json, os, resource, sys, storage
from pathlib import Path
from storage.errors import SharpwaveError
from tests.storage.damage import tree
store, words = sys.argv[1], json.loads(sys.argv[2])
storage.verify(store, workers=1), storage.repair(store, dry_run=True, workers=1)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)

def look():
    report = storage.verify(store, workers=1)
    told = [report.damaged, report.judged, [[e.kind, e.what] for e in report.errors]]
    for dry_run in (True, False):
        try:
            told.append(str(storage.repair(store, workers=1, dry_run=dry_run).actions))
        except SharpwaveError as error:
            told.append(f"{type(error).__name__}: {error}")
    return told

for word in words:
    before = tree(Path(store))
    if isinstance(word, int):
        resource.setrlimit(resource.RLIMIT_NOFILE, (word, limits[1]))
        told = look()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    else:
        name, new = word
        path = os.path.normpath(os.path.join(store, name))
        mode = os.stat(path).st_mode
        os.chmod(path, new)
        told = look()
        os.chmod(path, mode)
    print(json.dumps([*told, tree(Path(store)) == before]))
"""


def look(path: Path, *words: object) -> list[Any]:
    """Verify and repair as somebody to whom the files' modes apply, though root runs the tests.

    Each word is the mode that a file gets meanwhile, or how many descriptors there may be.
    """
    command = [sys.executable, "-c", _SCRIPT, str(path), json.dumps(words)]
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv, which takes root's powers away")
    drop = ["setpriv", f"--bounding-set={_POWERS}", f"--inh-caps={_POWERS}"]
    done = subprocess.run([*drop, *command], capture_output=True, text=True, check=False)
    if done.stderr.startswith("setpriv"):
        pytest.skip(f"powers cannot be taken away here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


NAMES = [
    "log/000001.log",
    "log",
    "steps.zarr/zarr.json",
    "steps.zarr/000001",
    "steps.zarr/000001/zarr.json",
    "steps.zarr/000001/reward/c.0",
    "steps.zarr/000001/behaviour_kind/c.0",
    "episodes/000001.arrow",
    "locks",
    "locks/000001.lock",
    "overlays/main.zarr",
    "quarantine",
    ".",
]


def test_a_missing_permission_is_no_damage_and_nothing_is_repaired(sound: Sound) -> None:
    told = look(sound.path, *([name, 0] for name in NAMES), ["log", 0o311])
    for name, (damaged, judged, errors, *refused, untouched) in zip(
        [*NAMES, "log, without its list"], told, strict=True
    ):
        assert (damaged, judged, untouched) == (False, False, True), name
        assert {kind for kind, _ in errors} == {"not-readable"}, name
        assert all("Permission denied" in what for _, what in errors), name
        assert all(each.startswith("NotReadableError: cannot repair ") for each in refused), name
    assert storage.verify(sound.path).findings == ()


def test_a_process_that_may_open_no_more_files_finds_no_damage(sound: Sound) -> None:
    for damaged, judged, errors, *refused, untouched in look(sound.path, 1, 3):
        assert (damaged, judged, untouched) == (False, False, True)
        assert all("Too many open files" in what for _, what in errors)
        assert all(each.startswith("NotReadableError") for each in refused)


def test_what_may_not_be_written_is_refused_before_anything_changes(sound: Sound) -> None:
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    ((damaged, judged, _, planned, refused, untouched),) = look(
        sound.path, ["steps.zarr/000000/kind/c.0", 0o444]
    )
    assert (damaged, judged, untouched) == (True, True, True)
    assert "void" in planned
    assert refused.startswith("ReadOnlyStoreError")
