"""The processes behind a vector environment: which one failed, and their certain end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from training.environment_contract import fault, process_fault

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
        return self.make()


class LaneProcesses:
    """What a vector environment's processes did; none where it has none.

    Args:
        env: The vector environment; its ``processes``, one a lane, are those of gymnasium's
            ``AsyncVectorEnv``, and so are its ``parent_pipes``, None for a lane that raised.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._one_died = False
        self._processes: list[BaseProcess] = list(getattr(env, "processes", ()))

    def fault(self, call: str, error: Exception, lane: int | None = None) -> EnvironmentFaultError:
        """The error for what ``call`` raised; ``lane`` is named where no other is known to fail."""
        pipes = getattr(self._env, "parent_pipes", ())
        raised = next((lane for lane, pipe in enumerate(pipes) if pipe is None), None)
        if raised is not None:
            # The error was made anew in this process, around the one that the lane sent.
            cause = error.args[0] if len(error.args) == 1 else None
            return fault(raised, call, cause if type(cause) is type(error) else error)
        if isinstance(error, EOFError | OSError) and self._processes:
            died = wait([process.sentinel for process in self._processes], _PATIENCE)
            for number, process in enumerate(self._processes):
                if process.sentinel in died:
                    process.join(_PATIENCE)
                    self._one_died = True
                    return process_fault(number, call, process.exitcode)
        return fault(lane, call, error)

    def close(self) -> None:
        """Close the environment; no process of it is left, whatever it and its lanes do.

        An interrupt meanwhile, be it that of a lane, only ends the waiting.
        """
        if not self._processes:
            self._env.close()
            return
        if self._one_died:
            self._kill()  # gymnasium would wait for answers that were taken already
        watch = threading.Timer(_PATIENCE, self._kill)
        watch.start()
        with warnings.catch_warnings(), contextlib.suppress(Exception, KeyboardInterrupt):
            warnings.simplefilter("ignore")
            self._env.close()
        watch.cancel()
        self._kill()
        for process in self._processes:
            process.join()
        self._env.closed = True

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
