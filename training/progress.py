"""Shows how a run is getting on, counted in what its budget counts."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from lightning.pytorch.callbacks import Callback

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightning

__all__ = ["RunProgress", "Status", "duration"]

_MEASURED = 5.0
"""Seconds of updates from which the rest is told."""


@dataclass(frozen=True, slots=True)
class Status:
    """A run at one moment."""

    steps: int
    """Environment steps so far, warm-up included; updates where a fixed store is learnt from."""
    budget: int
    """The same of the whole run."""
    updates: int
    """Gradient steps so far."""
    mean_return: float
    """Mean return of the last 100 episodes; NaN before the first."""
    beta: float
    """Weight of the improvement against the divergence."""
    far_fraction: float
    """n_far / N."""
    acting: bool = True
    """Whether steps are taken in environments."""

    @property
    def unit(self) -> str:
        """What the budget counts."""
        return "steps" if self.acting else "updates"

    def line(self, speed: float, left: float | None = None) -> str:
        """One plain line; ``speed`` in steps of the budget a second, ``left`` in seconds."""
        done = f"{self.steps:,} of {self.budget:,} {self.unit}"
        ends = "" if left is None else f"  {duration(left)} left"
        return f"{done} ({100 * self.steps / self.budget:.0f} %)  {self.numbers(speed)}{ends}"

    def numbers(self, speed: float) -> str:
        """Everything but the steps."""
        shown = "–" if math.isnan(self.mean_return) else f"{self.mean_return:.1f}"
        acted = f"updates {self.updates:,}  return (100) {shown}  " if self.acting else ""
        return f"{acted}β {self.beta:.3f}  far {self.far_fraction:.3f}  {speed:,.0f} {self.unit}/s"


def duration(seconds: float) -> str:
    """A forecast of time, as exact as one is."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class _HasStatus(Protocol):
    def status(self) -> Status: ...


class RunProgress(Callback):
    """A live bar on a terminal; elsewhere a plain line every ``interval`` seconds, and a last one.

    Updates take most of a run's time, so how long it will take is told once they have begun: in a
    line of its own as soon as some seconds of them were measured, and in all lines after it.

    Args:
        stream: Where to write; standard error by default, looked up when training starts.
        interval: Seconds between two plain lines.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        interval: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._interval = interval
        self._clock = clock
        self._bar: _Bar | None = None
        self._refresh = interval
        self._began = 0.0
        self._shown = 0.0
        self._first = 0
        self._updates = 0
        self._learning: tuple[float, int] | None = None
        """When the first updates had been made, and at which step."""
        self._foretold = False

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Opens the bar where the output is a terminal."""
        status = _status(pl_module)
        self._stream = self._stream or sys.stderr
        self._began = self._shown = self._clock()
        self._first, self._updates = status.steps, status.updates
        if self._stream.isatty():
            self._bar = _Bar(self._stream, status)
            self._refresh = 0.2

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,  # noqa: ARG002
        pl_module: Any,
        *_: Any,
    ) -> None:
        """Shows the state after a round, unless something was shown just before."""
        now, status = self._clock(), _status(pl_module)
        if self._learning is None and status.updates > self._updates:
            self._learning = now, status.steps
        measured = self._learning is not None and now - self._learning[0] >= _MEASURED
        if now - self._shown >= self._refresh or (measured and not self._foretold):
            self._shown, self._foretold = now, measured
            self._show(status, now)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Shows the final state and closes the bar."""
        self._show(_status(pl_module), self._clock())
        self._close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Closes the bar, so that the error stands on a clean line."""
        self._close()

    def _show(self, status: Status, now: float) -> None:
        speed = (status.steps - self._first) / max(now - self._began, 1e-9)
        if self._bar is not None:
            self._bar.show(status, speed)
        elif self._stream is not None:
            self._stream.write(status.line(speed, self._left(status, now)) + "\n")
            self._stream.flush()

    def _left(self, status: Status, now: float) -> float | None:
        """Seconds to the end at the speed since updates began; None while nobody knows."""
        if self._learning is None or now - self._learning[0] < _MEASURED:
            return None
        began, steps = self._learning
        rest = status.budget - status.steps
        return rest * (now - began) / (status.steps - steps) if rest > 0 else None

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _status(module: _HasStatus) -> Status:
    return module.status()


class _Bar:
    """A live bar and a line of numbers below it, narrow enough for 80 columns."""

    def __init__(self, stream: TextIO, status: Status) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + status.unit),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
            expand=True,
        )
        self._task = self._bar.add_task("", total=status.budget, completed=status.steps)
        self._live = Live(console=Console(file=stream), refresh_per_second=4)
        self._live.start()

    def show(self, status: Status, speed: float) -> None:
        """Shows the state; ``speed`` in steps of the budget a second."""
        from rich.console import Group
        from rich.text import Text

        self._bar.update(self._task, total=status.budget, completed=status.steps)
        self._live.update(Group(self._bar, Text(status.numbers(speed), style="dim")))

    def close(self) -> None:
        """Leaves the last state on the screen."""
        self._live.stop()
