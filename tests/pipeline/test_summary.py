"""What a store is said to take of the disk, also while somebody writes into it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pipeline.summary import disk_use


def fill(path: Path) -> None:
    for name, size in (
        ("steps.zarr/zarr.json", 1),
        ("steps.zarr/000000/reward/c.0", 10_000),
        ("log/000000.log", 5_000),
        ("episodes/000000.arrow", 1),
        ("overlays/main.zarr/000000/priority/c.0", 9_000),
        ("staging/000001/reward/c.0", 4_000),
        ("zarr.txt", 1),
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(bytes(size))


def test_parts_are_the_blocks_of_their_files(tmp_path: Path) -> None:
    fill(tmp_path)
    use = disk_use(tmp_path)
    blocks = {
        file.relative_to(tmp_path).parts[0]: file.stat().st_blocks * 512
        for file in tmp_path.rglob("*")
        if file.is_file()
    }
    assert use["logs"] == blocks["log"] > 0
    assert use["overlays"] == blocks["overlays"] > 0
    assert use["episode tables"] == blocks["episodes"] > 0
    assert use["steps"] > blocks["steps.zarr"] > 0
    assert use["other"] == blocks["staging"] + blocks["zarr.txt"] > 0
    assert use["total"] == sum(size for name, size in use.items() if name != "total")


@pytest.mark.parametrize("gone", ["staging/000001", "staging/000001/reward/c.0"])
def test_what_goes_meanwhile_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """A half-made segment is renamed into place while its folder is walked."""
    fill(tmp_path)
    walk = os.walk

    def meanwhile(top, *args, **options):
        for found in walk(top, *args, **options):
            if found[0].endswith("staging" if gone.endswith("1") else "000001/reward"):
                place = tmp_path / gone
                shutil.rmtree(place) if place.is_dir() else place.unlink()
            yield found

    monkeypatch.setattr(os, "walk", meanwhile)
    assert disk_use(tmp_path)["other"] == (tmp_path / "zarr.txt").stat().st_blocks * 512
