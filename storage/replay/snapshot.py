"""What a checkpoint keeps of a view: which episodes are in the window, and their overlay rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from storage.errors import CheckpointError
from storage.kernel import Floats, Index, Integers, kernel
from storage.replay.admission import count_stored
from storage.replay.batch import plan_row
from storage.replay.draws import load_draws
from storage.replay.gather import copy_rows, scatter_rows
from storage.replay.tables import FAR_STEPS, LENGTH, OVERLAY_COLUMNS, OVERLAY_DTYPES

if TYPE_CHECKING:
    from storage.replay.schemes.scheme import Scheme
    from storage.replay.window import Window

__all__ = [
    "checked_position",
    "load_view",
    "restore_overlay",
    "snapshot_overlay",
    "verify_episodes",
    "view_state",
]

VERSION = 1
_PARTS = (
    "version",
    "scheme",
    "scheme_state",
    "episodes",
    "overlay",
    "draws",
    "settings",
    "consumed",
)


class Log(Protocol):
    """The part of a store that knows its committed episodes."""

    def records(self, segment_id: int) -> Any:
        """Structured array of a segment's committed episodes."""


_NAMES = ("ordinal", "start", "length")


def view_state(window: Window, scheme: Scheme) -> dict[str, Any]:
    """Which episodes are in the window and where, what their rows hold, and the scheme's state."""
    return {
        "version": VERSION,
        "scheme": scheme.name,
        "scheme_state": scheme.state_dict(),
        "ring": np.array([window.ends[0], window.steps.size], np.int64),
        "episodes": window.identities(),
        "overlay": snapshot_overlay(window),
    }


def load_view(log: Log, window: Window, scheme: Scheme, state: dict[str, Any]) -> int:
    """Fill a window and its overlay rows as `view_state` found them; gives n_far."""
    if state.get("version") != VERSION or state["scheme"] != scheme.name:
        raise CheckpointError(
            f"the checkpoint's view has version {state.get('version')} and scheme "
            f"{state.get('scheme')!r}; this one is version {VERSION}, scheme {scheme.name!r}"
        )
    episodes = np.asarray(state["episodes"], np.int64).reshape(-1, 4)
    verify_episodes(log, episodes)
    columns = _checked_overlay(state, int(episodes[:, 3].sum()) + len(episodes))
    head, size = _checked_ring(state.get("ring", (0, window.steps.size)))
    window.clear()
    window.start_at(head, size)
    window.enter(episodes)
    restore_overlay(window, columns)
    load_draws(window, int(window.ends[0]), int(window.ends[1]))
    scheme.rebuilt()
    scheme.load_state_dict(state["scheme_state"])
    table = window.segments.table
    return int(_count(window.episodes, table, window.steps, window.ends))


@kernel
def _count(episodes: Integers, segments: Integers, steps: Integers, ends: Integers) -> Index:
    """Set every episode's counters from what is stored; gives n_far."""
    total = 0
    position = ends[0]
    while position < ends[1]:
        slot = steps[position & (steps.size - 1)] >> 32
        count_stored(episodes[slot], segments)
        total += episodes[slot, FAR_STEPS]
        position += episodes[slot, LENGTH]
    return total


def snapshot_overlay(window: Window) -> dict[str, Any]:
    """Every overlay column over all steps and closing rows, oldest episode first."""
    slots, rows = window.rows()
    columns = {name: np.zeros(rows.size, dtype) for name, dtype in OVERLAY_DTYPES.items()}
    plan = [plan_row(window.segments.column(name), columns[name]) for name in OVERLAY_COLUMNS]
    copy_rows(window.segments.table, slots, rows, np.array(plan, np.int64))
    return columns


def restore_overlay(window: Window, columns: dict[str, npt.NDArray[Any]]) -> None:
    """The reverse of `snapshot_overlay`, over a window of the same episodes."""
    slots, rows = window.rows()
    plan = [plan_row(window.segments.column(name), array) for name, array in columns.items()]
    scatter_rows(window.segments.table, slots, rows, np.array(plan, np.int64))


def checked_position(state: dict[str, Any]) -> tuple[int, Floats, dict[int, int]]:
    """Draws, settings, and what was consumed of each segment, of a view's own state.

    CheckpointError for a part that is missing, or that no view can have.
    """
    lacking = [name for name in _PARTS if name not in state]
    if lacking:
        raise CheckpointError(f"the checkpoint's view lacks {', '.join(lacking)}; take another one")
    draws, settings = int(state["draws"]), np.asarray(state["settings"], np.float64)
    consumed = np.asarray(state["consumed"], np.int64).reshape(-1, 2)
    if (
        draws < 0
        or settings.shape != (3,)
        or not np.isfinite(settings).all()
        or consumed.min(initial=0) < 0
    ):
        raise CheckpointError(
            f"the checkpoint's view has made {draws} draws, with settings {settings} and "
            f"{consumed.tolist()} consumed, which no view has; take an undamaged one"
        )
    return draws, settings, {int(segment): int(seen) for segment, seen in consumed}


def _checked_ring(ring: Any) -> tuple[int, int]:
    """The ring position of the oldest step, and the length of the ring."""
    head, size = (int(number) for number in ring)
    if not (0 <= head < 2**62 and 1 <= size <= 2**32) or size & (size - 1):
        raise CheckpointError(
            f"the checkpoint's ring begins at {head} and has {size} places, which no window has; "
            "take an undamaged one"
        )
    return head, size


def _checked_overlay(state: dict[str, Any], rows: int) -> dict[str, npt.NDArray[Any]]:
    """The overlay columns of a checkpoint, each in its dtype and of that many rows."""
    columns = {}
    for name, dtype in OVERLAY_DTYPES.items():
        columns[name] = np.ascontiguousarray(state["overlay"][name], dtype)
        if columns[name].shape != (rows,):
            raise CheckpointError(
                f"the checkpoint holds {columns[name].size} rows of {name}, its episodes have "
                f"{rows}; take an undamaged one"
            )
    return columns


def verify_episodes(log: Log, episodes: Integers) -> None:
    """CheckpointError unless the store has exactly these (segment id, ordinal, start, length)."""
    for segment_id in np.unique(episodes[:, 0]):
        wanted = episodes[episodes[:, 0] == segment_id]
        records = _records(log, int(segment_id))
        place = np.searchsorted(records["ordinal"], wanted[:, 1])
        found = records[np.minimum(place, max(len(records) - 1, 0))] if len(records) else None
        missing = wanted
        if found is not None:
            same = [found[name] == wanted[:, 1 + k] for k, name in enumerate(_NAMES)]
            missing = wanted[~np.logical_and.reduce(same)]
        if len(missing):
            raise CheckpointError(
                f"the checkpoint's window names episode {missing[0][1]} of segment {segment_id} "
                f"(row {missing[0][2]}, {missing[0][3]} steps), which the store does not hold; "
                "resume with the store that the checkpoint was made with; where a repair took the "
                "episode out, go on from the run's previous.ckpt, renamed to last.ckpt, if that "
                "does not name it, or else learn from what is left by "
                "`sharpwave train --offline RUN/store --name=NEW`"
            )


def _records(log: Log, segment_id: int) -> Any:
    try:
        return log.records(segment_id)
    except (LookupError, OSError):
        return np.zeros(0, [(name, "i8") for name in _NAMES])
