"""One writer an overlay: a lock on a file beside it."""

from __future__ import annotations

import gc
from pathlib import Path

from storage.errors import OverlayInUseError
from storage.file_lock import FileLock, LockHeldError, held_here

__all__ = ["OverlayLock"]


class OverlayLock(FileLock):
    """A held lock of an overlay; ``release`` gives it back, and so does the end of the process.

    Raises OverlayInUseError naming who holds it.
    """

    __slots__ = ()

    def __init__(self, path: Path) -> None:
        if held_here(path):
            gc.collect()  # a view that nobody refers to any more, but for itself, holds nothing
        try:
            super().__init__(path)
        except LockHeldError as holder:
            name = path.name.removesuffix(".lock")
            raise OverlayInUseError(
                f"the overlay {name!r} has a writing view already, of {holder} ({path} is locked). "
                "Close that view, give this one another overlay name, or open it with "
                "private=True, which keeps what is fed back in this process"
            ) from None
        try:
            self.sign()
        except BaseException:
            self.release()
            raise
