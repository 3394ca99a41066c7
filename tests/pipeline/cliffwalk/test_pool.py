"""Processes that play trials."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pipeline.cliffwalk.theorem import processes


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def playing(process: int) -> bool:
    """Whether a process plays trials and is alive."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        state = (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        )
    except OSError:
        return False
    return b"spawn_main" in command and state != "Z"


def test_nobody_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    words = ["cliffwalk", "--n=12", "--seeds=40", "--samplers=uniform", "--processes=2"]
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *words, f"--folder={tmp_path / 'study'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as parent:
        until = time.monotonic() + 60
        workers: list[int] = []
        while len(workers) < 2 and time.monotonic() < until:
            time.sleep(0.2)
            workers = [each for each in children(parent.pid) if playing(each)]
        time.sleep(3)  # until they have begun: a process that still starts ends by itself
        os.kill(parent.pid, signal.SIGKILL)
    assert len(workers) == 2
    until = time.monotonic() + 20
    while any(playing(each) for each in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(playing(each) for each in workers)


def test_a_decay_that_reaches_nobody_has_no_window() -> None:
    names = [process.name for process in processes([0.005, 0.4])]
    assert names[-3:] == ["PSER, ρ 0.005", "PSER, ρ 0.4", "PSER, ρ 0.4, W 5"]
