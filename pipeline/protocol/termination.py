"""SIGTERM as an interrupt that can be told apart from Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from pipeline.streams import complain

__all__ = ["Termination"]


class Termination:
    """While it is entered, the first SIGTERM raises `KeyboardInterrupt`; the second ends at once.

    Who catches that writes what there is to keep and calls `end`; where nobody does, the process
    ends here.
    """

    def __init__(self) -> None:
        self.came = False
        """Whether SIGTERM came."""
        self._before: Any = None

    def __enter__(self) -> Termination:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGTERM, self._take)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.came:
            if kind is not None and issubclass(kind, KeyboardInterrupt):
                self.end("")
        elif self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def end(self, told: str) -> None:
        """Says `told` and ends the process as SIGTERM does: exit code 143 in a shell."""
        complain(f"\nsharpwave: terminated. {told}".rstrip())
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    def _take(self, number: int, _: FrameType | None) -> None:
        self.came = True
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt
