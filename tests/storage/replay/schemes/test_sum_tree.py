"""The sum tree against plain sums and cumulative sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.errors import SamplingError
from storage.replay.schemes.sum_tree import SumTree

CAPACITIES = [1, 2, 7, 8, 9, 63, 64, 65, 1000, 2**18 + 3]


def naive_levels(weights: np.ndarray) -> list[np.ndarray]:
    """All levels above the slots: groups of eight, each added up from left to right."""
    levels, level = [], np.asarray(weights, np.float64)
    while not levels or level.size > 1:
        groups = np.concatenate([level, np.zeros(-level.size % 8)]).reshape(-1, 8)
        level = np.zeros(len(groups))
        for child in range(8):
            level = level + groups[:, child]
        levels.append(level)
    return levels


def built(weights: object, *, minimum: bool = False) -> SumTree:
    tree = SumTree(len(weights), minimum=minimum)
    tree.weights[:] = weights
    tree.rebuild()
    return tree


def every_byte(tree: SumTree) -> bytes:
    return tree._nodes.tobytes() + tree._running.tobytes() + tree._minima.tobytes()


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_every_node_is_the_sum_of_its_children_from_left_to_right(capacity: int) -> None:
    weights = np.exp(8 * np.random.default_rng(capacity).normal(size=capacity))
    tree = built(weights)
    nodes, levels = tree._nodes, naive_levels(weights)
    assert len(levels) == tree.layout[3] - 1
    for offset, level in zip(tree.layout[5:], levels, strict=True):
        assert nodes[offset : offset + level.size].tobytes() == level.tobytes()
    assert tree.total == levels[-1][0]
    assert tree.total == pytest.approx(math.fsum(weights), rel=1e-12)
    assert tree.weights.tobytes() == weights.tobytes()


def test_a_tree_of_sixteen_million_slots() -> None:
    weights = np.random.default_rng(0).random(2**24)
    tree = built(weights)
    assert tree.total == naive_levels(weights)[-1][0]
    assert tree.total == pytest.approx(float(weights.sum(dtype=np.longdouble)), rel=1e-12)
    slots = np.array([0, 2**24 - 1, 2**23, 12345])
    targets = np.cumsum(weights)[slots] - 0.5 * weights[slots]
    assert tree.find(targets).tolist() == slots.tolist()
    tree.set(slots, np.zeros(4))
    weights[slots] = 0.0
    assert tree.total == naive_levels(weights)[-1][0]


def test_parents_do_not_drift_in_ten_million_updates() -> None:
    """Random batches with repeats, heavy tails and zeros, then a fresh tree of the same weights."""
    rng = np.random.default_rng(0)
    tree = SumTree(100_003, minimum=True)
    for _ in range(40_000):
        weights = np.exp(10 * rng.standard_normal(256))
        weights[:16] = 0.0
        tree.set(rng.integers(0, tree.capacity, 256), weights)
    assert np.count_nonzero(tree.weights) > 0.9 * tree.capacity
    assert every_byte(tree) == every_byte(built(tree.weights, minimum=True))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_tree_forgets_how_its_weights_came_there(data) -> None:
    capacity = data.draw(st.integers(1, 600))
    tree = SumTree(capacity, minimum=True)
    model = np.zeros(capacity)
    slot = st.integers(0, capacity - 1)
    weight = st.floats(0.0, 1e38)
    for _ in range(data.draw(st.integers(1, 5))):
        pairs = data.draw(st.lists(st.tuples(slot, weight), min_size=1, max_size=40))
        tree.set(np.array([s for s, _ in pairs]), np.array([w for _, w in pairs]))
        for where, given_weight in pairs:
            model[where] = given_weight
        assert tree.weights.tolist() == model.tolist()
        assert every_byte(tree) == every_byte(built(model, minimum=True))
        assert tree.smallest == min(model[model > 0], default=math.inf)


def test_of_a_slot_named_twice_the_last_weight_holds() -> None:
    tree = SumTree(8)
    tree.set(np.array([3, 3, 5]), np.array([1.0, 7.0, 2.0]))
    assert tree.weights.tolist() == [0, 0, 0, 7, 0, 2, 0, 0]
    assert tree.total == 9.0


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_find_equals_a_search_in_the_cumulative_sums(data) -> None:
    """Whole weights, whose sums are exact: a slot's share begins where the one before it ends."""
    weights = data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=700))
    weights[data.draw(st.integers(0, len(weights) - 1))] += 1
    cumulative = np.cumsum(weights)
    targets = np.arange(0, cumulative[-1], 0.5)
    found = built(weights).find(targets)
    assert found.tolist() == np.searchsorted(cumulative, targets, side="right").tolist()


