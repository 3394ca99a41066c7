"""Memory, descriptors and files stay bounded while a store grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
import pipeline.collect as collect

def anonymous() -> int:
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) // 1024

def advance(collector, steps):
    for mark in (steps // 4, steps):
        while collector.steps < mark:
            collector.advance()
        print("MARK", anonymous(), len(os.listdir("/proc/self/fd")), flush=True)

collect._advance = advance
collect.main(sys.argv[1:])
"""


def marks(folder: Path, *words: str) -> list[tuple[int, int]]:
    """Anonymous MiB and open descriptors at a quarter of the steps, and at their end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "InvertedPendulum-v5", "--store=store", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("MARK")]
    return [(int(memory), int(descriptors)) for memory, descriptors in lines]


@pytest.mark.soak
def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    (before, _), (after, _) = marks(tmp_path, "--steps=400000")
    assert after - before < 50


@pytest.mark.soak
def test_descriptors_stay_few_with_many_lanes_and_segments(tmp_path: Path) -> None:
    (_, _), (_, descriptors) = marks(tmp_path, "--steps=600000", "--lanes=8")
    assert len(list((tmp_path / "store/steps.zarr").glob("[0-9]*"))) >= 100
    assert descriptors < 64
