"""A warm parent process that forks children: real processes that start within milliseconds.

What a child costs is imports and first calls of compiled code. The nursery has done both before its
first fork, so a test can kill hundreds of children within minutes. A child is a process like any
other: it has its own descriptors, locks and maps, and SIGKILL ends it at once. The nursery runs as

    python -m tests.faults.nursery

and speaks JSON lines: ``{"job": "module:function", "args": [...], "output": path}`` gives
``{"pid": …}``, and ``{"wait": pid}`` gives ``{"status": exit code, or minus the signal}``.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Child", "Nursery", "eventually", "nursery"]

_ROOT = Path(__file__).parents[2]
_PARENT_DEATH_SIGNAL = 1
"""Linux, prctl(2)."""


def eventually(what: Callable[[], Any], why: str, seconds: float = 120.0) -> Any:
    """What ``what`` gives once that is true; fails the test when it never is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError(f"waited {seconds} s in vain: {why}")


@dataclass
class Child:
    """A forked process, and the file that takes its output."""

    parent: Nursery
    pid: int
    output: Path
    status: int | None = None

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> int:
        """SIGKILL, and what it ended with: minus the signal, or its exit code if it was faster."""
        if self.status is None:
            self.send(signal.SIGKILL)  # a zombie until the nursery reaps it, so the id is its own
        return self.wait()

    def wait(self) -> int:
        if self.status is None:
            self.status = int(self.parent.ask({"wait": self.pid})["status"])
        return self.status

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    @property
    def said(self) -> str:
        return self.output.read_text(errors="replace")


class Nursery:
    """The driver's end."""

    def __init__(self, folder: Path, *, learning: bool) -> None:
        self._folder = folder
        self._serial = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery", "learning" if learning else "writing"],
            cwd=_ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.ask({"warm": str(folder / "warm")}) == {"ready": True}

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the nursery is gone"
        return json.loads(line)

    def start(self, job: str, *args: Any, cwd: Path | None = None) -> Child:
        """Fork a child that calls ``job`` of tests.faults.jobs."""
        self._serial += 1
        output = self._folder / f"output{self._serial}"
        output.touch()
        answer = self.ask(
            {
                "job": job,
                "args": [str(arg) if isinstance(arg, Path) else arg for arg in args],
                "output": str(output),
                "cwd": str(cwd or self._folder),
            }
        )
        return Child(self, answer["pid"], output)

    def command(self, *words: object, cwd: Path | None = None) -> Child:
        """Fork a child that is the ``sharpwave`` command with these words."""
        return self.start("command", [str(word) for word in words], cwd=cwd)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def nursery(folder: Path, *, learning: bool = False) -> Iterator[Nursery]:
    made = Nursery(folder, learning=learning)
    try:
        yield made
    finally:
        made.close()


def _become(question: dict[str, Any]) -> None:
    """What the child does; it leaves as any Python program does, through SystemExit."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)  # none outlives its nursery
    output = os.open(question["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.chdir(question["cwd"])
    jobs = importlib.import_module("tests.faults.jobs")
    sys.exit(getattr(jobs, question["job"])(*question["args"]))


def _serve(learning: bool) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in iter(sys.stdin.readline, ""):
        question = json.loads(line)
        answer: dict[str, Any]
        if "warm" in question:
            importlib.import_module("tests.faults.jobs").warm(question["warm"], learning)
            answer = {"ready": True}
        elif "wait" in question:
            _, status = os.waitpid(question["wait"], 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        else:
            child = os.fork()
            if child == 0:
                answers.close()
                _become(question)
            answer = {"pid": child}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1] == "learning")
    os._exit(0)  # a child never comes here; nothing of the nursery's own is worth a second
