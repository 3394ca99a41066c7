"""Orders of forgetting: which whole episode leaves a window that is full (ReF-ER's filters)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.errors import SamplingError
from storage.replay.tables import DIVERGENCES, FAR_STEPS

if TYPE_CHECKING:
    from storage.replay.window import Window

__all__ = ["ORDERS", "checked_order", "next_to_leave"]

ORDERS: Final = {"oldest": None, "most_far": FAR_STEPS, "largest_divergence": DIVERGENCES}
"""For each order the counter whose share a step decides; none where age does."""


def checked_order(order: str) -> str:
    """An order of forgetting; SamplingError lists those that exist."""
    if order not in ORDERS:
        raise SamplingError(
            f"order of forgetting {order!r} does not exist; choose from {', '.join(ORDERS)}"
        )
    return order


def next_to_leave(window: Window, order: str) -> int:
    """The episode slot of the one that leaves next; the window must not be empty."""
    counter = ORDERS[order]
    return window.oldest() if counter is None else window.most(counter)
