"""Draws in proportion to tree weights, and their sampling weights, by the kernel alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.randomness import stream_key
from storage.replay.schemes.prioritized_draw import draw_prioritized
from storage.replay.schemes.sum_tree import SumTree

P = np.array([1, 0.5, 0.25, 0.25])


def tree_of(weights, *, minimum: bool = False) -> SumTree:
    """A tree as large as a ring must be: a power of two."""
    weights = np.asarray(weights, np.float64)
    tree = SumTree(max(1, 1 << (weights.size - 1).bit_length()), minimum=minimum)
    tree.weights[: weights.size] = weights
    tree.rebuild()
    return tree


def draw(
    tree: SumTree,
    size: int,
    index: int = 1,
    *,
    beta: float = 0.4,
    stratified: bool = True,
    seed: int = 0,
    head: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and sampling weights; the window begins at ring position `head`."""
    positions, weights = np.full(size, -1, np.int64), np.full(size, np.nan, np.float32)
    key = np.array(stream_key(seed, "test"), np.uint64)
    ends = np.array([head, head + tree.capacity])
    ring = np.zeros(tree.capacity, np.int64)
    assert draw_prioritized(
        tree.layout, ends, ring, key, index, beta, stratified, positions, weights
    )
    return positions, weights


@pytest.mark.parametrize(
    ("alpha", "wanted"),
    [
        (0.5, [0.3693980625, 0.2612038750, 0.1846990313, 0.1846990313]),
        (0.6, [0.3952093484, 0.2607409308, 0.1720248604, 0.1720248604]),
        (0.7, [0.4213310667, 0.2593596945, 0.1596546194, 0.1596546194]),
        (1.0, [0.5, 0.25, 0.125, 0.125]),
    ],
)
@pytest.mark.parametrize("stratified", [True, False])
def test_frequencies_are_those_of_the_tree(alpha, wanted, stratified) -> None:
    tree = tree_of(P**alpha)
    np.testing.assert_allclose(tree.weights / tree.total, wanted, atol=1e-10)
    drawn = np.concatenate([draw(tree, 50, i, stratified=stratified)[0] for i in range(4000)])
    counts = np.bincount(drawn, minlength=4)
    expected = np.array(wanted) * drawn.size
    chi_square = np.sum((counts - expected) ** 2 / expected)
    assert chi_square < 3 + 5 * np.sqrt(6)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_frequencies_over_a_thousand_slots(stratified, size) -> None:
    rng = np.random.default_rng(0)
    weights = np.exp(rng.normal(size=1000)) * (rng.random(1000) < 0.8)
    tree = tree_of(weights)
    rounds = 200_000 // size
    drawn = np.concatenate([draw(tree, size, i, stratified=stratified)[0] for i in range(rounds)])
    counts = np.bincount(drawn, minlength=tree.capacity)
    assert counts[1000:].sum() == counts[:1000][weights == 0].sum() == 0
    expected = (weights / weights.sum() * drawn.size)[weights > 0]
    chi_square = np.sum((counts[:1000][weights > 0] - expected) ** 2 / expected)
    degrees = expected.size - 1
    assert chi_square < degrees + 5 * np.sqrt(2 * degrees)


@pytest.mark.parametrize(
    ("beta", "wanted"),
    [
        (0.4, [0.71697762, 0.84674531, 1, 1]),
        (0.5, [0.65975396, 0.8122524, 1, 1]),
        (1.0, [0.43527528, 0.65975396, 1, 1]),
        (0.0, [1, 1, 1, 1]),
    ],
)
def test_sampling_weights(beta, wanted) -> None:
    positions, weights = draw(tree_of(P**0.6), 64, beta=beta)
    assert set(positions.tolist()) == {0, 1, 2, 3}
    np.testing.assert_allclose(weights, np.array(wanted)[positions], rtol=2e-7)


def test_sampling_weights_in_the_authors_manner() -> None:
    positions, weights = draw(tree_of(P), 64, beta=0.5)
    np.testing.assert_allclose(weights, np.array([0.5, 0.70710678, 1, 1])[positions], rtol=2e-7)


def test_the_largest_weight_of_the_batch_or_of_the_whole_tree() -> None:
    """Priorities 1, 2, 4: a batch without the 1 is divided by another weight."""
    seen = set()
    for index in range(200):
        for minimum in (False, True):
            tree = tree_of([1.0, 2.0, 4.0], minimum=minimum)
            positions, weights = draw(tree, 2, index, beta=1.0)
            smallest = 1.0 if minimum else tree.weights[positions].min()
            assert weights.tolist() == (smallest / tree.weights[positions]).tolist()
            seen.add((minimum, *sorted(zip(positions.tolist(), weights.tolist(), strict=True))))
    assert (False, (1, 1.0), (2, 0.5)) in seen
    assert (True, (1, 0.5), (2, 0.25)) in seen
    assert (True, (0, 1.0), (2, 0.25)) in seen


