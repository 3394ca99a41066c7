"""Which episode leaves a full window, and what leaving does to the priorities of the others."""

from __future__ import annotations

import numpy as np
import pytest

from storage.errors import SamplingError
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from tests.storage.replay.priority_model import (
    assert_fresh,
    batch_of,
    identities,
    priorities,
    steps_of,
    tree_bytes,
    tree_of,
    tree_weights,
    view_steps,
)

F4 = np.float32


def full(filler, lengths, forget: str, window: int = 1000, **options):
    """A view of episodes of these lengths, and their steps, episode by episode."""
    made = filler()
    view = made.view(window=window, forget=forget, **options)
    for length in lengths:
        view.admit(made.episode(length), np.zeros(length + 1, F4))
    return view, [steps_of(record) for record in made.episodes], made


def lengths_of(view) -> list[int]:
    return view._window.identities()[:, 3].tolist()


def make_far(view, steps, count: int) -> None:
    view.feed_back(batch_of(steps[:count]), importance_ratio=F4([99] * count))


def diverge(view, steps, values) -> None:
    view.feed_back(batch_of(steps[: len(values)]), divergence=F4(values))


@pytest.mark.parametrize("forget", ["oldest", "most_far", "largest_divergence"])
@pytest.mark.parametrize("scheme", ["uniform", "per", "pser"])
def test_the_window_floats_above_n(filler, scheme, forget) -> None:
    """N = 10, episodes of 4, 5, 3, 6: 18 - 4 > 10 drops one, 14 - 5 <= 10 keeps the rest."""
    view, _, _ = full(filler, (4, 5, 3, 6), forget, window=10, scheme=scheme)
    assert view.n_steps == 18
    assert [view.forget(), view.forget()] == [4, 0]
    assert lengths_of(view) == [5, 3, 6]


def test_the_oldest_leaves_whatever_it_is_like(filler) -> None:
    view, steps, _ = full(filler, (4, 5, 3, 6), "oldest", window=6)
    make_far(view, steps[1], 5)
    diverge(view, steps[2], [100, 100, 100])
    gone = [view.forget() for _ in range(3)]
    assert (gone, lengths_of(view)) == ([4, 5, 0], [3, 6])


def test_the_highest_share_of_far_steps_leaves(filler) -> None:
    """1/4, 2/5, 2/3 and 0: the third goes, then the second; shares count, not steps."""
    view, steps, _ = full(filler, (4, 5, 3, 6, 2), "most_far", window=4)
    for index, count in enumerate((1, 2, 2, 0)):
        make_far(view, steps[index], count)
    assert view.n_far == 5
    left = []
    for _ in range(4):
        left.append(view.forget())
        assert view.n_far == view._window.count_far()
    assert left == [3, 5, 4, 0]
    assert (lengths_of(view), view.n_far) == ([6, 2], 0)


def test_a_step_that_is_near_again_no_longer_counts(filler) -> None:
    view, steps, _ = full(filler, (3, 3, 3, 3), "most_far", window=5)
    make_far(view, steps[2], 3)
    make_far(view, steps[1], 2)
    view.feed_back(batch_of(steps[2][:2]), importance_ratio=F4([1, 1]))
    assert view.forget() == 3
    assert view_steps(view) == steps[0] + steps[2] + steps[3]


def test_far_shares_follow_the_bound(filler) -> None:
    view, steps, _ = full(filler, (4, 4, 4), "most_far", window=5)
    view.feed_back(batch_of(steps[0]), importance_ratio=F4([9, 1, 1, 1]))
    view.feed_back(batch_of(steps[1]), importance_ratio=F4([3, 3, 3, 3]))
    view.recount_far(2.0)
    assert view.forget() == 4
    assert view_steps(view) == steps[0] + steps[2]


