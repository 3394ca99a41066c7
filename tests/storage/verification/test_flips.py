"""Any bit of any file turned over, any file cut short: found and mended, or of no consequence."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import storage
from tests.storage.damage import cut, flip, make_sound, tree
from tests.storage.zoo import play


def live(path: Path, seed: int) -> str:
    """One life: damage, verify, repair, go on. Gives what was found."""
    sound = make_sound(path)
    rng = random.Random(seed)
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.stat().st_size]
    told = []
    for _ in range(rng.choice([1, 1, 2, 4])):
        file = rng.choice(files)
        at = rng.randrange(max(1, file.stat().st_size))
        how = rng.random()
        told.append(f"{file.relative_to(path)} at {at}, {how}")
        if how < 0.75:
            flip(file, min(at, file.stat().st_size - 1), rng.randrange(8)) if at else None
        elif how < 0.95:
            cut(file, at)
        else:
            file.unlink(missing_ok=True)
            file.touch()
    report = storage.verify(path)
    found = {each.kind for each in (*report.errors, *report.warnings)}
    repaired = storage.repair(path)
    message = f"seed {seed}: {told}: {found}"
    assert bool(repaired.actions) == bool(found), message
    assert sound.kinds() == set(), message
    left = sound.readable()
    gone = set(sound.episodes) - left
    assert len(gone) == repaired.episodes_lost or found & LOG, message
    before = tree(path)
    assert storage.repair(path).actions == ()
    assert tree(path) == before, message
    with storage.open(path, "r+") as store, store.writer(run="next") as writer:
        record = play(writer, 0, 1)
        assert record.segment == 4, message
    assert sound.kinds() == set(), message
    return "lost" if gone else "found" if found else "harmless"


LOG = {"log-record", "log-order", "log-unreadable", "torn-tail", "log-foreign"}
"""Where the log itself is hurt, a repair cannot name every episode that goes."""


def test_damage_anywhere_is_found_and_mended_or_harmless(tmp_path: Path) -> None:
    outcomes = [live(tmp_path / str(seed), seed) for seed in range(12)]
    assert outcomes.count("found") + outcomes.count("lost") > 6


@pytest.mark.soak
def test_damage_anywhere_through_many_lives(tmp_path: Path) -> None:
    outcomes = []
    for seed in range(1000, 1600):
        outcomes.append(live(tmp_path / "store", seed))
        shutil.rmtree(tmp_path / "store")
    assert {"lost", "found", "harmless"} == set(outcomes)


@pytest.mark.parametrize("folder", ["steps.zarr", "log", "episodes", "overlays"])
def test_every_byte_of_every_small_file_matters_or_is_of_no_consequence(
    folder: str, tmp_path: Path
) -> None:
    """Of one segment's metadata, table and log, each with a bit turned over, in strides."""
    sound = make_sound(tmp_path / "store")
    small = [f for f in sorted((sound.path / folder).rglob("*")) if f.suffix in _SMALL]
    silent = 0
    for file in small[:2]:
        data = file.read_bytes()
        for at in range(3, len(data), 1 + len(data) // 8):
            flip(file, at, at % 8)
            if not sound.kinds():
                silent += 1
                assert sound.readable() == set(sound.episodes), f"{file} at {at}"
            file.write_bytes(data)
    assert silent <= 6


_SMALL = {".json", ".log", ".arrow"}