def test_a_step_of_weight_0_does_not_count_as_the_smallest() -> None:
    tree = tree_of([0.0, 0.5, 2.0, 0.0], minimum=True)
    positions, weights = draw(tree, 8, beta=1.0)
    assert set(positions.tolist()) == {1, 2}
    assert weights.tolist() == np.where(positions == 1, 1.0, 0.25).tolist()


def test_each_of_equal_shares_gives_one_step() -> None:
    tree = tree_of(np.ones(8))
    for index in range(1000):
        assert (draw(tree, 4, index)[0] // 2).tolist() == [0, 1, 2, 3]
        assert draw(tree, 8, index)[0].tolist() == list(range(8))
    loose = [draw(tree, 4, index, stratified=False)[0] for index in range(1000)]
    assert not all(sorted(positions // 2) == [0, 1, 2, 3] for positions in loose)


@pytest.mark.parametrize("head", [0, 3, 8, 1_000_003, 2**40 + 5])
def test_positions_count_on_from_the_head(head: int) -> None:
    tree = tree_of(np.arange(1.0, 9.0))
    slots, weights = draw(tree, 6, 9)
    positions, again = draw(tree, 6, 9, head=head)
    assert np.all((positions >= head) & (positions < head + 8))
    assert (positions & 7).tolist() == slots.tolist()
    assert again.tolist() == weights.tolist()


def test_a_draw_is_a_function_of_seed_and_index() -> None:
    tree = tree_of(np.random.default_rng(0).random(1000))
    assert draw(tree, 32, 5)[0].tolist() == draw(tree, 32, 5)[0].tolist()
    assert draw(tree, 32, 5)[0].tolist() != draw(tree, 32, 6)[0].tolist()
    assert draw(tree, 32, 5)[0].tolist() != draw(tree, 32, 5, seed=1)[0].tolist()


def test_no_step_of_a_batch_follows_from_another() -> None:
    """Shares are drawn in independently: neighbours' offsets are uncorrelated, as are draws'."""
    tree = tree_of(np.ones(2**16))
    offsets = np.array([draw(tree, 16, index)[0] % 4096 for index in range(4000)]) / 4096
    correlation = np.corrcoef(offsets.T)
    assert np.abs(correlation - np.eye(16)).max() < 5 / np.sqrt(4000)
    assert abs(np.corrcoef(offsets[1:].ravel(), offsets[:-1].ravel())[0, 1]) < 5 / np.sqrt(64_000)


def test_nothing_is_drawn_where_every_weight_is_0() -> None:
    tree = tree_of(np.zeros(8))
    positions, weights = np.full(4, -7, np.int64), np.full(4, -7, np.float32)
    key = np.array(stream_key(0, "test"), np.uint64)
    ends, ring = np.array([0, 8]), np.zeros(8, np.int64)
    assert not draw_prioritized(tree.layout, ends, ring, key, 1, 0.4, True, positions, weights)
    assert positions.tolist() == weights.tolist() == [-7] * 4


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_weights_give_drawable_steps_and_weights_up_to_1(data) -> None:
    weight = st.one_of(st.just(0.0), st.floats(1e-45, 3.4e38))
    weights = data.draw(st.lists(weight, min_size=1, max_size=80))
    weights[data.draw(st.integers(0, len(weights) - 1))] = data.draw(st.floats(1e-45, 3.4e38))
    minimum = data.draw(st.booleans())
    beta = data.draw(st.floats(0, 1))
    tree = tree_of(weights, minimum=minimum)
    size, index = data.draw(st.integers(1, 100)), data.draw(st.integers(0, 2**40))
    stratified = data.draw(st.booleans())
    positions, given_weights = draw(tree, size, index, beta=beta, stratified=stratified)
    chosen = tree.weights[positions]
    assert np.all(chosen > 0.0)
    assert np.all((given_weights >= 0.0) & (given_weights <= 1.0))
    if stratified:
        assert np.all(np.diff(positions) >= 0)
    smallest = min(w for w in weights if w > 0) if minimum else chosen.min()
    np.testing.assert_allclose(given_weights, (smallest / chosen) ** beta, rtol=1e-6, atol=1e-44)
