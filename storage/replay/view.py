"""The replay view: a window over a store, an overlay, and a scheme that draws from it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import SamplingError
from storage.randomness import checked_seed
from storage.replay.admission import acting_errors, new_episodes, newest
from storage.replay.batch import Array, Batch, FieldPlan, Values, plan_row
from storage.replay.buffers import (
    BatchBuffers,
    Buffers,
    checked_count,
    checked_out,
    checked_size,
)
from storage.replay.draws import COLUMNS as DRAW_COLUMNS
from storage.replay.draws import store_draws_at
from storage.replay.feedback import Feedback, checked
from storage.replay.forgetting import checked_order, next_to_leave
from storage.replay.gather import copy_rows, gather_steps
from storage.replay.locate import checked_identities, locate, segment_slots
from storage.replay.observations import Observations
from storage.replay.own_maps import OwnMaps
from storage.replay.page_limit import PageLimit, drop_columns
from storage.replay.private_overlay import open_overlay
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from storage.replay.schemes.scheme_choice import build_scheme
from storage.replay.segment_table import SegmentTable
from storage.replay.snapshot import checked_position, load_view, view_state
from storage.replay.stacks import gather_stacks
from storage.replay.tables import FIXED_COLUMNS
from storage.replay.values import NOTHING, WindowValues
from storage.replay.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from storage.episode_table import EpisodeRecord
    from storage.kernel import Floats32, Integers
    from storage.store import Store

__all__ = ["ReplayView"]

PUBLISH_SECONDS = 1.0
"""How long foreign readers of the overlay may have to wait for new rows."""


class ReplayView(WindowValues):
    """Draws batches from the newest whole episodes of a store, and takes back what was learnt.

    `window` is N, the steps that replay may sample: the memory floats in [N, N + longest
    episode). `fields` chooses what batches hold (default: everything the store has). With
    `private` the overlay on disk is only read, feed-back stays in this process: for copies and
    loader workers. `discount` and `reward_scale` are those of the value targets. Stacks of
    frames come in batches as the environment showed them; `read` gives single frames. `page_limit`
    is how many bytes of the store's pages draws may leave mapped (default: the kernel's business).

    Opening admits the newest episodes at once; later ones enter by `admit` (the run that collects)
    or `advance` (everybody else). Use it as a context manager or call `close`.

    Conditions of exact resume: the same store, seed, scheme and window; then `load_state_dict`
    makes the next draws, feed-backs and sweeps equal, bit for bit, those of the view that
    `state_dict` was taken from.

    Raises SamplingError for a window below one step, an unknown scheme or field.
    """

    def __init__(
        self,
        store: Store,
        *,
        window: int,
        scheme: str = "uniform",
        priorities: PrioritySettings | None = None,
        sequences: SequenceSettings | None = None,
        forget: str = "oldest",
        overlay: str = "main",
        overlay_root: Path | None = None,
        seed: int = 0,
        fields: Iterable[str] | None = None,
        private: bool = False,
        discount: float = 0.995,
        reward_scale: float = 1.0,
        far_bound: float = 5.0,
        page_limit: int | None = None,
    ) -> None:
        self.store = store
        self.window = checked_count("window", window)
        self.draws = 0
        """Batches drawn so far: the index of the random stream."""
        self._overlay_place = (overlay, overlay_root)
        self._forgets = checked_order(forget)
        self._seed = checked_seed(seed)
        self._plan = FieldPlan(store.schema, fields)
        columns = tuple(column.name for column in store.schema.columns)
        extra = tuple(name for name in columns if name not in FIXED_COLUMNS)
        self._rules: dict[str, Any] = {
            "scheme": scheme,
            "priorities": priorities or PrioritySettings(),
            "sequences": sequences or SequenceSettings(),
        }
        self._consumed: dict[int, int] = {}
        self._published = time.monotonic()
        self._closed = False
        self._overlay = open_overlay(store, overlay, overlay_root, private)
        with ExitStack() as undo:
            undo.callback(self._overlay.close)
            maps = OwnMaps(store, random=page_limit is not None)
            self._segments = SegmentTable(maps, self._overlay, FIXED_COLUMNS + extra)
            steps = Window(self._segments)
            super().__init__(store.schema, steps, far_bound, discount, reward_scale)
            self._scheme = build_scheme(window=steps, seed=self._seed, **self._rules)
            self._observations = Observations(self)
            self._gathers_draws = any(column in self._plan.fields for column in DRAW_COLUMNS)
            self._buffers = BatchBuffers(self._plan, self._segments.column)
            self._pages = PageLimit(page_limit, partial(drop_columns, self._segments, columns))
            self.advance()
            undo.pop_all()

    @property
    def nbytes(self) -> int:
        """Bytes of the window's tables and the scheme's tree; maps and batches come on top."""
        return self._window.nbytes + self._scheme.nbytes

    def needed_segments(self) -> set[int]:
        """Segments of which the window holds an episode, or has yet to take one in."""
        consumed, stored = self._consumed, self.store.segments
        waiting = {each.id for each in stored if consumed.get(each.id, 0) < each.episodes}
        return waiting | {maps.segment_id for maps in self._segments.held}

    def admit(
        self,
        record: EpisodeRecord,
        values: Floats32 | None,
        *,
        priority_error: Floats32 | None = None,
    ) -> None:
        """Take in an episode that has just been committed.

        `values` float32 [T + 1]: V of each of its states as computed while acting, V(s_T) last.
        Its ratios become 1, its targets follow by one backward pass. None leaves the overlay as
        it is (ratios that were never set become 1). `priority_error` float32 [T]: errors of its
        steps, for initial priorities by "current_td"; left out, |target - value| by `values`. The
        window may grow past N: see `forget`.
        """
        self._require_open()
        seen = self._consumed.get(record.segment, 0)
        if record.ordinal != seen:
            raise SamplingError(
                f"episode {record.ordinal} of segment {record.segment} cannot be admitted: the "
                f"next one of that segment is {seen} (earlier ones are in already; advance() "
                "admits all that were committed)"
            )
        given = NOTHING
        if values is not None:
            given = checked("values", values, record.length + 1)
        errors = None
        if priority_error is not None:
            errors = checked("priority_error", priority_error, record.length, 0.0)
        identity = [record.segment, record.ordinal, record.start, record.length]
        self._take_in(np.array([identity], np.int64), given, errors)
        self._consumed[record.segment] = record.ordinal + 1
        self._publish_sometimes()

    def advance(self) -> int:
        """Admit what was committed to the store since, and forget down to the window.

        Gives the number of steps admitted. Of a store that grew by more than the window, only the
        newest episodes are mapped.
        """
        self._require_open()
        self.store.refresh()
        consumed = dict(self._consumed)
        ids = [segment.id for segment in self.store.segments]
        arriving = newest(new_episodes(self.store, ids, consumed), self.window)
        if len(arriving):
            self._take_in(arriving, NOTHING)
        self._consumed = consumed
        while self.forget():
            pass
        return int(arriving[:, 3].sum())

    def forget(self) -> int:
        """Drop an episode if the others hold more than N steps; gives its steps, or 0.

        At most one whole episode a call, as ReF-ER does once per gradient step: the oldest, or
        whichever the view's `forget` names.
        """
        if self.n_steps <= self.window:
            return 0
        window = self._window
        slot = next_to_leave(window, self._forgets)
        head, first, length = int(window.ends[0]), window.first(slot), window.length(slot)
        if self.n_steps - length <= self.window:
            return 0
        if self._leave(slot):
            self._scheme.shifted(head, first, length)
        self._scheme.forgotten(head, head + length)
        return length

    def sample(self, batch_size: int) -> Batch:
        """Draw `batch_size` steps. The arrays are valid until the next draw of that size.

        Raises EmptyViewError while the window holds fewer steps, SamplingError for a size that it
        can never serve.
        """
        buffers = self._prepared(batch_size)
        batch = buffers.batch
        self._scheme.draw(batch.position, batch.sampling_weight, self.draws + 1)
        self.draws += 1
        window = self._window
        if self._gathers_draws:
            store_draws_at(window, batch.position)
        gather_steps(
            window.episodes,
            self._segments.table,
            window.steps,
            window.drawn,
            batch.position,
            buffers.identity,
            buffers.plan,
            self.draws,
        )
        if len(buffers.stacks):
            _, row, slots, _ = buffers.identity
            gather_stacks(window.episodes, self._segments.table, slots, row, buffers.stacks)
        self._pages.drawn()
        self._publish_sometimes()
        return batch

    def read(
        self, column: str, segment: Integers, row: Integers, out: Array | None = None
    ) -> Array:
        """Rows of any column, of the schema or the overlay, at identities in the window.

        Closing rows may be read as well: row + 1 of an episode's last step. Gives [k, …] in the
        column's dtype, or fills `out`. SamplingError if an identity is not in the window.
        """
        try:
            dtype, shape = self._plan.dtype_and_shape(column)
        except KeyError:
            raise SamplingError(f"there is no column {column!r} in this store") from None
        if column in DRAW_COLUMNS:
            self._show_draws()
        segment, row = checked_identities(segment, row)
        slots = segment_slots(self._window, segment, row)
        target = checked_out(out, dtype, (row.size, *shape))
        plan = np.array([plan_row(self._segments.column(column), target)], np.int64)
        copy_rows(self._segments.table, slots, row, plan)
        return target

    def observe(self, segment: Integers, row: Integers) -> Values:
        """What the environment showed at identities in the window, laid out as in a batch.

        At row + 1 of an episode's last step: its final observation. Of stacked frames whole stacks.
        The arrays are valid until the next call. SamplingError if an identity is not there.
        """
        return self._observations.of(segment, row)

    def feed_back(
        self,
        batch: Batch,
        *,
        priority_error: Floats32 | None = None,
        importance_ratio: Floats32 | None = None,
        value: Floats32 | None = None,
        divergence: Floats32 | None = None,
        far_bound: float | None = None,
    ) -> Feedback:
        """Store what an update computed for the steps of a batch, float32 [B] each.

        `priority_error` |TD error|, or what stands for it, becomes the step's priority (of a step
        drawn twice the last one holds); uniform draws have no use for it. `importance_ratio` ρ
        also sets far flags, under `far_bound` c_max or the last one given; `value` is V,
        `divergence` the KL of the step. Then each touched episode's value targets are swept once,
        backwards from its latest step in the batch. Steps are found by identity (segment, row);
        those that have left the window are dropped and counted as stale. Raises FeedbackError for
        wrong lengths, dtypes and values, naming their positions; nothing is changed then.
        """
        size = len(batch)
        errors = None
        if priority_error is not None:
            errors = checked("priority_error", priority_error, size, 0.0)
        keys, applied = locate(self._window, batch)
        if any(given is not None for given in (importance_ratio, value, divergence, far_bound)):
            self._store_feedback(keys, importance_ratio, value, divergence, far_bound)
        if errors is not None:
            self._scheme.feed_back(keys, errors)
        return Feedback(applied, size - applied)

    def state_dict(self) -> dict[str, Any]:
        """Arrays and scalars from which `load_state_dict` restores the view bit for bit."""
        self._show_draws()
        own = {
            "draws": self.draws,
            "settings": self._settings.copy(),
            "consumed": np.array(sorted(self._consumed.items()), np.int64).reshape(-1, 2),
        }
        return own | view_state(self._window, self._scheme)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict()` over the same store; CheckpointError if its episodes are gone."""
        self._require_open()
        draws, settings, consumed = checked_position(state)
        self.store.refresh()
        self._n_far = load_view(self.store, self._window, self._scheme, state)
        self.draws = draws
        self._settings[:] = settings
        self._consumed = consumed

    def close(self) -> None:
        """Publish the overlay and unmap everything; may be called twice."""
        self._show_draws()
        self._segments.publish()
        self._window.clear()
        self._overlay.close()
        self._n_far = 0
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise SamplingError(f"{self!r} is closed; make another one by store.replay(…)")

    def __repr__(self) -> str:
        return (
            f"<ReplayView {self._scheme.name} of {self.store.path}: {self.n_steps:,} steps in "
            f"{self.n_episodes:,} episodes, window {self.window:,}>"
        )

    def __enter__(self) -> ReplayView:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy opens the store anew, read-only, with a private overlay at the same draw.

        It begins with what the overlay on disk holds, so without what a private view was told. Its
        ring begins anew as well: prioritized draws of a window that has moved on are others.
        """
        self._show_draws()
        name, root = self._overlay_place
        options = {
            "window": self.window,
            **self._rules,
            "forget": self._forgets,
            "overlay": name,
            "overlay_root": root,
            "seed": self._seed,
            "fields": self._plan.fields,
            "discount": self.discount,
            "reward_scale": self.reward_scale,
            "far_bound": float(self._settings[0]),
            "page_limit": self._pages.limit,
        }
        return _reopen, (str(self.store.path), options, self.draws)

    def _take_in(
        self, identities: Integers, values: Floats32, errors: Floats32 | None = None
    ) -> None:
        window = self._window
        first = int(window.ends[1])
        self._enter(identities, values)
        if not self._scheme.wants_errors:
            errors = None
        elif errors is None and values.size:
            errors = np.empty(values.size - 1, np.float32)
            entry = window.steps[first & (window.steps.size - 1)]
            acting_errors(window.episodes, self._segments.table, entry, errors)
        self._scheme.admitted(first, int(self._window.ends[1]), errors)

    def _prepared(self, batch_size: int) -> Buffers:
        """Buffers of a batch size, after checking that it can be served now."""
        self._require_open()
        if batch_size not in self._buffers or batch_size > self.n_steps:
            checked_size(batch_size, self.n_steps, self.window)
        return self._buffers.of(batch_size)

    def _publish_sometimes(self) -> None:
        now = time.monotonic()
        if now - self._published >= PUBLISH_SECONDS:
            self._segments.publish()
            self._published = now


def _reopen(path: str, options: dict[str, Any], draws: int) -> ReplayView:
    import storage

    view = ReplayView(storage.open(path, mode="r"), private=True, **options)
    view.draws = draws
    return view
