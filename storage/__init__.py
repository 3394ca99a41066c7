"""Data at rest and in memory maps: the store, its writer and readers, overlays, replay views.

>>> import storage
>>> store = storage.open("runs/hopper/store")            # doctest: +SKIP
>>> store.episodes.to_pandas()["return"].mean()          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage.content_hash import content_hash
from storage.environment_spec import EnvironmentSpec
from storage.episode_table import EpisodeRecord
from storage.layout import BehaviourKind, Ending, RowKind
from storage.opening import create, open  # noqa: A004
from storage.orphans import rewind
from storage.position import StorePosition
from storage.store import Store

if TYPE_CHECKING:
    from storage.repairing.actions import RepairReport
    from storage.repairing.repair import repair
    from storage.verification.findings import Finding, Report
    from storage.verification.verify import verify

__all__ = [
    "BehaviourKind",
    "Ending",
    "EnvironmentSpec",
    "EpisodeRecord",
    "Finding",
    "RepairReport",
    "Report",
    "RowKind",
    "Store",
    "StorePosition",
    "content_hash",
    "create",
    "open",
    "repair",
    "rewind",
    "verify",
]

_HOME = {
    "Finding": "storage.verification",
    "RepairReport": "storage.repairing",
    "Report": "storage.verification",
    "repair": "storage.repairing",
    "verify": "storage.verification",
}


def __getattr__(name: str) -> Any:
    """Import what only those need who look after a store."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'storage' has no attribute {name!r}")
