"""The verb `sharpwave cliffwalk`."""

from __future__ import annotations

from pipeline.cliffwalk.command import main

__all__ = ["main"]
