"""Feed-back by identity: far flags and counters, sweeps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from storage.errors import FeedbackError, SamplingError
from storage.replay import Batch
from storage.replay.feedback import is_far


def batch_of(*identities: tuple[int, int]) -> Batch:
    """A batch of given steps."""
    batch = Batch()
    batch.segment, batch.row = np.array(identities, np.int64).T.copy()
    return batch


def f4(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def state(view) -> list[bytes]:
    """Every overlay byte of the window."""
    return [column.tobytes() for column in view.state_dict()["overlay"].values()]


def test_far_at_a_bound_of_five() -> None:
    ratios = [0.1, 0.2, 0.21, 1, 4.99, 5, 5.01]
    assert [bool(is_far(ratio, 5.0)) for ratio in ratios] == [True] + [False] * 5 + [True]


@pytest.fixture
def one(filler):
    """The reference's episode of three steps, admitted with its values."""

    def make(terminated: bool = True, rewards=(1.0, 0.5, -1.0)):
        made = filler()
        view = made.view()
        record = made.episode(3, terminated, rewards=rewards)
        view.admit(record, f4(1, 2, 0.5, 1.5))
        identities = [(record.segment, record.start + t) for t in range(3)]
        view.feed_back(batch_of(*identities), importance_ratio=f4(0.8, 1.6, 0.5))
        return view, identities

    return make


def targets(view, identities) -> np.ndarray:
    segment, row = np.array(identities, np.int64).T
    return view.read("value_target", segment, row)


@pytest.mark.parametrize(
    ("terminated", "step", "value", "ratio", "wanted"),
    [
        (True, None, None, None, [1.198, 0.275, -0.25]),
        (False, None, None, None, [1.6354, 0.8825, 0.425]),
        (True, 2, 0.7, 2.0, [0.712, -0.4, -1.0]),
        (True, 1, 1.5, 0.25, [1.8595, 1.19375, -0.25]),
    ],
)
def test_reference_vectors_through_a_store(one, terminated, step, value, ratio, wanted) -> None:
    view, identities = one(terminated)
    if step is not None:
        fed = batch_of(identities[step])
        view.feed_back(fed, value=f4(value), importance_ratio=f4(ratio))
    np.testing.assert_allclose(targets(view, identities), wanted, rtol=1e-6)


def test_a_fresh_bootstrap_reaches_the_whole_episode_and_the_batch(one) -> None:
    view, identities = one(terminated=False)
    batch = view.sample(3)
    last = int(np.argmax(batch.row))
    view.refresh_bootstrap(batch, np.array([last]), f4(0.5))
    assert batch.next_value_target[last] == 0.5
    expected = 0.5 + 0.5 * (-1 + 0.9 * 0.5 - 0.5)
    assert targets(view, identities)[2] == pytest.approx(expected, rel=1e-6)
    segment, row = identities[2]
    closing = np.array([segment]), np.array([row + 1])
    assert view.read("value", *closing) == 0.5
    assert view.read("value_target", *closing) == 0.5


def test_a_bootstrap_is_refused_where_none_belongs(one) -> None:
    view, identities = one(terminated=False)
    before = state(view)
    batch = batch_of(identities[2], identities[0])
    with pytest.raises(FeedbackError, match=r"position 1 of the batch.*not the truncated last"):
        view.refresh_bootstrap(batch, np.array([0, 1]), f4(9, 9))
    with pytest.raises(FeedbackError, match=r"\[0, 2\)"):
        view.refresh_bootstrap(batch, np.array([2]), f4(9))
    with pytest.raises(FeedbackError, match="positions 0: nan"):
        view.refresh_bootstrap(batch, np.array([0]), f4(np.nan))
    terminal, steps = one(terminated=True)
    with pytest.raises(FeedbackError, match="position 0"):
        terminal.refresh_bootstrap(batch_of(steps[2]), np.array([0]), f4(9))
    assert state(view) == before


