"""The command with streams that are closed or full, and with impatient users."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = f"{sys.executable} -m pipeline.cli"
COLLECT = "collect InvertedPendulum-v5 --steps=50 --store=s"


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("words", ["--help", "--version", "inspect --help", COLLECT])
def test_closed_output_is_one_line(tmp_path: Path, words: str) -> None:
    done = shell(tmp_path, f"{COMMAND} {words} >&-")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "sharpwave: error: standard output is closed; send it to a file or to /dev/null"
    ]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words", ["--help", "--version", "inspect --help", "train --help", COLLECT]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_output_is_one_line(tmp_path: Path, words: str, unbuffered: str) -> None:
    done = shell(tmp_path, f"PYTHONUNBUFFERED={unbuffered} {COMMAND} {words} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "sharpwave: error: standard output cannot be written: No space left on device"
    ]


@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full", "2>&- <&-", "2>&- >&- <&-"])
def test_without_a_place_for_errors_there_is_a_code(tmp_path: Path, end: str) -> None:
    done = shell(tmp_path, f"{COMMAND} inspect nowhere {end}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    done = shell(tmp_path, f"({COMMAND} --help; echo $? >code) | true; cat code")
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_files_that_the_system_refuses_are_one_line(tmp_path: Path) -> None:
    done = shell(tmp_path, f"{COMMAND} collect InvertedPendulum-v5 --steps=9 --store=/proc/none/s")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("sharpwave: error: ")
    assert "/proc/none" in line


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    wrapped = "--environment.wrappers=[NormalizeReward]"
    done = shell(tmp_path, f"{COMMAND} {COLLECT} {wrapped}")
    (line,) = done.stderr.splitlines()
    assert line.startswith("sharpwave: warning: NormalizeReward keeps running statistics")


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.1, 0.3])
def test_a_second_interrupt_leaves_without_a_traceback(tmp_path: Path, pause: float) -> None:
    words = ["collect", "InvertedPendulum-v5", "--steps=100000000", "--store=s"]
    child = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("s/log/*.log")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    time.sleep(pause)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    # The interpreter gives its signals back at its very end; shells know that as 130, too.
    assert child.returncode in (130, -signal.SIGINT), err
    assert "Traceback" not in err
