"""From errors to stored priorities and tree weights, against the papers' numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from storage.replay.schemes.priorities import AFTER, BEFORE, EPSILON, HUBER, RULES, new_priority
from storage.replay.schemes.priority_settings import (
    PRIORITY_PRESETS,
    PrioritySettings,
    SequenceSettings,
)
from tests.storage.replay.priority_model import (
    LARGEST,
    PriorityModel,
    assert_fresh,
    batch_of,
    priorities,
    set_priorities,
    steps_of,
    tree_of,
    tree_weights,
)

F4 = np.float32


def rules(epsilon: float = 1e-5, before: float = 1.0, huber: bool = False) -> np.ndarray:
    made = np.zeros(RULES)
    made[[AFTER, BEFORE, EPSILON, HUBER]] = 1.0, before, epsilon, huber
    return made


@pytest.mark.parametrize(
    ("error", "wanted"),
    [(0.0, 1e-5), (0.3, 0.30001), (0.9, 0.90001), (-0.9, 0.90001), (1.0, 1.00001), (7.0, 7.00001)],
)
def test_a_new_priority_is_the_error_and_epsilon(error: float, wanted: float) -> None:
    assert new_priority(error, rules()) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [(0.1, 0.0707107), (0.5, 0.3535534), (1, 0.7071068), (2, 1.2247449), (5, 2.1213203)],
)
def test_the_authors_priority_is_the_root_of_a_huber_loss(error: float, wanted: float) -> None:
    given = rules(1e-10, 0.5, huber=True)
    assert new_priority(error, given) == pytest.approx(wanted, rel=1e-6)
    assert new_priority(-error, given) == new_priority(error, given)
    loss = error**2 / 2 if error <= 1 else error - 0.5
    assert new_priority(error, given) == pytest.approx(math.sqrt(loss + 1e-10), rel=1e-12)
    assert new_priority(error, rules(1e-5, 1.0, huber=True)) == pytest.approx(
        loss + 1e-5, rel=1e-12
    )


def opened(filler, lengths=(8,), *, sequences=None, root=None, **settings):
    """A view of fresh episodes under priorities of these settings, and their steps."""
    made = filler()
    records = [made.episode(length) for length in lengths]
    scheme = "per" if sequences is None else "pser"
    view = made.view(scheme=scheme, priorities=PrioritySettings(**settings), sequences=sequences)
    return view, [step for record in records for step in steps_of(record)], made


@pytest.mark.parametrize(
    ("error", "before", "after"), [(0, 1, 0.7), (0.3, 1, 0.7), (0.9, 1, 0.90001), (0, 0.4, 0.28)]
)
def test_a_drawn_step_keeps_eta_times_its_priority(filler, error, before, after) -> None:
    view, steps, _ = opened(filler, sequences=SequenceSettings(window=0))
    set_priorities(view, F4(before))
    view.feed_back(batch_of(steps[3:4]), priority_error=F4([error]))
    wanted = [before] * 3 + [after] + [before] * 4
    np.testing.assert_allclose(priorities(view, steps), wanted, rtol=1e-6)
    np.testing.assert_allclose(tree_weights(view), np.array(wanted) ** 0.6, rtol=1e-6)


def test_a_priority_fades_under_errors_of_0(filler) -> None:
    view, steps, _ = opened(filler, sequences=SequenceSettings(window=0))
    seen = []
    for _ in range(60):
        view.feed_back(batch_of(steps[:1]), priority_error=F4([0]))
        seen.append(priorities(view, steps[:1])[0])
    np.testing.assert_allclose(seen[:6], [0.7, 0.49, 0.343, 0.2401, 0.16807, 0.117649], rtol=1e-6)
    assert seen[-1] == F4(1e-5)
    assert seen == sorted(seen, reverse=True)


def test_per_has_no_floor(filler) -> None:
    view, steps, _ = opened(filler)
    view.feed_back(batch_of(steps[:2]), priority_error=F4([0, 0.5]))
    np.testing.assert_allclose(priorities(view, steps[:3]), [1e-5, 0.50001, 1], rtol=1e-6)


def test_of_a_step_named_twice_the_last_error_holds_over_the_stored_floor(filler) -> None:
    view, steps, _ = opened(filler, sequences=SequenceSettings(window=0))
    twice = batch_of([steps[0], steps[1], steps[0], steps[0]])
    view.feed_back(twice, priority_error=F4([0, 5, 9, 0]))
    np.testing.assert_allclose(priorities(view, steps[:2]), [0.7, 5.00001], rtol=1e-6)
    assert view.state_dict()["scheme_state"]["largest_ever"] == float(F4(5.00001))


@pytest.mark.parametrize("exponent", ["draws", "priorities"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("error", ["absolute", "huber"])
def test_the_column_and_the_tree_follow_the_model(filler, exponent, alpha, error) -> None:
    view, steps, made = opened(filler, (40,), exponent=exponent, alpha=alpha, error=error)
    model = PriorityModel(PrioritySettings(exponent=exponent, alpha=alpha, error=error))
    errors = np.exp(np.random.default_rng(0).uniform(-40, 40, 40)).astype(F4)
    view.feed_back(batch_of(steps), priority_error=errors)
    wanted = [model.new(float(e)) for e in errors]
    assert priorities(view, steps).tolist() == wanted
    weights = tree_weights(view)
    np.testing.assert_allclose(weights, [model.weight(p) for p in wanted], rtol=1e-13)
    assert_fresh(view)
    view.close()
    again = made.view(scheme="per", priorities=model.settings)
    assert tree_weights(again).tobytes() == weights.tobytes()


def test_float64_errors_and_their_float32_are_the_same(filler) -> None:
    view, steps, _ = opened(filler)
    errors = np.random.default_rng(0).random(8)
    view.feed_back(batch_of(steps), priority_error=errors)
    first = priorities(view, steps)
    view.feed_back(batch_of(steps), priority_error=errors.astype(F4))
    assert priorities(view, steps).tobytes() == first.tobytes()


# --- initial priorities ------------------------------------------------------------------------


def admitted(view, made, length: int = 2, **options) -> list:
    record = made.episode(length)
    view.admit(record, np.zeros(length + 1, F4), **options)
    return priorities(view, steps_of(record)).tolist()


def test_new_steps_start_at_the_largest_that_was_ever_set(filler) -> None:
    view, steps, made = opened(filler)
    assert priorities(view, steps).tolist() == [1.0] * 8
    view.feed_back(batch_of(steps[:1]), priority_error=F4([1e6]))
    view.feed_back(batch_of(steps), priority_error=F4([0.25] * 8))
    assert admitted(view, made) == [1e6, 1e6]
    assert tree_weights(view)[-1] == pytest.approx(1e6**0.6, rel=1e-13)


def test_new_steps_start_at_the_largest_of_the_window(filler) -> None:
    """One outlier of 1e6 that was overwritten later does not raise what comes after it."""
    view, steps, made = opened(filler, initial="max_current", initial_constant=3.0)
    assert priorities(view, steps).tolist() == [3.0] * 8
    view.feed_back(batch_of(steps[:1]), priority_error=F4([1e6]))
    assert admitted(view, made) == [1e6, 1e6]
    here = steps + steps_of(made.episodes[-1])
    view.feed_back(batch_of(here), priority_error=F4([0.25] * 9 + [0.5]))
    assert admitted(view, made) == [F4(0.50001)] * 2
    assert view.state_dict()["scheme_state"]["largest_ever"] == 1e6


def test_the_largest_of_the_window_forgets_with_the_window(filler) -> None:
    view, steps, made = opened(filler, (4, 4), initial="max_current", epsilon=0.0)
    view.feed_back(batch_of(steps), priority_error=F4([9] * 4 + [2] * 4))
    view.window = 3
    assert view.forget() == 4
    assert admitted(view, made) == [2.0, 2.0]
    view.feed_back(batch_of(steps[4:] + steps_of(made.episodes[-1])), priority_error=np.zeros(6))
    assert admitted(view, made) == [1.0, 1.0]


def test_new_steps_start_at_a_constant(filler) -> None:
    view, steps, made = opened(filler, initial="constant", initial_constant=0.05)
    assert priorities(view, steps).tolist() == [F4(0.05)] * 8
    view.feed_back(batch_of(steps), priority_error=F4([7] * 8))
    assert admitted(view, made) == [F4(0.05)] * 2


def test_new_steps_start_at_their_error_while_acting(filler) -> None:
    made = filler()
    view = made.view(scheme="per", priorities=PrioritySettings(initial="current_td"))
    record = made.episode(3, rewards=(1.0, 0.5, -1.0))
    values = F4([1, 2, 0.5, 1.5])
    view.admit(record, values)
    target = [0.0] * 4
    for t in (2, 1, 0):
        target[t] = (1.0, 0.5, -1.0)[t] + 0.9 * target[t + 1]
    wanted = [abs(target[t] - values[t]) + 1e-5 for t in range(3)]
    np.testing.assert_allclose(priorities(view, steps_of(record)), wanted, rtol=1e-6)
    assert admitted(view, made, priority_error=F4([3, 0])) == [F4(3.00001), F4(1e-5)]


def test_without_an_error_new_steps_start_at_the_largest_ever(filler) -> None:
    made = filler()
    view = made.view(scheme="per", priorities=PrioritySettings(initial="current_td"))
    view.admit(made.episode(2), np.zeros(3, F4), priority_error=F4([4, 2]))
    record = made.episode(2)
    assert view.advance() == 2
    assert priorities(view, steps_of(record)).tolist() == [F4(4.00001)] * 2


@pytest.mark.parametrize("initial", ["max_ever", "max_current", "constant"])
def test_errors_while_acting_are_for_that_one_setting_only(filler, initial) -> None:
    view, _, made = opened(filler, initial=initial)
    assert admitted(view, made, priority_error=F4([4, 0.25])) == [1.0, 1.0]


# --- zeros and extremes ------------------------------------------------------------------------


@pytest.mark.parametrize("sequences", [None, SequenceSettings(eta=0.0)])
def test_a_priority_of_0_is_kept_as_minus_0(filler, tmp_path, sequences) -> None:
    view, steps, made = opened(filler, epsilon=0.0, sequences=sequences)
    view.feed_back(batch_of(steps[:7]), priority_error=np.zeros(7, F4))
    stored = priorities(view, steps)
    assert stored.tolist() == [0.0] * 7 + [1.0]
    assert np.signbit(stored).tolist() == [True] * 7 + [False]
    assert tree_weights(view).tolist() == [0.0] * 7 + [1.0]
    view.close()
    again = made.view(scheme="per")
    assert tree_weights(again).tolist() == [0.0] * 7 + [1.0]
    assert set(again.sample(8).row.tolist()) == {steps[7][1]}


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0])
def test_a_damaged_priority_counts_as_none(filler, wrong) -> None:
    view, steps, _ = opened(filler, alpha=1.0)
    set_priorities(view, F4([0.5, 0.5, wrong, 0.5, 0.5, 0.5, 0.5, 0.5]))
    assert priorities(view, steps).tolist() == [0.5, 0.5, 1, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert tree_of(view).total == 4.5


@pytest.mark.parametrize("alpha", [0.6, 1.0])
@pytest.mark.parametrize("sequences", [None, SequenceSettings(mode="add")])
def test_errors_at_the_end_of_float32(filler, alpha, sequences) -> None:
    view, steps, made = opened(filler, alpha=alpha, epsilon=LARGEST, sequences=sequences)
    view.feed_back(batch_of(steps), priority_error=F4([LARGEST] * 8))
    assert priorities(view, steps).tolist() == [LARGEST] * 8
    assert np.isfinite(tree_of(view).total)
    assert admitted(view, made) == [LARGEST, LARGEST]
    batch = view.sample(10)
    assert np.all(batch.sampling_weight == 1.0)
    assert_fresh(view)


def test_the_smallest_errors_are_still_drawn(filler) -> None:
    tiny = float(np.finfo(F4).smallest_subnormal)
    view, steps, _ = opened(filler, epsilon=0.0, alpha=1.0)
    view.feed_back(batch_of(steps), priority_error=F4([0] * 6 + [tiny, 3 * tiny]))
    assert tree_weights(view).tolist() == [0.0] * 6 + [tiny, 3 * tiny]
    rows = np.concatenate([view.sample(8).row.copy() for _ in range(500)]) - steps[0][1]
    counts = np.bincount(rows, minlength=8)
    assert counts[:6].sum() == 0
    assert counts[7] / counts[6] == pytest.approx(3.0, rel=0.1)


def test_a_huber_loss_below_float32_is_0(filler) -> None:
    settings = {"epsilon": 0.0, "error": "huber"}
    view, steps, _ = opened(filler, **settings)
    view.feed_back(batch_of(steps[:2]), priority_error=F4([1e-30, 1e-10]))
    stored = priorities(view, steps[:2])
    assert (stored[0], np.signbit(stored[0])) == (0.0, True)
    assert stored[1] == pytest.approx(5e-21, rel=1e-6)


def test_the_dopamine_preset_through_a_store(filler) -> None:
    made = filler()
    record = made.episode(5)
    view = made.view(scheme="per", priorities=PRIORITY_PRESETS["dopamine"])
    view.feed_back(batch_of(steps_of(record)), priority_error=F4([0.1, 0.5, 1, 2, 5]))
    wanted = [0.0707107, 0.3535534, 0.7071068, 1.2247449, 2.1213203]
    np.testing.assert_allclose(priorities(view, steps_of(record)), wanted, rtol=1e-6)
    np.testing.assert_allclose(tree_weights(view), wanted, rtol=1e-6)
