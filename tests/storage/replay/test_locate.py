"""Finding steps again by (segment, row): positions are hints, whatever they say."""

from __future__ import annotations

import numpy as np
import pytest

from storage.replay.locate import locate
from storage.replay.tables import LENGTH, MASK, SEGMENT, SEGMENT_ID, START
from tests.storage.replay.priority_model import batch_of, identities, steps_of, view_steps

F4 = np.float32


def found(view, batch) -> tuple[list, int]:
    """The identities that the keys name, None for -1, and the count."""
    keys, count = locate(view._window, batch)
    window, named = view._window, []
    for key in keys.tolist():
        if key < 0:
            assert key == -1
            named.append(None)
            continue
        episode, t = window.episodes[key >> 32], key & MASK
        assert 0 <= t < episode[LENGTH]
        segment = int(window.segments.table[episode[SEGMENT], SEGMENT_ID])
        named.append((segment, int(episode[START]) + t))
    assert count == sum(name is not None for name in named)
    return named, count


@pytest.fixture
def three(filler):
    """Episodes of 5, 3 and 1 steps in a view; a step of a fourth is written, none committed."""
    made = filler()
    for length in (5, 3, 1):
        made.episode(length)
    view = made.view(window=1000)
    made.writer.begin(0, made.observation(0.0))
    return view, made


def test_a_drawn_batch_is_found_at_its_positions(three) -> None:
    view, _ = three
    batch = view.sample(9)
    keys, count = locate(view._window, batch)
    steps = view._window.steps
    assert keys.tolist() == steps[batch.position & (steps.size - 1)].tolist()
    assert count == 9
    assert found(view, batch)[0] == identities(batch)


@pytest.mark.parametrize(
    "position", [0, 3, 8, 9, -1, 1023, 1024, -(2**63), 2**63 - 1, 12345678901234]
)
def test_positions_are_hints(three, position) -> None:
    view, _ = three
    batch = batch_of(view_steps(view))
    batch.position[:] = position
    assert found(view, batch) == (view_steps(view), 9)


def test_what_is_no_step_of_the_window_is_not_found(three) -> None:
    """Closing rows, rows not written or committed yet, and segments that are not there."""
    view, made = three
    segment = made.episodes[0].segment
    rows = {5: "closing", 9: "closing", 11: "closing", 12: "open", 13: "not written", 10**6: "far"}
    odd = [(segment, row) for row in rows] + [(segment, -1), (segment, -(2**40)), (segment, 2**40)]
    odd += [(segment + 1, 0), (-1, 0), (2**31, 0), (2**62, 3), (-(2**62), 3)]
    for position in (0, 4, 8, 11, 10**9):
        batch = batch_of(odd)
        batch.position[:] = position
        assert found(view, batch) == ([None] * len(odd), 0)
    mixed = batch_of([odd[0], (segment, 0), odd[3], (segment, 10), (segment, 0)])
    steps = [None, (segment, 0), None, (segment, 10), (segment, 0)]
    assert found(view, mixed) == (steps, 3)
    fed = view.feed_back(mixed, priority_error=F4(np.ones(5)), value=F4(np.arange(5)))
    assert (fed.applied, fed.stale) == (3, 2)
    assert view.read("value", np.full(4, segment), np.array([0, 10, 5, 9])).tolist() == [4, 3, 0, 0]


def test_an_empty_batch(three) -> None:
    view, _ = three
    assert found(view, batch_of([])) == ([], 0)
    fed = view.feed_back(batch_of([]), priority_error=np.zeros(0, F4))
    assert (fed.applied, fed.stale) == (0, 0)


def test_a_batch_of_another_view_is_found_by_identity(filler) -> None:
    """The other window began later, so its positions name other steps here."""
    made = filler(row_budget=16)
    for length in (5, 3, 6, 2, 7, 4):
        made.episode(length)
    whole, part = made.view(window=1000), made.view(window=9, overlay="other")
    assert (whole.n_steps, part.n_steps) == (27, 11)
    batch = part.sample(11)
    assert found(whole, batch) == (identities(batch), 11)
    batch = whole.sample(27)
    inside = set(view_steps(part))
    wanted = [step if step in inside else None for step in identities(batch)]
    assert found(part, batch) == (wanted, 11)


@pytest.mark.parametrize("forget", ["oldest", "most_far"])
@pytest.mark.parametrize("scheme", ["uniform", "per"])
def test_rings_move_and_grow_under_old_batches(filler, scheme, forget) -> None:
    """Batches of every age, through forgetting from the middle, wraps, growth and restoring."""
    made = filler(row_budget=600)
    view = made.view(window=500, scheme=scheme, forget=forget)
    rng = np.random.default_rng(0)
    batches = []
    for number in range(150):
        record = made.episode(int(rng.integers(1, 40)))
        view.admit(record, np.zeros(record.length + 1, F4))
        far = steps_of(made.episodes[int(rng.integers(max(0, number - 20), number + 1))])
        view.feed_back(batch_of(far), importance_ratio=np.full(len(far), 50, F4))
        if number == 100:
            view.window = 1500
        if number == 120:
            view.load_state_dict(view.state_dict())
        view.forget()
        batches.append(view.sample(min(20, view.n_steps)).copy())
        window = set(view_steps(view))
        for batch in (*batches[-3:], batches[number // 2], batches[0]):
            wanted = [step if step in window else None for step in identities(batch)]
            assert found(view, batch)[0] == wanted
    assert view._window.steps.size == 2048
    assert None in found(view, batches[0])[0]


def test_rows_of_a_segment_that_was_unmapped(filler) -> None:
    """All episodes of a segment have left, and its slot serves another one."""
    made = filler(row_budget=16)
    view = made.view(window=10)
    first = made.episode(6)
    view.admit(first, np.zeros(7, F4))
    old = view.sample(6).copy()
    for _ in range(8):
        view.admit(made.episode(6), np.zeros(7, F4))
        while view.forget():
            pass
    assert view._window.segments.slot_of[first.segment] == -1
    assert found(view, old) == ([None] * 6, 0)
    assert view.feed_back(old, priority_error=np.ones(6, F4)).stale == 6
    view.close()
    assert found(view, old) == ([None] * 6, 0)
