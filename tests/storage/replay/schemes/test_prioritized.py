"""PER over real stores: draws, sampling weights and feed-back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from storage.errors import FeedbackError, SamplingError
from storage.replay import ReplayView
from storage.replay.schemes.priority_settings import (
    PRIORITY_PRESETS,
    PrioritySettings,
    SequenceSettings,
)
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
P = F4([1, 0.5, 0.25, 0.25])
EXACT = PrioritySettings(epsilon=0.0, normalise="store")


def of_four(filler, errors, settings: PrioritySettings, scheme: str = "per") -> ReplayView:
    """One episode of four steps, with priorities of these errors."""
    made = filler()
    record = made.episode(4)
    view = made.view(
        scheme=scheme, priorities=settings, sequences=SequenceSettings(window=0, eta=0)
    )
    view.feed_back(batch_of(steps_of(record)), priority_error=errors)
    return view


def weights_by_row(view: ReplayView, rounds: int = 200) -> dict[int, float]:
    found = {}
    for _ in range(rounds):
        batch = view.sample(4)
        for row, weight in zip(batch.row.tolist(), batch.sampling_weight.tolist(), strict=True):
            assert found.setdefault(row, weight) == weight
    return found


@pytest.mark.parametrize("scheme", ["per", "pser"])
@pytest.mark.parametrize(
    ("alpha", "beta", "chances", "wanted"),
    [
        (0.6, 0.4, [0.3952093484, 0.2607409308, 0.1720248604], [0.71697762, 0.84674531, 1]),
        (0.6, 0.5, [0.3952093484, 0.2607409308, 0.1720248604], [0.65975396, 0.8122524, 1]),
        (0.6, 1.0, [0.3952093484, 0.2607409308, 0.1720248604], [0.43527528, 0.65975396, 1]),
        (0.5, 1.0, [0.3693980625, 0.2612038750, 0.1846990313], [0.5, 0.70710678, 1]),
        (0.7, 1.0, [0.4213310667, 0.2593596945, 0.1596546194], [0.37892914, 0.61557221, 1]),
        (1.0, 1.0, [0.5, 0.25, 0.125], [0.25, 0.5, 1]),
    ],
)
def test_the_papers_draws_and_weights(filler, scheme, alpha, beta, chances, wanted) -> None:
    settings = dataclasses.replace(EXACT, alpha=alpha, beta=beta)
    view = of_four(filler, P, settings, scheme)
    shares = tree_weights(view) / tree_of(view).total
    np.testing.assert_allclose(shares, [*chances, chances[-1]], atol=1e-10)
    found = weights_by_row(view)
    np.testing.assert_allclose([found[row] for row in range(4)], [*wanted, wanted[-1]], rtol=1e-6)


def test_the_authors_weights(filler) -> None:
    settings = dataclasses.replace(PRIORITY_PRESETS["dopamine"], normalise="store")
    view = of_four(filler, F4([1.5, 0.5**0.5, 0.125**0.5, 0.125**0.5]), settings)
    np.testing.assert_allclose(tree_weights(view), P, rtol=1e-6)
    found = weights_by_row(view)
    np.testing.assert_allclose([found[row] for row in range(4)], [0.5, 0.70710678, 1, 1], rtol=1e-6)


def test_the_replay_of_ref_ers_baseline(filler) -> None:
    """Roots of |error|, the largest of them for a step that was never drawn, b = 1/2."""
    made = filler()
    seen, unseen = made.episode(3), None
    settings = dataclasses.replace(EXACT, alpha=0.5, beta=0.5, initial="max_current")
    view = made.view(scheme="per", priorities=settings)
    view.feed_back(batch_of(steps_of(seen)), priority_error=F4([2, 1, 0.5]))
    unseen = made.episode(1)
    view.admit(unseen, np.zeros(2, F4))
    wanted = [0.31180751, 0.22048121, 0.15590377, 0.31180751]
    np.testing.assert_allclose(tree_weights(view) / tree_of(view).total, wanted, atol=1e-8)
    found = weights_by_row(view)
    rows = [row for _, row in steps_of(seen) + steps_of(unseen)]
    weights = [0.70710682, 0.84089645, 1, 0.70710682]
    np.testing.assert_allclose([found[row] for row in rows], weights, rtol=1e-6)


def test_weights_of_the_whole_window_or_of_the_batch(filler) -> None:
    for normalise in ("store", "batch"):
        settings = PrioritySettings(alpha=1, beta=1, beta_final=1, epsilon=0, normalise=normalise)
        view = of_four(filler, F4([1, 2, 4, 0]), settings)
        seen = set()
        for _ in range(300):
            batch = view.sample(2)
            pair = zip(batch.row.tolist(), batch.sampling_weight.tolist(), strict=True)
            seen.add(tuple(sorted(pair)))
        whole, own = ((1, 0.5), (2, 0.25)), ((1, 1.0), (2, 0.5))
        assert (whole in seen, own in seen) == (normalise == "store", normalise == "batch")
    assert PrioritySettings().normalise == "batch"


def test_beta_follows_its_schedule(filler) -> None:
    settings = dataclasses.replace(EXACT, beta=0.4, beta_final=1.0, beta_draws=10)
    view = of_four(filler, P, settings)
    for number in range(1, 15):
        batch = view.sample(4)
        assert view.draws == number
        beta = 0.4 + 0.6 * min(number - 1, 10) / 10
        ratios = (0.25 / P[batch.row].astype(float)) ** 0.6
        np.testing.assert_allclose(batch.sampling_weight, ratios**beta, rtol=1e-6)


@pytest.mark.parametrize("scheme", ["per", "pser"])
@pytest.mark.parametrize("stratified", [True, False])
def test_steps_are_drawn_in_proportion_to_their_priority(filler, scheme, stratified) -> None:
    made = filler()
    steps = [step for length in (40, 1, 70, 9) for step in steps_of(made.episode(length))]
    settings = PrioritySettings(stratified=stratified, alpha=0.7)
    view = made.view(
        scheme=scheme, priorities=settings, sequences=SequenceSettings(window=0, eta=0), seed=4
    )
    errors = np.exp(np.random.default_rng(0).normal(size=120)).astype(F4)
    view.feed_back(batch_of(steps), priority_error=errors)
    rows = np.concatenate([view.sample(32).row.copy() for _ in range(5000)])
    counts = np.bincount(rows)[[row for _, row in steps]]
    chances = (errors.astype(float) + 1e-5) ** 0.7
    expected = chances / chances.sum() * rows.size
    chi_square = np.sum((counts - expected) ** 2 / expected)
    assert chi_square < 119 + 5 * np.sqrt(2 * 119)
    assert counts.sum() == rows.size


def test_weights_of_beta_1_take_the_bias_away(filler) -> None:
    """E[w x] P_min N = mean x, though the priorities follow x; without weights it is far off."""
    made = filler()
    record = made.episode(200)
    steps = steps_of(record)
    settings = PrioritySettings(beta=1.0, normalise="store", stratified=False)
    view = made.view(scheme="per", priorities=settings)
    x = np.array([made.rewards[step] for step in steps])
    view.feed_back(batch_of(steps), priority_error=np.exp(x).astype(F4))
    weights = tree_weights(view)
    scale = weights.sum() / (weights.min() * 200)
    weighted, plain = [], []
    for _ in range(1000):
        batch = view.sample(128)
        weighted.append(scale * batch.sampling_weight.astype(float) @ batch.reward / 128)
        plain.append(batch.reward.mean())
    error = np.std(weighted) / np.sqrt(1000)
    assert abs(np.mean(weighted) - x.mean()) < 4 * error
    assert abs(np.mean(plain) - x.mean()) > 40 * error


def test_the_newest_of_two_steps_has_its_share(filler) -> None:
    made = filler()
    steps = steps_of(made.episode(1)) + steps_of(made.episode(1))
    view = made.view(scheme="per", priorities=PrioritySettings(alpha=1.0))
    view.feed_back(batch_of(steps), priority_error=F4([1, 9]))
    rows = np.concatenate([view.sample(2).row.copy() for _ in range(20_000)])
    assert np.mean(rows == steps[1][1]) == pytest.approx(0.9, abs=0.01)


# --- feed-back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_bad_errors_are_refused_by_position_and_change_nothing(filler, scheme) -> None:
    view = of_four(filler, P, EXACT, scheme)
    batch = view.sample(4)
    before, kept = tree_bytes(tree_of(view)), view.state_dict()["overlay"]
    good = np.ones(4, F4)
    with pytest.raises(FeedbackError, match="3 of 4 are not, at positions 1: nan, 2: inf, 3: -1"):
        view.feed_back(batch, priority_error=F4([1, np.nan, np.inf, -1]), value=good)
    with pytest.raises(FeedbackError, match="value must be finite"):
        view.feed_back(batch, priority_error=good, value=good * np.inf)
    with pytest.raises(FeedbackError, match=r"priority_error has shape \(3,\)"):
        view.feed_back(batch, priority_error=good[:3])
    with pytest.raises(FeedbackError, match="positions 0: inf"):
        view.feed_back(batch, priority_error=np.array([1e300, 1, 1, 1]))
    assert tree_bytes(tree_of(view)) == before
    for name, column in view.state_dict()["overlay"].items():
        assert column.tobytes() == kept[name].tobytes(), name
    assert len(view.sample(4)) == 4


def test_errors_of_every_make(filler) -> None:
    view = of_four(filler, P, EXACT)
    batch = batch_of(view_steps(view))
    for whole in (np.arange(4), np.arange(4, dtype=np.int32), torch.arange(4)):
        with pytest.raises(FeedbackError, match=r"priority_error has dtype int.*give floats"):
            view.feed_back(batch, priority_error=whole)
    with pytest.raises(FeedbackError, match="dtype <U1"):
        view.feed_back(batch, priority_error=list("abcd"))
    assert priorities(view, view_steps(view)).tolist() == P.tolist()
    good = [3.0, 1.0, 2.0, 5.0]
    makes = [
        good,
        np.array(good, np.float16),
        torch.tensor(good),
        torch.tensor(good, dtype=torch.float64),
        np.repeat(good, 2)[::2],
    ]
    for made in makes:
        view.feed_back(batch, priority_error=F4([9, 9, 9, 9]))
        view.feed_back(batch, priority_error=made)
        assert priorities(view, view_steps(view)).tolist() == good
    for index in (np.int32, np.int64):
        other = batch_of(view_steps(view))
        other.segment, other.row = other.segment.astype(index), other.row.astype(index)
        assert view.feed_back(other, priority_error=F4(good[::-1])).applied == 4
        assert priorities(view, view_steps(view)).tolist() == good[::-1]


def test_two_batches_are_drawn_before_either_is_fed_back(filler) -> None:
    made = filler()
    made.episode(50)
    view = made.view(scheme="per", priorities=PrioritySettings(epsilon=0.0))
    first, second = view.sample(16).copy(), view.sample(16).copy()
    assert identities(first) != identities(second)
    one, two = np.arange(1, 17, dtype=F4), np.arange(101, 117, dtype=F4)
    assert view.feed_back(first, priority_error=one).applied == 16
    assert priorities(view, identities(first)).tolist() == last_of(first, one)
    assert view.feed_back(second, priority_error=two).applied == 16
    assert priorities(view, identities(second)).tolist() == last_of(second, two)


def last_of(batch, errors) -> list[float]:
    """Each step's last error in the batch."""
    known = dict(zip(identities(batch), errors.tolist(), strict=True))
    return [known[step] for step in identities(batch)]


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_stale_steps_are_counted_and_left_alone(filler, scheme) -> None:
    made = filler(row_budget=16)
    view = made.view(window=20, scheme=scheme)
    for _ in range(5):
        view.admit(made.episode(5), np.zeros(6, F4))
    old = batch_of(view_steps(view))
    for _ in range(3):
        view.admit(made.episode(5), np.zeros(6, F4))
        view.forget()
    before = view_steps(view)
    feedback = view.feed_back(old, priority_error=F4(np.arange(25)))
    assert (feedback.applied, feedback.stale) == (10, 15)
    assert priorities(view, before[:10])[-1] == F4(24.00001)
    assert priorities(view, before[10:]).tolist() == [1.0] * 15
    assert_fresh(view)


def test_uniform_views_take_no_notice_of_errors(filler) -> None:
    made = filler()
    steps = steps_of(made.episode(4))
    view = made.view()
    assert view.feed_back(batch_of(steps), priority_error=P).applied == 4
    assert priorities(view, steps).tolist() == [0.0] * 4


@pytest.mark.parametrize("scheme", ["per", "pser"])
def test_nothing_can_be_drawn_while_every_priority_is_0(filler, scheme) -> None:
    made = filler()
    steps = steps_of(made.episode(4))
    none = SequenceSettings(eta=0.0)
    view = made.view(scheme=scheme, priorities=EXACT, sequences=none)
    view.sample(4)
    view.feed_back(batch_of(steps), priority_error=np.zeros(4, F4))
    for _ in range(2):
        with pytest.raises(SamplingError, match=r"all 4 steps .* priority 0.*epsilon above 0"):
            view.sample(4)
    assert view.draws == 1
    view.feed_back(batch_of(steps[2:3]), priority_error=F4([0.5]))
    batch = view.sample(4)
    assert view.draws == 2
    allowed = {steps[2]} if scheme == "per" else set(steps[:3])
    assert set(identities(batch)) <= allowed
    assert np.isfinite(batch.sampling_weight).all()
