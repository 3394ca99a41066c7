"""Maps of a store's segments that belong to one view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.segment import MappedSegment

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["OwnMaps"]


class OwnMaps:
    """Maps segments of a store for one view, so that they go when the view lets go of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def segment(self, segment_id: int) -> MappedSegment:
        """Fresh read-only maps of one segment."""
        return MappedSegment(self._store.paths, self._store.schema, self._store.log(segment_id))