def test_the_largest_mean_divergence_leaves(filler) -> None:
    """Means 1/4, 2/5 and 0.9/3: a sum would name the second, too, but then the first."""
    view, steps, _ = full(filler, (4, 5, 3, 6), "largest_divergence", window=6)
    for index, value in enumerate((1.0, 2.0, 0.9)):
        diverge(view, steps[index], [value])
    assert [view.forget(), view.forget(), view.forget()] == [5, 3, 0]
    assert lengths_of(view) == [4, 6]


def test_a_divergence_counts_as_last_stored(filler) -> None:
    view, steps, _ = full(filler, (2, 2, 2, 2), "largest_divergence", window=3)
    diverge(view, steps[0], [50, 50])
    diverge(view, steps[1], [3, 3])
    diverge(view, steps[2], [2, 2])
    diverge(view, steps[0], [0.25, 0.25])
    view.feed_back(batch_of([steps[2][0]] * 3), divergence=F4([90, 90, 1]))
    assert view.forget() == 2
    assert view_steps(view) == steps[0] + steps[2] + steps[3]
    assert view.forget() == 2
    assert view_steps(view) == steps[0] + steps[3]


def test_extreme_divergences_do_not_upset_the_order(filler) -> None:
    view, steps, _ = full(filler, (2, 2, 2, 2), "largest_divergence", window=3)
    diverge(view, steps[1], [3e38, 3e38])
    diverge(view, steps[2], [1000.0, 1e-6])
    assert (view.forget(), view_steps(view)) == (2, steps[0] + steps[2] + steps[3])
    assert (view.forget(), view_steps(view)) == (2, steps[0] + steps[3])


@pytest.mark.parametrize("forget", ["most_far", "largest_divergence"])
def test_the_newest_episode_is_never_chosen(filler, forget) -> None:
    view, steps, made = full(filler, (3, 3, 3), forget, window=2)
    make_far(view, steps[2], 3)
    diverge(view, steps[2], [9, 9, 9])
    make_far(view, steps[1], 1)
    diverge(view, steps[1], [1])
    assert [view.forget(), view.forget(), view.forget()] == [3, 3, 0]
    assert view_steps(view) == steps[2]
    view.admit(made.episode(3), np.zeros(4, F4))
    assert view.forget() == 3
    assert view_steps(view) == steps_of(made.episodes[-1])


