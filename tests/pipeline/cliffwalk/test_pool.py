"""Processes that play trials."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pipeline.cliffwalk.theorem import processes

PARENT = """
import os, time
from pipeline.cliffwalk.pool import _workers

if __name__ == "__main__":
    with _workers(2) as executor:
        print(*{executor.submit(os.getpid).result() for _ in range(20)}, flush=True)
        executor.submit(time.sleep, 600).result()
"""


def alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_nobody_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(root)},
        text=True,
    ) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert workers
        assert all(alive(each) for each in workers)
        os.kill(parent.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(alive(each) for each in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(alive(each) for each in workers)


def test_a_decay_that_reaches_nobody_has_no_window() -> None:
    names = [process.name for process in processes([0.005, 0.4])]
    assert names[-3:] == ["PSER, ρ 0.005", "PSER, ρ 0.4", "PSER, ρ 0.4, W 5"]
