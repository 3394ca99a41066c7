"""Folders that one process at a time writes into."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.errors import ConfigError

__all__ = ["held_folder"]


@contextmanager
def held_folder(path: Path, taken: str) -> Iterator[None]:
    """The folder, made where it is not there, and held against other processes.

    Raises:
        ConfigError: another process holds it; `taken` is the message.
    """
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(taken) from None
        yield
    finally:
        os.close(descriptor)
