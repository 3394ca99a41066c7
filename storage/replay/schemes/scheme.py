"""What a scheme is: it chooses the steps of a batch among the steps of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from storage.kernel import Floats32, Integers

__all__ = ["Scheme"]


class Scheme(Protocol):
    """Chooses the steps of a batch, and learns which steps come and go.

    Contract for implementers:

    - A step is named by its *position* in the window's ring, an int64 that grows forever; the
      drawable steps are exactly [window.ends[0], window.ends[1]), oldest first. A scheme that
      keeps something per step keeps it at `position & (window.steps.size - 1)`.
    - `admitted(first, last, errors)` is called after the steps [first, last) entered at the tail,
      their rows mapped and their overlay columns set; the ring may have been enlarged. `errors`
      float32 [last - first] are those of acting, where `wants_errors` and somebody knows them.
    - `forgotten(first, last)` is called after the oldest steps [first, last) have left; their
      rows may be unmapped already and must not be read.
    - `shifted(first, last, by)` is called when an episode of `by` steps behind them has left: the
      steps at [first, last) have moved to [first + by, last + by). `forgotten` follows.
    - `rebuilt()` is called instead when a checkpoint was loaded: forget everything and start again
      from the window and the overlay's priority column.
    - `draw(positions, weights, index)` fills positions int64 [B] with drawable steps and weights
      float32 [B] with their sampling weights. It is called with 1 <= B <= window.n_steps and is a
      pure function of (seed, index, state): it keeps no generator. The same index gives the same
      batch until the state changes. It raises SamplingError, having changed nothing, if no step
      can be drawn.
    - `feed_back(keys, errors)` gives errors, float32 [B], finite and not negative, of steps by
      their keys, int64 [B]: (episode slot << 32 | t), or -1 for those that have left the window
      (see `locate`). Of a step that is named twice the last error holds. Schemes without
      priorities ignore it.
    - `state_dict()` holds numpy arrays and scalars: all that `rebuilt()` cannot restore from the
      overlay. Nothing here touches value, ratio or far columns: those belong to the view.
    - None of these is called while another runs on the same view.

    A scheme of one's own is named by its class path wherever the name of a scheme goes. It is made
    with the keywords `window` (a `storage.replay.window.Window`), `seed`, `priorities` and
    `sequences` (what the user has set of either), has a `name` that no other scheme has, and what
    it keeps in the checkpoint of a run are numbers that are not negative.
    """

    name: str

    @property
    def wants_errors(self) -> bool:
        """Whether `admitted` can use errors."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it keeps."""

    def admitted(self, first: int, last: int, errors: Floats32 | None = None) -> None:
        """Steps at positions [first, last) have entered."""

    def forgotten(self, first: int, last: int) -> None:
        """Steps at positions [first, last) have left at the head."""

    def shifted(self, first: int, last: int, by: int) -> None:
        """Steps at positions [first, last) have moved up."""

    def rebuilt(self) -> None:
        """Everything has changed; start again from the window."""

    def draw(self, positions: Integers, weights: Floats32, index: int) -> None:
        """Choose the steps of draw number `index`."""

    def feed_back(self, keys: Integers, errors: Floats32) -> None:
        """New errors, |TD error| or its like, of drawn steps."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict()`; called after `rebuilt()`."""
