"""An interrupt at a chosen place: the n-th line that the store's own code runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import storage

__all__ = ["count_lines", "interrupted_at"]

_FOLDER = str(Path(storage.__file__).parent)


class _Tracer:
    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.at = at
        self.seen = 0
        self.error = error

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_FOLDER):
            return None
        return self.line

    def line(self, _: FrameType, event: str, __: Any) -> Any:
        if event in ("line", "return"):
            self.seen += 1
            if self.seen == self.at:
                raise self.error
        return self.line


@contextmanager
def interrupted_at(at: int, error: type[BaseException] = KeyboardInterrupt) -> Iterator[_Tracer]:
    """Raise ``error`` once, at the at-th line or return below storage/ that the block runs."""
    tracer = _Tracer(at, error)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield tracer
    finally:
        sys.settrace(before)


def count_lines(call: Callable[[], object]) -> int:
    """How many places ``call`` has for an interrupt."""
    with interrupted_at(-1) as tracer:
        call()
    return tracer.seen
