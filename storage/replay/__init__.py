"""Replay: drawing batches from a window over a store, and feeding back what was learnt.

Importing this package is cheap; kernels are loaded by the names that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.replay.batch import Batch
    from storage.replay.feedback import Feedback
    from storage.replay.n_step import NStep, NStepReturns
    from storage.replay.refresh import RefreshChunk
    from storage.replay.schemes.priority_settings import (
        PRIORITY_PRESETS,
        PrioritySettings,
        SequenceSettings,
    )
    from storage.replay.schemes.scheme import Scheme
    from storage.replay.schemes.sum_tree import SumTree
    from storage.replay.statistics import WindowStatistics
    from storage.replay.targets import value_targets
    from storage.replay.view import ReplayView

__all__ = [
    "PRIORITY_PRESETS",
    "Batch",
    "Feedback",
    "NStep",
    "NStepReturns",
    "PrioritySettings",
    "RefreshChunk",
    "ReplayView",
    "Scheme",
    "SequenceSettings",
    "SumTree",
    "WindowStatistics",
    "value_targets",
]

_HOMES = {
    "PRIORITY_PRESETS": "schemes.priority_settings",
    "Batch": "batch",
    "Feedback": "feedback",
    "NStep": "n_step",
    "NStepReturns": "n_step",
    "PrioritySettings": "schemes.priority_settings",
    "RefreshChunk": "refresh",
    "ReplayView": "view",
    "Scheme": "schemes.scheme",
    "SequenceSettings": "schemes.priority_settings",
    "SumTree": "schemes.sum_tree",
    "WindowStatistics": "statistics",
    "value_targets": "targets",
}


def __getattr__(name: str) -> Any:
    """Loads a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'storage.replay' has no attribute {name!r}")
    return getattr(importlib.import_module(f"storage.replay.{_HOMES[name]}"), name)
