"""The kernel's checks against a naive twin in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from storage.schema import make_schema
from storage.step_kernel import BAD_STDEV, MISFIT, store_step
from storage.step_plan import StepPlan

ROWS = 4


def plan_for(observation: spaces.Space, action: spaces.Space, **more: object) -> tuple:
    schema = make_schema(observation, action, **more)
    arrays = {c.name: np.zeros((ROWS, *c.shape), c.dtype) for c in schema.columns}
    return StepPlan(schema, arrays), arrays


STORED = object()
"""Stands for numbers that are in their column already."""


def run(
    plan: StepPlan,
    observation: object = STORED,
    action: object = STORED,
    raw_action: object = STORED,
    behaviour: object = STORED,
    *,
    reward: float = 1.0,
    kind: int = 3,
) -> int:
    values = observation, action, raw_action, behaviour
    ids = [0 if value is STORED else id(value) for value in values]
    return store_step(plan.address, 1, *ids, reward, True, False, kind, 12, True)


def naive(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[bool, bool]:
    """(not finite, out of bounds)."""
    finite = bool(np.isfinite(value).all())
    return not finite, finite and bool((value < low).any() or (value > high).any())


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_float_actions_equal_the_naive_twin(dtype: str) -> None:
    low = np.array([-1, -np.inf, -0.0, -3], dtype)
    high = np.array([1, 2, 0.0, np.inf], dtype)
    plan, arrays = plan_for(spaces.Discrete(3), spaces.Box(low, high, (4,), np.dtype(dtype).type))
    rng = np.random.default_rng(0)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2, -3, 60000, -60000], dtype)
    seen = set()
    for _ in range(2000):
        action = rng.uniform(-1, 1, 4).astype(dtype) * np.array([1, 1, 0, 2], dtype)
        if rng.random() < 0.5:
            action[rng.integers(4)] = rng.choice(special)
        arrays["action"][1] = action
        code = run(plan)
        expected = naive(action, low, high)
        seen.add(expected)
        if expected == (False, False):
            assert code == 0
        else:
            assert plan.meaning(code) == ("action", expected[1])
    assert seen == {(False, False), (True, False), (False, True)}


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integer_actions_equal_the_naive_twin(dtype: str) -> None:
    limits = np.iinfo(dtype)
    low = np.array([limits.min, limits.min + 5, 10], dtype)
    high = np.array([limits.max, limits.max - 3, 20], dtype)
    plan, arrays = plan_for(spaces.Discrete(3), spaces.Box(low, high, (3,), np.dtype(dtype).type))
    edges = [limits.min, limits.min + 4, limits.min + 5, 10, 20, 21, limits.max - 2, limits.max]
    for first in edges:
        for second in edges:
            for third in edges:
                action = np.array([first, second, third], dtype)
                arrays["action"][1] = action
                expected = 0 if not naive(action, low, high)[1] else ("action", True)
                code = run(plan)
                assert (plan.meaning(code) if code else 0) == expected


def test_stores_all_scalars_and_nothing_when_refused() -> None:
    box = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    plan, arrays = plan_for(box, box, life_loss=True)
    arrays["observation"][2, 1] = np.nan
    before = {name: array.copy() for name, array in arrays.items()}
    assert plan.meaning(run(plan)) == ("observation", False)
    arrays["observation"][2, 1] = 0
    assert plan.meaning(run(plan, reward=float("nan"))) == ("reward", False)
    assert plan.meaning(run(plan, reward=float("-inf"))) == ("reward", False)
    for kind in (-1, 5, 256):
        assert plan.meaning(run(plan, kind=kind)) == ("behaviour_kind", True)
    before["observation"][2, 1] = 0
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name])
    assert run(plan, reward=2.5) == 0
    assert arrays["reward"].tolist() == [0, 2.5, 0, 0]
    assert arrays["terminated"].tolist() == [False, True, False, False]
    assert not arrays["truncated"].any()
    assert arrays["behaviour_kind"].tolist() == [0, 3, 0, 0]
    assert arrays["policy_update"].tolist() == [0, 12, 0, 0]
    assert arrays["life_lost"].tolist() == [False, True, False, False]
    assert not arrays["kind"].any()  # the writer's last store


def test_absent_policy_numbers_are_nan_and_not_checked() -> None:
    box = spaces.Box(-1, 1, (2,), np.float32)
    plan, arrays = plan_for(box, box)
    arrays["behaviour"][1] = np.nan
    assert plan.meaning(run(plan, raw_action=None)) == ("behaviour", False)
    assert np.isnan(arrays["raw_action"][1]).all()
    assert plan.meaning(run(plan)) == ("raw_action", False)
    arrays["behaviour"][1] = 0
    assert run(plan, raw_action=None, behaviour=None, kind=3) == 0
    assert np.isnan(arrays["behaviour"][1]).all()
    assert not arrays["raw_action"][[0, 2, 3]].any()


@pytest.mark.parametrize("kind", [1, 2, 4])
def test_kinds_with_parameters_need_a_behaviour(kind: int) -> None:
    box = spaces.Box(-1, 1, (2,), np.float32)
    plan, arrays = plan_for(box, box)
    assert run(plan, behaviour=None, kind=kind) == MISFIT | 8
    assert not arrays["behaviour"].any()
    assert not arrays["terminated"].any()


def test_a_uniform_kind_takes_no_behaviour() -> None:
    box = spaces.Box(-1, 1, (2,), np.float32)
    plan, arrays = plan_for(box, box)
    assert run(plan, behaviour=np.ones(4, np.float32), kind=3) == MISFIT | 8
    assert not arrays["behaviour"].any()


@pytest.mark.parametrize("stdevs", [(0.0, 1.0), (1.0, -0.0), (1.0, -1e-30), (-1.0, 1.0)])
@pytest.mark.parametrize("stored", [False, True])
def test_gaussian_stdevs_are_above_zero(stdevs: tuple[float, float], stored: bool) -> None:
    box = spaces.Box(-1, 1, (2,), np.float32)
    plan, arrays = plan_for(box, box)
    bad = np.array([-1, 0, *stdevs], np.float32)
    given = STORED if stored else bad
    for kind, expected in ((1, BAD_STDEV), (4, BAD_STDEV), (0, 0), (2, 0)):
        arrays["terminated"][:] = False
        arrays["behaviour"][:] = np.array([0, 0, 1, 1], np.float32)
        if stored:
            arrays["behaviour"][1] = bad
        assert run(plan, behaviour=given, kind=kind) == expected
        assert arrays["terminated"].any() == (expected == 0)
    assert plan.meaning(BAD_STDEV) == ("behaviour", True)
    tiny = np.array([-5, 0, 1e-45, 3], np.float32)
    assert run(plan, behaviour=tiny, kind=1) == 0


def test_arrays_that_fit_are_copied_into_their_rows_only() -> None:
    plan, arrays = plan_for(
        spaces.Box(-9, 9, (2, 3), np.float64), spaces.Box(-9, 9, (2,), np.float32)
    )
    values = (
        np.arange(6.0).reshape(2, 3),
        np.array([1, 2], np.float32),
        np.array([3, 4], np.float32),
        np.array([5, 6, 7, 8], np.float32),
    )
    assert run(plan, *values, kind=1) == 0
    names = ("observation", "action", "raw_action", "behaviour")
    for name, value, row in zip(names, values, (2, 1, 1, 1), strict=True):
        np.testing.assert_array_equal(arrays[name][row], value)
        assert not np.delete(arrays[name], row, axis=0).any()


def test_whatever_does_not_fit_is_named_and_nothing_is_written() -> None:
    box = spaces.Box(-9, 9, (2, 2), np.float64)
    plan, arrays = plan_for(box, spaces.Box(-9, 9, (2,), np.float32))
    good = np.ones((2, 2))
    bad = [
        good.T[::-1],
        good.astype(np.float32),
        good.astype(">f8"),
        np.ones(4),
        np.ones((2, 2, 1)),
        good.tolist(),
        np.ma.masked_array(good),
        None,
        1.0,
    ]
    for value in bad:
        assert run(plan, value, np.ones(2, np.float32)) == MISFIT | 1
        if value is not None:  # the step has no raw action then
            assert run(plan, good, value, value, good) == MISFIT | 14
    assert not any(array.any() for array in arrays.values())


def test_a_scalar_is_taken_where_the_column_holds_scalars() -> None:
    plan, arrays = plan_for(spaces.Discrete(5), spaces.Discrete(3))
    chances = np.full(3, 1 / 3, np.float32)
    assert run(plan, np.int64(4), np.int64(2), None, chances, kind=2) == 0
    assert arrays["observation"].tolist() == [0, 0, 4, 0]
    assert arrays["action"].tolist() == [0, 2, 0, 0]
    assert run(plan, np.int32(4), 2, None, chances, kind=2) == MISFIT | 3


def test_nested_and_missing_columns_are_left_to_numpy() -> None:
    box = spaces.Box(-1, 1, (1,), np.float32)
    plan, _ = plan_for(spaces.Tuple([box] * 2), spaces.Discrete(3), behaviour="unknown")
    one = np.ones(1, np.float32)
    assert run(plan, (one, one), STORED, one, one, kind=0) == MISFIT | 13
    assert run(plan, STORED, STORED, None, None, kind=0) == 0


def test_many_leaves() -> None:
    box = spaces.Box(-1, 1, (1,), np.float32)
    plan, arrays = plan_for(spaces.Tuple([box] * 90), box)
    assert run(plan) == 0
    arrays["observation.89"][2] = np.inf
    assert plan.meaning(run(plan)) == ("observation.89", False)
