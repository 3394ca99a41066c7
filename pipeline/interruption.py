"""Stops a run at the end of a round when the user, or the machine, asks for it."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Final

from lightning.pytorch.callbacks import Callback

__all__ = ["RoundEndStop"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class RoundEndStop(Callback):
    """Lets the first Ctrl-C or SIGTERM end training after the round; the second ends it at once.

    Then the run writes a checkpoint where it stands, so that resuming loses nothing. Before the
    first round and after the last one signals do what they always do: nothing would be gained by
    waiting. Nothing of value depends on any of this; a run that is killed goes on from its last
    checkpoint.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        """The signal that asked the run to stop."""
        self._before: dict[int, Any] = {}

    def on_train_batch_start(self, *_: Any) -> None:
        """Takes the signals when the first round begins; Lightning has set its own by now."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            # A shell's background job ignores Ctrl-C, and goes on doing so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Ends training; the checkpoint at its end follows."""
        if self.signal is not None:
            trainer.should_stop = True

    def on_train_end(self, *_: Any) -> None:
        """Gives the signals back."""
        self._give_back()

    def on_exception(self, *_: Any) -> None:
        """Gives back what is still ours; Lightning may have taken Ctrl-C meanwhile."""
        self._give_back()

    def _take(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        # No print: it may be what was interrupted.
        text = f"\nsharpwave: stopping after this round, with a checkpoint{again}\n"
        os.write(2, text.encode())
        self._give_back()
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)  # Lightning's would only note it.

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._take:
                signal.signal(number, handler)
