"""Schemes: how the steps of a batch are chosen among the steps of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from storage.errors import SamplingError
from storage.replay.uniform import Uniform

if TYPE_CHECKING:
    from storage.kernel import Floats32, Integers
    from storage.replay.window import Window

__all__ = ["SCHEMES", "Scheme", "build_scheme", "check_scheme"]


class Scheme(Protocol):
    """Chooses the steps of a batch, and learns which steps come and go.

    Contract for implementers:

    - A step is named by its *position* in the window's ring, an int64 that grows forever; the
      drawable steps are exactly [window.ends[0], window.ends[1]), oldest first. A scheme that
      keeps something per step keeps it at `position & (window.steps.size - 1)`.
    - `admitted(first, last)` is called after the steps [first, last) entered at the tail, their
      rows mapped and their overlay columns set; the ring may have been enlarged.
    - `forgotten(first, last)` is called after the oldest steps [first, last) have left; their
      rows may be unmapped already and must not be read.
    - `rebuilt()` is called instead of both when positions have moved (an episode other than the
      oldest left, a checkpoint was loaded, the view was opened): forget everything and start
      again from the window and the overlay's priority column.
    - `draw(positions, weights, index)` fills positions int64 [B] with drawable steps and weights
      float32 [B] with their sampling weights. It is called with 1 <= B <= window.n_steps and is a
      pure function of (seed, index, state): it keeps no generator. The same index gives the same
      batch until the state changes.
    - `feed_back(positions, errors)` gives the new priority errors of steps still in the window.
      Positions may repeat: the last one wins. Schemes without priorities ignore it.
    - `state_dict()` holds numpy arrays and scalars: all that `rebuilt()` cannot restore from the
      overlay. Nothing here touches value, ratio or far columns: those belong to the view.
    - None of these is called while another runs on the same view.
    """

    name: str

    def admitted(self, first: int, last: int) -> None:
        """Steps at positions [first, last) have entered."""

    def forgotten(self, first: int, last: int) -> None:
        """Steps at positions [first, last) have left at the head."""

    def rebuilt(self) -> None:
        """Positions have changed; start again from the window."""

    def draw(self, positions: Integers, weights: Floats32, index: int) -> None:
        """Choose the steps of draw number `index`."""

    def feed_back(self, positions: Integers, errors: Floats32) -> None:
        """New priority errors, |TD error| or its like, of drawn steps."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict()`; called after `rebuilt()`."""


SCHEMES = {"uniform": Uniform}


def check_scheme(name: str) -> None:
    """SamplingError, which lists the names that exist, unless ``name`` is one."""
    if name not in SCHEMES:
        raise SamplingError(f"scheme {name!r} does not exist; choose from {', '.join(SCHEMES)}")


def build_scheme(name: str, window: Window, seed: int) -> Scheme:
    """The scheme of that name over a window; SamplingError lists the names that exist."""
    check_scheme(name)
    return SCHEMES[name](window, seed)
