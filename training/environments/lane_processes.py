"""The processes behind a vector environment: which one failed, and their certain end."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TextIO

from training.environments.environment_contract import fault, process_fault
from training.quiet import quiet_workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

    from storage.errors import EnvironmentFaultError

__all__ = ["LaneProcesses", "Undisturbed"]

_PATIENCE = 5.0
"""Seconds that environments get to close by themselves."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Constructor of an environment that, in a process of its own, leaves Ctrl-C to its parent.

    A terminal sends an interrupt to every process of a run. The parent ends its lanes in order;
    they must not have died before.

    Args:
        make: Makes the environment.
    """

    make: Callable[[], Any]
    owner: int = field(default_factory=os.getpid)
    """The process that keeps its own way with interrupts."""

    def __call__(self) -> Any:
        """The environment."""
        if os.getpid() != self.owner:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.stderr = _WhileParented(sys.stderr)
        return self.make()


class _WhileParented(io.TextIOBase):
    """Standard error of a lane's process, which says nothing more once its parent is gone.

    A killed parent leaves broken pipes, which gymnasium's loop and then multiprocessing word by
    tracebacks. The process ends all the same.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._parent = os.getppid()

    def write(self, text: str) -> int:
        """Writes, or drops the text."""
        return self._stream.write(text) if self._parented() else len(text)

    def _parented(self) -> bool:
        """Whether the parent lives; a killed one has no files before it has no children."""
        with contextlib.suppress(OSError):
            if not os.listdir(f"/proc/{self._parent}/fd"):
                return False
        return os.getppid() == self._parent

    def flush(self) -> None:
        """Flushes."""
        self._stream.flush()

    def fileno(self) -> int:
        """The descriptor below."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()


class LaneProcesses:
    """Asks a vector environment, and sees to its processes; most vector environments have none.

    Args:
        env: The vector environment. Its ``processes`` and ``parent_pipes``, one a lane, are those
            of gymnasium's ``AsyncVectorEnv``; a pipe is None when its lane raised an error.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        forked = hasattr(env, "parent_pipes")
        self._processes: list[BaseProcess] = list(env.processes) if forked else []
        if forked:
            quiet_workers()

    def ask(self, call: str, lane: int | None, function: Callable[[], Any]) -> Any:
        """What ``function``, a call of the environment, gives.

        Raises:
            EnvironmentFaultError: it failed; the lane that did is named, or else ``lane``.
        """
        try:
            return function()
        except Exception as error:
            raise self._fault(call, error, lane) from error

    def _fault(self, call: str, error: Exception, lane: int | None) -> EnvironmentFaultError:
        pipes = self._env.parent_pipes if self._processes else ()
        raised = next((number for number, pipe in enumerate(pipes) if pipe is None), None)
        if raised is not None:
            # The error was made anew in this process, around the one that the lane sent.
            cause = error.args[0] if len(error.args) == 1 else None
            return fault(raised, call, cause if type(cause) is type(error) else error)
        if isinstance(error, EOFError | OSError) and self._processes:
            died = wait([process.sentinel for process in self._processes], _PATIENCE)
            for number, process in enumerate(self._processes):
                if process.sentinel in died:
                    process.join(_PATIENCE)
                    return process_fault(number, call, process.exitcode)
        return fault(lane, call, error)

    def close(self) -> None:
        """Close the environment; no process of it is left, whatever it and its lanes do."""
        if not self._processes:
            self._env.close()
        elif not self._env.closed:
            try:
                self._dismiss()
            finally:
                for process in self._processes:
                    process.kill()
                    process.join()
                self._env.closed = True

    def _dismiss(self) -> None:
        """Let every lane close its environment, for as long as patience lasts.

        gymnasium's own way waits for one answer of each lane: for ever where an interrupt came
        after some were taken, or where a lane is dead.
        """
        pipes = [pipe for pipe in self._env.parent_pipes if pipe is not None]
        for pipe in pipes:
            with contextlib.suppress(OSError):
                pipe.send(("close", None))
        deadline = time.monotonic() + _PATIENCE
        while pipes and (left := deadline - time.monotonic()) > 0:
            answered: list[Any] = wait(pipes, left)
            for pipe in answered:
                try:
                    pipe.recv()
                except (EOFError, OSError):
                    pipe.close()
                    pipes.remove(pipe)
