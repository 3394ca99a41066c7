"""Lives of a game, of which losing one is a boundary for learning but no end of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage.errors import EnvironmentFaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Lives"]


class Lives:
    """The lives left in each lane, from ``info["lives"]``.

    Args:
        lanes: How many lanes there are.
    """

    def __init__(self, lanes: int) -> None:
        self.left = [0] * lanes
        """By lane; of a lane that plays no episode, those at the end of its latest."""

    def begin(self, lane: int, info: Mapping[str, Any]) -> None:
        """An episode begins in the lane, with its reset's info.

        Raises:
            EnvironmentFaultError: it does not say how many lives there are.
        """
        self.left[lane] = _lives(lane, info)

    def lost(self, lane: int, info: Mapping[str, Any]) -> bool:
        """Whether the step with this info lost a life; more lives than before are no loss.

        Raises:
            EnvironmentFaultError: it does not say how many lives there are.
        """
        before, now = self.left[lane], _lives(lane, info)
        self.left[lane] = now
        return now < before


def _lives(lane: int, info: Mapping[str, Any]) -> int:
    try:
        return int(info["lives"])
    except (KeyError, TypeError, ValueError):
        error = EnvironmentFaultError(
            f"the environment's info has no number 'lives' (it has {', '.join(info) or 'nothing'}),"
            " which the store's column life_lost is made from; have a wrapper pass it on"
        )
        error.lane = lane
        raise error from None
