"""Replay: drawing batches from a window over a store, and feeding back what was learnt."""

from __future__ import annotations

from storage.replay.batch import Batch
from storage.replay.feedback import Feedback
from storage.replay.refresh import RefreshChunk
from storage.replay.scheme import Scheme
from storage.replay.statistics import WindowStatistics
from storage.replay.targets import value_targets
from storage.replay.view import ReplayView

__all__ = [
    "Batch",
    "Feedback",
    "RefreshChunk",
    "ReplayView",
    "Scheme",
    "WindowStatistics",
    "value_targets",
]
