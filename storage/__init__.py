"""Data at rest and in memory maps: the store, its writer and readers, overlays, replay views.

>>> import storage
>>> store = storage.open("runs/hopper/store")            # doctest: +SKIP
>>> store.episodes.to_pandas()["return"].mean()          # doctest: +SKIP
"""

from __future__ import annotations

from storage.content_hash import content_hash
from storage.environment_spec import EnvironmentSpec
from storage.episode_table import EpisodeRecord
from storage.layout import BehaviourKind, Ending, RowKind
from storage.opening import create, open  # noqa: A004
from storage.orphans import rewind
from storage.position import StorePosition
from storage.store import Store

__all__ = [
    "BehaviourKind",
    "Ending",
    "EnvironmentSpec",
    "EpisodeRecord",
    "RowKind",
    "Store",
    "StorePosition",
    "content_hash",
    "create",
    "open",
    "rewind",
]
