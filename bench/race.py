"""Loops side by side: each in a process of its own, of which one runs at a time."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bench.loop_setup import LoopSetup, play

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Race", "Stretch"]

_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A few rounds of one loop."""

    steps: int
    wall: float
    """Seconds that went by."""
    cpu: float
    """Seconds of processor time of the loop's process."""

    @property
    def rate(self) -> float:
        """Environment steps a second."""
        return self.steps / self.wall

    def microseconds(self, *, cpu: bool = False) -> float:
        """Microseconds a step, of the clock or of the processor."""
        return 1e6 * (self.cpu if cpu else self.wall) / self.steps


class Race(AbstractContextManager["Race"]):
    """Starts the loops one after the other; then each does a stretch when its turn comes.

    Args:
        setups: The loops, of different names.
        folder: Where their runs go.
    """

    def __init__(self, setups: Iterable[LoopSetup], folder: Path) -> None:
        self._setups = list(setups)
        self._folder = folder
        self._loops: dict[str, tuple[Any, Connection]] = {}

    def __enter__(self) -> Self:
        try:
            for number, setup in enumerate(self._setups):
                self._start(setup, self._folder / f"loop-{number}")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def works(self) -> dict[str, Callable[[], Stretch]]:
        """For each loop what lets it do one stretch."""
        return {name: _turn(pipe) for name, (_, pipe) in self._loops.items()}

    def _start(self, setup: LoopSetup, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_live, args=(setup, folder, theirs))
        process.start()
        theirs.close()
        self._loops[setup.name] = (process, ours)
        _answer(ours)

    def _stop(self) -> None:
        for process, pipe in self._loops.values():
            if process.is_alive():
                try:
                    pipe.send(False)
                except OSError:
                    process.terminate()
            process.join(_PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()


def _turn(pipe: Connection) -> Callable[[], Stretch]:
    def stretch() -> Stretch:
        pipe.send(True)
        done: Stretch = _answer(pipe)
        return done

    return stretch


def _answer(pipe: Connection) -> Any:
    try:
        answer = pipe.recv()
    except EOFError:
        raise RuntimeError("a loop's process died without a word") from None
    if isinstance(answer, str):
        raise RuntimeError(f"a loop failed:\n{answer}")
    return answer


def _live(setup: LoopSetup, folder: Path, pipe: Connection) -> None:
    """The life of a loop's process; who interrupts the benchmark (Ctrl-C) stops it in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _run(setup, folder, pipe)


def _run(setup: LoopSetup, folder: Path, pipe: Connection) -> None:
    """Warms up, says so, then does a stretch at each call."""
    try:
        play(setup, folder, _Turns(pipe, setup))
    except Exception:
        pipe.send(traceback.format_exc())


class _Turns:
    """Counts rounds; at a stretch's end reports it and waits for the next turn."""

    def __init__(self, pipe: Connection, setup: LoopSetup) -> None:
        self._pipe = pipe
        self._setup = setup
        self._left = 0
        self._began: tuple[int, float, float] | None = None

    def __call__(self, agent: Any) -> bool:
        if agent.counters.updates < self._setup.updates_before:
            return True
        self._left -= 1
        if self._left > 0:
            return True
        self._pipe.send(self._report(agent.environment_steps))
        go = bool(self._pipe.recv())
        self._left = self._setup.rounds
        self._began = (agent.environment_steps, time.perf_counter(), time.process_time())
        return go

    def _report(self, steps: int) -> Stretch | None:
        """What was done since the turn began; None at the end of the warm-up."""
        if self._began is None:
            return None
        began, wall, cpu = self._began
        return Stretch(steps - began, time.perf_counter() - wall, time.process_time() - cpu)
