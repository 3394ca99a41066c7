"""Standard output and standard error when they are closed, full, or nobody reads them."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from contextlib import suppress

__all__ = ["complain", "leave_at_next_interrupt", "lost_output", "open_streams"]


class _Output(io.TextIOWrapper):
    """Standard output that remembers why it took nothing any more; argparse ignores that."""

    lost: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self.lost = error
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.lost = error
            raise


def open_streams() -> bool:
    """Makes sure that nothing else can take the place of a closed stream; False without output.

    The next file that a process opens gets the lowest free number, so that what libraries print
    would land in a store.
    """
    closed = [number for number in (0, 1, 2) if _is_closed(number)]
    for number in closed:
        hole = os.open(os.devnull, os.O_RDWR)
        if hole != number:
            os.dup2(hole, number)
            os.close(hole)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as we live
    if 1 in closed or sys.stdout is None:
        complain("sharpwave: error: standard output is closed; send it to a file or to /dev/null")
        return False
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Output(
            sys.stdout.buffer,
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.line_buffering,
            write_through=sys.stdout.write_through,
        )
    return True


def complain(text: str) -> None:
    """Prints to standard error, where that is possible."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _discard(sys.stderr)


def lost_output() -> int | None:
    """The exit code when standard output took nothing any more; None when it is as it should be."""
    if isinstance(sys.stdout, _Output):
        with suppress(OSError):
            sys.stdout.flush()
        error = sys.stdout.lost
        if error is not None:
            # The interpreter must not flush into it again when it ends.
            _discard(sys.stdout)
            if error.errno == errno.EPIPE:
                return 141  # Whoever read our output has gone (`| head`).
            complain(f"sharpwave: error: standard output cannot be written: {error.strerror}")
            return 2
    return None


def leave_at_next_interrupt() -> None:
    """From here on Ctrl-C ends the process at once: everything is closed, and all is said.

    The last moments of the interpreter are deaf to it, for they would take it as any program does:
    the process would die of the signal instead of ending with its exit code.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _discard(stream: object) -> None:
    try:
        hole = os.open(os.devnull, os.O_WRONLY)
        os.dup2(hole, stream.fileno())  # type: ignore[attr-defined]
        os.close(hole)
    except (OSError, ValueError):
        return
