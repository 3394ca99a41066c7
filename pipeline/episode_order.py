"""The episodes of a store in the order in which they ended, whatever the clock did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from storage.layout import Ending
from storage.log_record import RECORD
from storage.retention import dropped_records

if TYPE_CHECKING:
    from storage import Store

__all__ = ["in_order_of_end", "merge_lanes", "whole_returns"]

_WHOLE: Final = [ending for ending in Ending if ending.by_environment]


def in_order_of_end(store: Store, run: str | None = None) -> np.ndarray[Any, Any]:
    """All episodes (dtype RECORD), of dropped segments, too; those of one run where it is named.

    Raises:
        CorruptStoreError: the table of a dropped segment cannot be read.
    """
    lanes: dict[tuple[str, int], list[np.ndarray[Any, Any]]] = {}
    for name, lane, records in dropped_records(store.paths):
        lanes.setdefault((name, lane), []).append(records)
    for info in sorted(store.segments, key=lambda segment: segment.id):
        lanes.setdefault((info.run, info.lane), []).append(store.records(info.id))
    return merge_lanes([parts for (name, _), parts in lanes.items() if run in (None, name)])


def whole_returns(records: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Undiscounted return of each episode; NaN where something else than the environment ended it.

    The end of a run, a full segment, a value that is not finite and the death of a writer cut an
    episode: what it had gained by then is no return, and belongs into no mean of returns.
    """
    whole = np.isin(records["ending"], _WHOLE)
    return np.where(whole, records["return"], np.nan).astype(np.float64)


def merge_lanes(lanes: list[list[np.ndarray[Any, Any]]]) -> np.ndarray[Any, Any]:
    """Episodes of lanes (each a list of its segments' records, in order) by the end of each.

    A lane's own order is that of its log, also where a clock was set back between two episodes:
    the later one then counts as ended when the one before it did.
    """
    if not lanes:
        return np.empty(0, RECORD)
    whole = [np.concatenate([np.empty(0, RECORD), *parts]) for parts in lanes]
    ends = [np.maximum.accumulate(records["end_time"]) for records in whole]
    order = np.argsort(np.concatenate(ends), kind="stable")
    return np.concatenate(whole)[order]
