"""Forgetting, the ring, and the mapping and unmapping of segments."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from storage.errors import DiskFullError
from storage.replay.window import Window


def lengths(view) -> list[int]:
    """Steps of each episode of the window, oldest first."""
    return view._window.identities()[:, 3].tolist()


def admit_all(view, made) -> None:
    for record in made.episodes:
        view.admit(record, np.zeros(record.length + 1, np.float32))


def test_forgetting_keeps_at_least_the_window(filler) -> None:
    """N = 10, episodes of 4, 5, 3, 6: 18 - 4 > 10 drops one, 14 - 5 <= 10 keeps the rest."""
    made = filler()
    view = made.view(window=10)
    for length in (4, 5, 3, 6):
        made.episode(length)
    admit_all(view, made)
    assert view.n_steps == 18
    assert [view.forget(), view.forget(), view.forget()] == [4, 0, 0]
    assert (view.n_steps, lengths(view)) == (14, [5, 3, 6])


def test_exactly_the_window_without_the_oldest_is_not_enough(filler) -> None:
    made = filler()
    view = made.view(window=10)
    for length in (4, 5, 5):
        made.episode(length)
    admit_all(view, made)
    assert view.forget() == 0


def test_opening_a_larger_store_takes_its_newest_at_once(filler) -> None:
    made = filler()
    for length in (7, 9, 4, 5, 3, 6):
        made.episode(length)
    view = made.view(window=10)
    assert lengths(view) == [5, 3, 6]
    batch = view.sample(14)
    assert set(zip(batch.segment, batch.row, strict=True)) <= set(made.rewards)


def test_advance_admits_what_another_writer_committed(filler) -> None:
    made = filler()
    view = made.view(window=10)
    assert view.advance() == 0
    made.episode(4)
    made.episode(5)
    assert view.advance() == 9
    for length in (3, 6, 8, 2, 9):
        made.episode(length)
    assert view.advance() == 11
    assert lengths(view) == [2, 9]


def test_lanes_interleave_by_the_time_of_their_ends(filler) -> None:
    made = filler(lanes=2)
    for index, length in enumerate((1, 2, 3, 4, 5, 6)):
        made.episode(length, lane=index % 2)
    assert len({record.segment for record in made.episodes}) == 2
    view = made.view()
    assert lengths(view) == [1, 2, 3, 4, 5, 6]
    assert lengths(made.view(window=11, private=True)) == [4, 5, 6]


def maps_of(folder: Path) -> int:
    """Memory maps of this process over files of a store's steps or overlays."""
    gc.collect()
    return sum(str(folder) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_segments_are_unmapped_when_their_last_episode_leaves(filler) -> None:
    made = filler(row_budget=16)
    view = made.view(window=20)
    for _ in range(40):
        view.admit(made.episode(5), np.zeros(6, np.float32))
        view.forget()
    ids = {record.segment for record in made.episodes}
    held = len(view._segments)
    assert len(ids) > 10
    assert held <= 3
    assert view.sample(20).segment.min() >= max(ids) - 3
    overlays = made.store.path / "overlays"
    assert maps_of(overlays) == 8 * held
    view.close()
    assert maps_of(overlays) == 0
    assert not view._segments.table.any()


def test_stale_feed_back_is_dropped_and_counted(filler) -> None:
    made = filler(row_budget=16)
    view = made.view(window=20)
    for _ in range(5):
        view.admit(made.episode(5), np.zeros(6, np.float32))
    old = view.sample(25).copy()
    for _ in range(3):
        view.admit(made.episode(5), np.zeros(6, np.float32))
        view.forget()
    feedback = view.feed_back(old, value=np.ones(25, np.float32))
    assert (feedback.applied, feedback.stale) == (10, 15)


@pytest.mark.parametrize("position", [0, 1, 2, 3])
def test_any_episode_can_leave_and_the_order_of_the_others_stays(filler, position) -> None:
    made = filler()
    for length in (4, 5, 3, 6):
        made.episode(length)
    view = made.view()
    window: Window = view._window
    slots = [int(slot) for slot in dict.fromkeys(window.steps[: window.n_steps] >> 32)]
    moved = window.leave(slots[position])
    assert moved == (position > 0)
    rest = [length for i, length in enumerate((4, 5, 3, 6)) if i != position]
    assert lengths(view) == rest
    gone = made.episodes[position]
    wanted = {i for i in made.rewards if not gone.start <= i[1] <= gone.start + gone.length}
    batch = view.sample(view.n_steps)
    assert set(zip(batch.segment.tolist(), batch.row.tolist(), strict=True)) == wanted


def test_episodes_can_leave_one_after_another_in_any_order(filler) -> None:
    made = filler()
    for length in (4, 5, 3, 6, 2):
        made.episode(length)
    view = made.view()
    window: Window = view._window
    slots = [int(slot) for slot in dict.fromkeys(window.steps[: window.n_steps] >> 32)]
    rest = [4, 5, 3, 6, 2]
    for slot, length in ((slots[3], 6), (slots[1], 5), (slots[2], 3), (slots[4], 2)):
        window.leave(slot)
        rest.remove(length)
        assert lengths(view) == rest
        assert view.sample(view.n_steps).row.size == sum(rest)
    assert set(view.sample(4).row.tolist()) == {0, 1, 2, 3}


def test_the_ring_grows_in_the_middle_of_its_life(filler) -> None:
    made = filler()
    view = made.view(window=900)
    rng = np.random.default_rng(0)
    for _ in range(120):
        record = made.episode(int(rng.integers(1, 60)))
        view.admit(record, np.zeros(record.length + 1, np.float32))
        view.forget()
    view.window = 4000
    for _ in range(40):
        record = made.episode(60)
        view.admit(record, np.zeros(record.length + 1, np.float32))
    assert view.n_steps > 2048
    kept = made.episodes[-view.n_episodes :]
    assert lengths(view) == [record.length for record in kept]
    batch = view.sample(view.n_steps)
    for i in range(0, view.n_steps, 17):
        identity = (int(batch.segment[i]), int(batch.row[i]))
        assert batch.observation[i] == made.observations[identity]


def test_an_admission_that_finds_no_room_leaves_the_window_as_it_was(filler, monkeypatch) -> None:
    made = filler()
    view = made.view()
    view.admit(made.episode(5), np.zeros(6, np.float32))
    record = made.episode(300)

    def full(segment_id: int, rows: int) -> None:
        raise DiskFullError(f"no room for {rows} rows of segment {segment_id}")

    with monkeypatch.context() as patch:
        patch.setattr(view._segments._overlay, "segment", full)
        with pytest.raises(DiskFullError):
            view.admit(record, np.zeros(301, np.float32))
    assert lengths(view) == [5]
    view.admit(record, np.zeros(301, np.float32))
    assert lengths(view) == [5, 300]
