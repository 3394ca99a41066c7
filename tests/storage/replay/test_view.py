"""The view over real stores: what is drawn, what it carries, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import storage
from storage.errors import EmptyViewError, FeedbackError, ReadOnlyStoreError, SamplingError
from storage.replay import ReplayView


def drawn(view: ReplayView, size: int, rounds: int) -> list[tuple[int, int]]:
    """Identities of `rounds` batches."""
    found = []
    for _ in range(rounds):
        batch = view.sample(size)
        found += list(zip(batch.segment.tolist(), batch.row.tolist(), strict=True))
    return found


def test_only_closed_steps_are_drawn_and_all_equally_often(four) -> None:
    """The last item of a buffer, a closing row and an open episode are the usual casualties."""
    view = four.view()
    assert (view.n_steps, view.n_episodes) == (9, 3)
    seen = drawn(view, 3, 30_000)
    assert set(seen) == set(four.rewards)
    counts = np.array([seen.count(identity) for identity in set(seen)])
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


def test_batches_carry_the_true_next_observation(four) -> None:
    batch = four.view().sample(9)
    for i in range(9):
        identity = (int(batch.segment[i]), int(batch.row[i]))
        assert batch.observation[i] == four.observations[identity]
        assert batch.next_observation[i] == four.observations[identity[0], identity[1] + 1]
        assert batch.terminated[i] == four.terminal[identity]
        assert batch.reward[i] == 1.0
    ends = {
        float(o[0]): float(n[0])
        for o, n in zip(batch.observation, batch.next_observation, strict=True)
    }
    assert (ends[4.0], ends[102.0], ends[200.0]) == (5.0, 103.0, 201.0)


@pytest.mark.parametrize("terminated", [True, False])
def test_a_truncated_end_bootstraps_and_a_terminal_one_does_not(filler, terminated) -> None:
    made = filler()
    view = made.view()
    record = made.episode(3, terminated, 100.0, 1.0)
    view.admit(record, np.array([0, 0, 0, 7], np.float32))
    batch = view.sample(3)
    last = np.argmax(batch.row)
    closing = 0.0 if terminated else 7.0
    assert batch.terminated[last] == terminated
    assert batch.truncated[last] != terminated
    assert batch.next_value_target[last] == closing
    assert batch.value_target[last] == np.float32(1.0 + 0.9 * closing)


def test_termination_wins_over_truncation(filler) -> None:
    made = filler()
    view = made.view()
    record = made.episode(2, terminated=True, rewards=1.0, both=True)
    view.admit(record, np.full(3, 5.0, np.float32))
    batch = view.sample(2)
    last = np.argmax(batch.row)
    assert batch.terminated[last]
    assert batch.next_value_target[last] == 0.0
    assert batch.value_target[last] == 1.0


def test_one_step_is_enough_to_draw_from(filler) -> None:
    made = filler()
    made.episode(1, True, 200.0)
    view = made.view(batch := 1)
    for _ in range(100):
        assert view.sample(batch).next_observation[0] == 201.0


def test_a_hundred_one_step_episodes(filler) -> None:
    made = filler()
    for i in range(100):
        made.episode(1, i % 2 == 0)
    view = made.view()
    batch = view.sample(100)
    assert len(set(batch.row.tolist())) == 100
    feedback = view.feed_back(batch, value=np.ones(100, np.float32))
    assert (feedback.applied, feedback.stale) == (100, 0)


@pytest.mark.parametrize("seed", range(5))
def test_random_lengths_never_leave_the_steps(filler, seed) -> None:
    made = filler()
    rng = np.random.default_rng(seed)
    for length in rng.integers(1, 51, 20):
        made.episode(int(length), bool(rng.integers(2)))
    view = made.view(window=200)
    assert set(drawn(view, 50, 200)) <= set(made.rewards)


def test_seeds_give_different_streams_and_one_seed_always_the_same(four) -> None:
    streams = [drawn(four.view(seed=seed), 4, 50) for seed in (1, 2, 3, 4)]
    assert len({tuple(stream) for stream in streams}) == 4
    assert drawn(four.view(seed=1), 4, 50) == streams[0]


def test_draws_are_counted_in_the_overlay(four) -> None:
    view = four.view(fields=["reward", "draw_count", "last_drawn"])
    view.sample(9)
    view.sample(9)
    batch = view.sample(1)
    assert batch.extra["draw_count"].tolist() == [2]
    segment, row = batch.segment.copy(), batch.row.copy()
    assert view.read("draw_count", segment, row).tolist() == [3]
    assert view.read("last_drawn", segment, row).tolist() == [3]
    assert view.draws == 3


def test_fields_choose_what_is_gathered(four) -> None:
    view = four.view(fields=["observation", "policy_update"])
    batch = view.sample(2)
    assert batch.observation.shape == (2, 1)
    assert batch.extra["policy_update"].tolist() == [-1, -1]
    with pytest.raises(AttributeError, match="fields="):
        _ = batch.reward
    with pytest.raises(SamplingError, match=r"'priorities' do not exist.*reward"):
        four.view(fields=["priorities"])


def test_buffers_are_reused_and_copies_stay(four) -> None:
    view = four.view()
    first = view.sample(4)
    kept = first.copy()
    rows = first.row.copy()
    second = view.sample(4)
    assert second is first
    assert kept.row.tolist() == rows.tolist()
    assert kept.row.tolist() != second.row.tolist()
    assert np.array_equal(kept.reward, np.ones(4))
    for batch in (kept, second):
        assert view.feed_back(batch, value=np.zeros(4, np.float32)).applied == 4


def test_read_gathers_any_column_even_of_closing_rows(four) -> None:
    view = four.view()
    closing = [(record.segment, record.start + record.length) for record in four.episodes]
    segment, row = np.array(closing, np.int64).T
    assert view.read("observation", segment, row)[:, 0].tolist() == [5.0, 103.0, 201.0]
    out = np.empty((3, 1))
    assert view.read("observation", segment, row, out=out) is out
    with pytest.raises(SamplingError, match=r"1 of 1 steps are not in the window.*row 999"):
        view.read("observation", segment[:1], np.array([999]))
    with pytest.raises(SamplingError, match="no column 'x'"):
        view.read("x", segment, row)
    with pytest.raises(SamplingError, match="float64 array of shape"):
        view.read("observation", segment, row, out=np.empty((3, 2)))


def test_what_cannot_be_drawn_says_why(filler) -> None:
    made = filler()
    empty = made.view(window=1000)
    with pytest.raises(EmptyViewError, match="0 of 256 steps; collect more"):
        empty.sample(256)
    with pytest.raises(EmptyViewError, match="0 steps"):
        empty.statistics()
    with pytest.raises(SamplingError, match="2000 steps cannot be drawn from a window of 1000"):
        empty.sample(2000)
    for size in (0, -1, 2.5):
        with pytest.raises(SamplingError, match="batch_size"):
            empty.sample(size)
    for window in (0, -5, 1.5):
        with pytest.raises(SamplingError, match="window="):
            made.view(window=window)
    with pytest.raises(SamplingError, match=r"scheme 'per2'.*uniform"):
        made.view(scheme="per2", private=True)
    made.episode(5)
    empty.advance()
    with pytest.raises(EmptyViewError, match="5 of 6 steps"):
        empty.sample(6)
    assert empty.draws == 0


def test_an_episode_is_admitted_once_and_with_good_values(filler) -> None:
    made = filler()
    view = made.view()
    record = made.episode(3)
    with pytest.raises(FeedbackError, match=r"shape \(3,\).*\(4,\)"):
        view.admit(record, np.zeros(3, np.float32))
    with pytest.raises(FeedbackError, match="positions 1: nan"):
        view.admit(record, np.array([0, np.nan, 0, 0], np.float32))
    assert view.n_steps == 0
    view.admit(record, np.zeros(4, np.float32))
    with pytest.raises(SamplingError, match="next one of that segment is 1"):
        view.admit(record, np.zeros(4, np.float32))
    made.episode(2)
    later = made.episode(2)
    with pytest.raises(SamplingError, match="next one of that segment is 1"):
        view.admit(later, np.zeros(3, np.float32))
    assert view.advance() == 4
    assert view.n_steps == 7


def test_a_pickled_view_is_small_and_draws_the_same(four) -> None:
    view = four.view(window=50, seed=3, fields=["observation", "reward", "value"])
    view.feed_back(view.sample(9), value=np.full(9, 2.0, np.float32))
    data = pickle.dumps(view)
    assert len(data) < 10_000
    copy = pickle.loads(data)
    assert drawn(copy, 4, 20) == drawn(view, 4, 20)
    assert copy.sample(9).value.tolist() == [2.0] * 9


def test_a_private_view_leaves_the_overlay_alone(four) -> None:
    view = four.view()
    reading = storage.open(four.store.path)
    private = ReplayView(reading, window=100, private=True)
    private.feed_back(private.sample(9), value=np.full(9, 8.0, np.float32))
    assert private.sample(9).value.tolist() == [8.0] * 9
    assert view.sample(9).value.tolist() == [0.0] * 9
    with pytest.raises(ReadOnlyStoreError, match="overlay"):
        ReplayView(reading, window=100)


def test_a_read_only_store_is_trained_from_with_an_overlay_elsewhere(four, tmp_path) -> None:
    reading = storage.open(four.store.path)
    with ReplayView(reading, window=100, overlay="mine", overlay_root=tmp_path / "run") as view:
        view.feed_back(view.sample(9), value=np.full(9, 8.0, np.float32))
    with ReplayView(reading, window=100, overlay="mine", overlay_root=tmp_path / "run") as again:
        assert again.sample(9).value.tolist() == [8.0] * 9


def test_the_overlay_is_published_at_close(four) -> None:
    import zarr

    with four.view() as view:
        batch = view.sample(9)
        view.feed_back(batch, value=batch.row.astype(np.float32))
    record = four.episodes[-1]
    group = zarr.open_group(four.store.path / "overlays" / "main.zarr", mode="r")
    column = group[f"{record.segment:06d}"]["value"]
    assert column.shape == (record.start + record.length + 1,)
    assert column[record.start] == record.start


def test_what_a_view_cannot_take_is_told_in_plain_words(four) -> None:
    with pytest.raises(SamplingError, match=r"fields='reward': give a list of names, \['reward'\]"):
        four.view(fields="reward")
    for name, given in (("priorities", "dopamine"), ("sequences", {"decay": 0.4})):
        with pytest.raises(SamplingError, match=rf"{name}=.*: give storage\.replay\."):
            four.view(scheme="pser", **{name: given})
    with four.view(private=True) as view:
        for segment, row in ((0, 0), ([0], [0.0]), ([0, 0], [0]), ([[0]], [[0]])):
            with pytest.raises(SamplingError, match="in one dimension"):
                view.read("reward", segment, row)
            with pytest.raises(SamplingError, match="in one dimension"):
                view.observe(segment, row)
        batch = view.sample(9)
        with pytest.raises(AttributeError, match="or the store has no such column"):
            batch.no_such_thing  # noqa: B018
        assert repr(batch).startswith("<Batch of 9 steps: observation, action")
        assert "uniform" in repr(view)
        assert "9 steps in 3 episodes" in repr(view)