@pytest.mark.parametrize("forget", ["most_far", "largest_divergence"])
def test_of_equals_the_oldest_leaves(filler, forget) -> None:
    view, steps, _ = full(filler, (3, 2, 4, 6, 1), forget, window=5)
    for index in (1, 2, 3):
        make_far(view, steps[index], len(steps[index]) // 2)
        diverge(view, steps[index], [0.5] * len(steps[index]))
    assert [view.forget() for _ in range(3)] == [2, 4, 0]
    assert view_steps(view) == steps[0] + steps[3] + steps[4]


@pytest.mark.parametrize("forget", ["most_far", "largest_divergence"])
def test_counters_survive_a_checkpoint_and_opening_again(filler, forget) -> None:
    view, steps, made = full(filler, (3, 3, 3, 3), forget, window=7)
    make_far(view, steps[1], 2)
    diverge(view, steps[1], [1, 1])
    view.load_state_dict(view.state_dict())
    view.close()
    again = made.view(window=100, forget=forget)
    again.window = 7
    assert again.forget() == 3
    assert view_steps(again) == steps[0] + steps[2] + steps[3]


def test_orders_that_do_not_exist_are_refused(filler) -> None:
    with pytest.raises(SamplingError, match="'newest' does not exist; choose from oldest, most_f"):
        filler().view(forget="newest")


@pytest.mark.parametrize("scheme", ["per", "pser"])
@pytest.mark.parametrize(
    ("forget", "gone"),
    [
        ("oldest", 0),
        ("most_far", 0),
        ("most_far", 2),
        ("most_far", 3),
        ("largest_divergence", 1),
        ("largest_divergence", 3),
    ],
)
def test_after_any_episode_left_the_tree_is_a_fresh_one(filler, scheme, forget, gone) -> None:
    """Whichever leaves, the other steps keep their priorities and the tree equals a rebuilt one."""
    lengths = (20, 7, 33, 11, 9)
    settings = PrioritySettings(normalise="store")
    view, steps, _ = full(filler, lengths, forget, scheme=scheme, priorities=settings, seed=gone)
    order = [step for part in steps for step in part]
    errors = np.random.default_rng(0).exponential(size=80)
    view.feed_back(batch_of(order), priority_error=errors)
    make_far(view, steps[gone], lengths[gone])
    diverge(view, steps[gone], [4.0] * lengths[gone])
    kept = [step for index, part in enumerate(steps) if index != gone for step in part]
    before = dict(zip(order, priorities(view, order).tolist(), strict=True))
    view.window = view.n_steps - lengths[gone] - 1
    assert view.forget() == lengths[gone]
    assert view_steps(view) == kept
    assert priorities(view, kept).tolist() == [before[step] for step in kept]
    np.testing.assert_allclose(tree_weights(view), [before[s] ** 0.6 for s in kept], rtol=1e-13)
    assert_fresh(view)
    drawn = {step for _ in range(40) for step in identities(view.sample(32))}
    assert drawn <= set(kept)
    assert len(drawn) > 0.9 * len(kept)
    state, tree = view.state_dict(), tree_bytes(tree_of(view))
    view.load_state_dict(state)
    assert tree_bytes(tree_of(view)) == tree


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_leaving_from_the_middle_across_the_end_of_the_ring(filler, scheme) -> None:
    """A ring of 1024 whose steps lie across its end; middle episodes leave, new ones enter."""
    view, _, made = full(filler, (300,) * 3, "most_far", window=899, scheme=scheme)
    rng = np.random.default_rng(0)
    seen_across = 0
    for number in range(12):
        view.admit(made.episode(100), np.zeros(101, F4))
        here = view_steps(view)
        view.feed_back(batch_of(here), priority_error=rng.exponential(size=len(here)))
        known = dict(zip(here, priorities(view, here).tolist(), strict=True))
        records = view._window.identities()
        middle = records[1 + number % (len(records) - 2)]
        chosen = [(int(middle[0]), int(middle[2]) + t) for t in range(int(middle[3]))]
        view.feed_back(batch_of(here), importance_ratio=np.ones(len(here), F4))
        make_far(view, chosen, len(chosen))
        view.window = view.n_steps - len(chosen) - 1
        assert view.forget() == len(chosen)
        now = view_steps(view)
        assert set(now) == set(here) - set(chosen)
        weights = [known[step] ** 0.6 for step in now]
        np.testing.assert_allclose(tree_weights(view), weights, rtol=1e-13)
        assert_fresh(view)
        head, tail = view._window.ends % 1024
        seen_across += head > tail
    assert seen_across > 1


def test_sequences_reach_back_after_the_ring_was_squeezed(filler) -> None:
    """Steps that moved in the ring are raised where they lie now."""
    sequences = SequenceSettings(decay=0.5, window=3)
    settings = PrioritySettings(epsilon=0.0, initial="constant", initial_constant=0.125)
    view, steps, _ = full(
        filler, (5, 4, 6), "most_far", scheme="pser", priorities=settings, sequences=sequences
    )
    make_far(view, steps[1], 4)
    view.window = 10
    assert view.forget() == 4
    view.feed_back(batch_of([steps[0][4]]), priority_error=F4([2]))
    assert priorities(view, steps[0]).tolist() == [0.125, 0.25, 0.5, 1.0, 2.0]
    assert priorities(view, steps[2]).tolist() == [0.125] * 6
    wanted = np.array([0.125, 0.25, 0.5, 1.0, 2.0] + [0.125] * 6) ** 0.6
    np.testing.assert_allclose(tree_weights(view), wanted, rtol=1e-13)
    assert_fresh(view)
