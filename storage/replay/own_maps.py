"""Maps of a store's segments that belong to one view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.mapping import expect_random
from storage.segment import MappedSegment

if TYPE_CHECKING:
    from storage.store import Store

__all__ = ["OwnMaps"]


class OwnMaps:
    """Maps segments of a store for one view, so that they go when the view lets go of them.

    ``random`` has the kernel read single pages of what does not fit memory.
    """

    def __init__(self, store: Store, *, random: bool = False) -> None:
        self._store = store
        self._random = random

    def segment(self, segment_id: int) -> MappedSegment:
        """Fresh read-only maps of one segment."""
        store = self._store
        mapped = MappedSegment(store.paths, store.schema, store.log(segment_id))
        if self._random:
            for column in store.schema.columns:
                expect_random(mapped.array(column.name))
        return mapped
