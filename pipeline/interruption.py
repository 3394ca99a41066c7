"""Stops a run at the end of a round when the user, or the machine, asks for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from lightning.pytorch.callbacks import Callback

__all__ = ["RoundEndStop"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class RoundEndStop(Callback):
    """Lets the first Ctrl-C or SIGTERM end training after the round; the second ends it at once.

    Then the run writes a checkpoint where it stands, so that resuming loses nothing. A Ctrl-C while
    the run is being made (libraries that load code swallow interrupts there) ends it before its
    first round; a SIGTERM does there, and both do after the last round, what they always do.
    Nothing of value depends on any of this; a run that is killed goes on from its last checkpoint.
    """

    words_interrupts = True
    """The command says itself what is kept, and how to go on."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """The signal that asked the run to stop."""
        self.at_once = False
        """Whether Ctrl-C came again; whatever error ends training then is that interrupt."""
        self._before: dict[int, Any] = {}
        self._began = False
        self._owner = os.getpid()

    @property
    def stop_asked(self) -> bool:
        """Whether a signal came; an evaluation that is under way is left then."""
        return self.signal is not None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Takes Ctrl-C while the run is made, and until training ends."""
        self._take_over(signal.SIGINT)
        try:
            yield
        finally:
            self.give_back()

    def on_train_epoch_start(self, trainer: Any, *_: Any) -> None:
        """Ends training before the first round, where Ctrl-C came before it."""
        if self.signal is not None:
            trainer.should_stop = True

    def on_train_batch_start(self, *_: Any) -> None:
        """Takes the signals when the first round begins; Lightning has set its own by now."""
        if not self._began:
            self._began = True
            for number in _SIGNALS:
                if number not in self._before and self.signal is None:
                    self._take_over(number)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Ends training; the checkpoint at its end follows."""
        if self.signal is not None:
            trainer.should_stop = True

    def on_train_end(self, *_: Any) -> None:
        """Gives the signals back."""
        self.give_back()

    def on_exception(self, *_: Any) -> None:
        """Gives back what is still ours; Lightning may have taken Ctrl-C meanwhile."""
        self.give_back()

    def give_back(self) -> None:
        """Has signals do again what they did before."""
        for number, handler in self._before.items():
            if signal.getsignal(number) in (self._take, self._take_again):
                signal.signal(number, handler)

    def _take_over(self, number: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        # A shell's background job ignores Ctrl-C, and goes on doing so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            self._before[number] = signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            return  # a lane's process that was just forked; its parent ends it
        # One that comes while the first is being taken is taken within it, or before it. No call
        # between this question and its answer, for between the two no handler may run.
        if self.signal is not None:
            self._end(number, frame)
            return
        self.signal = number
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        when = "after this round, with a checkpoint" if self._began else "before the first round"
        # No print: it may be what was interrupted.
        os.write(2, f"\nsharpwave: stopping {when}{again}\n".encode())
        interrupt = self._before.get(signal.SIGINT)
        self.give_back()
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)  # Lightning's would only note it.
        elif callable(interrupt):
            self._before[number] = interrupt
            signal.signal(number, self._take_again)

    def _take_again(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            return
        self._end(number, frame)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Does what the signal does by itself."""
        self.at_once = True
        before = self._before.get(number)
        if number != signal.SIGTERM and callable(before):
            before(number, frame)
            return
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
