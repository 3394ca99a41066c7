"""The verb `sharpwave protocol`."""

from __future__ import annotations

from pipeline.protocol.command import main

__all__ = ["main"]