def test_far_counts_follow_every_change(one) -> None:
    view, identities = one()
    a, b, _ = identities
    assert view.n_far == 0
    view.feed_back(batch_of(a, b), importance_ratio=f4(6, 1), far_bound=5.0)
    assert (view.n_far, view.far_fraction) == (1, pytest.approx(1 / 3))
    view.feed_back(batch_of(a), importance_ratio=f4(7))
    assert view.n_far == 1
    view.feed_back(batch_of(a), importance_ratio=f4(1))
    assert view.n_far == 0
    view.feed_back(batch_of(a, b), importance_ratio=f4(3, 3))
    assert view.n_far == 0
    assert view.recount_far(2.0) == 2
    assert view.n_far == view._window.count_far() == 2


def test_duplicates_in_a_batch_the_last_one_wins(one) -> None:
    view, identities = one()
    a = identities[0]
    fed = view.feed_back(batch_of(a, a, a), importance_ratio=f4(9, 8, 1), value=f4(1, 2, 3))
    assert fed.applied == 3
    segment, row = np.array([a]).T
    assert view.read("value", segment, row) == 3
    assert view.n_far == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": f4(1, np.nan)}, "value must be finite; 1 of 2 are not, at positions 1: nan"),
        ({"value": f4(np.inf, 1)}, "positions 0: inf"),
        ({"importance_ratio": f4(1, -0.5)}, "not negative.*positions 1: -0.5"),
        ({"divergence": f4(-1, 0)}, "divergence must be finite and not negative.*positions 0: -1"),
        ({"value": np.array([1e300, 1.0])}, "positions 0: inf"),
        ({"value": f4(1)}, r"shape \(1,\); \(2,\) is needed"),
        ({"value": f4(1, 2).reshape(2, 1)}, r"shape \(2, 1\)"),
        ({"value": np.array([1, 2])}, "dtype int64; give floats"),
        ({"value": ["a", "b"]}, "dtype <U1"),
        ({"importance_ratio": f4(1, 1), "far_bound": np.nan}, "far_bound=nan"),
        ({"importance_ratio": f4(1, 1), "far_bound": 0.5}, "far_bound=0.5"),
        ({"importance_ratio": f4(9, 9), "value": f4(1, np.nan)}, "positions 1"),
    ],
)
def test_bad_feed_back_is_refused_and_changes_nothing(one, given, message) -> None:
    view, identities = one()
    before = state(view)
    with pytest.raises(FeedbackError, match=message):
        view.feed_back(batch_of(*identities[:2]), **given)
    assert state(view) == before
    assert view.n_far == 0


def test_rounding_below_zero_of_a_divergence_is_zero(one) -> None:
    view, identities = one()
    view.feed_back(batch_of(identities[0]), divergence=f4(-1e-7))
    segment, row = np.array([identities[0]]).T
    assert view.read("divergence", segment, row) == 0


def test_a_ratio_of_zero_is_kept_apart_from_never_set(one) -> None:
    view, identities = one()
    view.feed_back(batch_of(identities[0]), importance_ratio=f4(0.0))
    segment, row = np.array([identities[0]]).T
    assert 0 < view.read("importance_ratio", segment, row)[0] < 1e-37
    assert view.n_far == 1


def test_foreign_identities_are_stale_and_arguments_stay_as_they_were(one) -> None:
    view, identities = one()
    segment, row = identities[0]
    strange = batch_of((segment, row), (segment, row + 3), (segment, 10**9), (10**9, 0), (-1, -1))
    rows = strange.row.copy()
    values = f4(1, 2, 3, 4, 5)
    fed = view.feed_back(strange, value=values)
    assert (fed.applied, fed.stale) == (1, 4)
    assert strange.row.tolist() == rows.tolist()
    assert values.tolist() == [1, 2, 3, 4, 5]


def test_a_new_scale_or_discount_recomputes_every_target(one) -> None:
    view, identities = one()
    view.set_targets(0.9, 2.0)
    last = np.float32(0.5 + 0.5 * (-1 / 2 - 0.5))
    assert targets(view, identities)[2] == last
    view.set_targets(0.0, 1.0)
    np.testing.assert_allclose(targets(view, identities), [1.0, 0.5, -0.25], rtol=1e-6)
    for bad in ((1.5, 1.0), (np.nan, 1.0), (0.9, 0.0), (0.9, np.inf)):
        with pytest.raises(SamplingError):
            view.set_targets(*bad)
    assert (view.discount, view.reward_scale) == (0.0, 1.0)