@pytest.mark.parametrize("capacity", [7, 65, 1000, 2**15 + 3])
def test_find_is_off_by_rounding_at_most(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    weights = rng.random(capacity) * (rng.random(capacity) < 0.7)
    weights[0] = 1.0
    tree = built(weights)
    targets = rng.random(20_000) * tree.total
    found = tree.find(targets)
    ends = np.cumsum(weights)
    wanted = np.searchsorted(ends, targets, side="right")
    assert np.count_nonzero(found != wanted) < 5
    assert np.all(targets >= ends[found] - weights[found] - 1e-12 * tree.total)
    assert np.all(targets <= ends[found] + 1e-12 * tree.total)


def test_a_slot_of_weight_0_is_never_found() -> None:
    """Thousands of trees that are mostly empty, with weights over 76 orders of magnitude."""
    rng = np.random.default_rng(3)
    for _ in range(4000):
        capacity = int(rng.integers(1, 700))
        weights = 10.0 ** rng.uniform(-38, 38, capacity)
        weights[rng.random(capacity) < rng.random()] = 0.0
        weights[rng.integers(capacity)] = 10.0 ** rng.uniform(-38, 38)
        tree = built(weights)
        edges = [0.0, tree.total, np.nextafter(tree.total, 0), np.nextafter(0, 1)]
        ends = np.minimum(np.cumsum(weights)[rng.integers(0, capacity, 8)], tree.total)
        around = [ends, np.minimum(np.nextafter(ends, np.inf), tree.total), np.nextafter(ends, 0)]
        found = tree.find(np.concatenate([edges, *around, rng.random(8) * tree.total]))
        assert np.all(weights[found] > 0.0)
        positive = np.flatnonzero(weights)
        assert found[0] == positive[0]
        assert found[1] == positive[-1]


def test_the_top_end_stays_inside_the_filled_slots() -> None:
    """100 filled slots of 500, a million targets at and just below the sum of all."""
    tree = SumTree(500)
    tree.set(np.arange(100), np.random.default_rng(0).random(100))
    target, targets = tree.total, []
    for _ in range(1000):
        targets.append(target)
        target = np.nextafter(target, 0)
    found = tree.find(np.tile(targets, 1000))
    assert found.size == 1_000_000
    assert set(found.tolist()) == {99}


def test_slots_of_weight_0_between_others() -> None:
    tree = built([0.0, 1.0, 0.0, 2.0, 0.0])
    found = tree.find(np.random.default_rng(0).random(100_000) * tree.total)
    counts = np.bincount(found, minlength=5)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0]
    assert counts[3] / counts[1] == pytest.approx(2.0, rel=0.03)


def test_the_newest_of_two_has_its_share() -> None:
    tree = built([1.0, 9.0])
    found = tree.find(np.random.default_rng(0).random(100_000) * tree.total)
    assert found.mean() == pytest.approx(0.9, abs=0.01)


def test_the_smallest_positive_weight() -> None:
    tree = SumTree(1000, minimum=True)
    assert tree.smallest == math.inf
    tree.set(np.array([999, 5, 70]), np.array([3.0, 0.5, 0.25]))
    assert tree.smallest == 0.25
    tree.set(np.array([70]), np.array([0.0]))
    assert tree.smallest == 0.5
    tree.set(np.array([5, 999]), np.array([0.0, 1e-300]))
    assert tree.smallest == 1e-300
    tree.set(np.array([999]), np.array([0.0]))
    assert tree.smallest == math.inf


@pytest.mark.parametrize(
    ("slots", "weights", "message"),
    [
        ([0, 1, 2, 3], [1.0, np.nan, np.inf, -1.0], r"weights at positions \[1, 2, 3\]"),
        ([4, 5], [-np.inf, 1.0], r"weights at positions \[0\]"),
        ([0, 10, 2, -1], [1.0] * 4, r"slots at positions \[1, 3\] are outside \[0, 10\)"),
        ([0, 1], [1.0], "as many whole numbers as weights"),
        ([0.0], [1.0], "slots float64"),
        ([True], [1.0], "slots bool"),
        ([[0]], [[1.0]], "in one dimension"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(slots, weights, message) -> None:
    tree = built(np.arange(10.0), minimum=True)
    before = every_byte(tree)
    with pytest.raises(SamplingError, match=message):
        tree.set(np.array(slots), np.array(weights))
    assert every_byte(tree) == before
    assert tree.find([44.9]).tolist() == [9]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_slots_of_any_whole_dtype(dtype) -> None:
    tree = SumTree(100)
    tree.set(np.array([99, 3], dtype), np.array([1, 2], np.float32))
    assert (tree.total, tree.weights[99], tree.weights[3]) == (3.0, 1.0, 2.0)


def test_nothing_to_set_is_nothing_done() -> None:
    tree = built([1.0, 2.0])
    tree.set(np.zeros(0, np.int64), np.zeros(0))
    assert tree.total == 3.0


def test_targets_outside_and_empty_trees_are_refused() -> None:
    tree = built([1.0, 2.0])
    for target in (-1e-300, 3.0000001, np.nan, np.inf):
        with pytest.raises(SamplingError, match=r"\[0, 3.0\]"):
            tree.find([1.0, target])
    with pytest.raises(SamplingError, match=r"no slot .* has a positive weight"):
        SumTree(4).find([0.0])


@pytest.mark.parametrize("capacity", [0, -1, 2**40 + 1])
def test_impossible_capacities_are_refused(capacity: int) -> None:
    with pytest.raises(SamplingError, match=rf"capacity={capacity}"):
        SumTree(capacity)


def test_memory_is_little_more_than_the_weights() -> None:
    assert SumTree(2**16).nbytes < 8 * 2**16 * 1.3
    assert SumTree(2**16, minimum=True).nbytes < 8 * 2**16 * 1.45
