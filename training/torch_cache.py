"""The folder that torch keeps compiled code in; without one Lightning cannot even be imported."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

__all__ = ["CacheFolderWarning", "ensure_cache_folder"]

_NAME = "TORCHINDUCTOR_CACHE_DIR"


class CacheFolderWarning(UserWarning):
    """A cache folder that was asked for and cannot be used."""


def ensure_cache_folder() -> None:
    """Falls back to torch's own folder where ``TORCHINDUCTOR_CACHE_DIR`` cannot be written.

    Call it before Lightning is imported: that makes the folder, and fails if it cannot.
    """
    folder = os.environ.get(_NAME)
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        del os.environ[_NAME]
        warnings.warn(
            f"{_NAME} is {folder}, which cannot be written ({error.strerror}): torch keeps "
            "compiled code in its default folder instead",
            CacheFolderWarning,
            stacklevel=2,
        )
