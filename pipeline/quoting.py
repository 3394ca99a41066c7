"""Paths in the commands that are suggested."""

from __future__ import annotations

import shlex
from pathlib import Path

__all__ = ["quote"]


def quote(path: Path | str) -> str:
    """The path as a word that a shell takes whole."""
    return shlex.quote(str(path))
