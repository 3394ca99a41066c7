"""The kernel's checks against a naive twin in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from storage.schema import make_schema
from storage.step_kernel import store_step
from storage.step_plan import StepPlan

ROWS = 4


def plan_for(observation: spaces.Space, action: spaces.Space, **more: object) -> tuple:
    schema = make_schema(observation, action, **more)
    arrays = {c.name: np.zeros((ROWS, *c.shape), c.dtype) for c in schema.columns}
    return StepPlan(schema, arrays), arrays


def run(plan: StepPlan, row: int = 1, reward: float = 1.0, present: int = -1) -> int:
    return store_step(plan.address, row, present, reward, True, False, 1, 12, True)


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
        code = store_step(plan.address, 1, -1, 1.0, True, False, kind, 12, True)
        assert plan.meaning(code) == ("behaviour_kind", True)
    before["observation"][2, 1] = 0
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name])
    assert run(plan, reward=2.5) == 0
    assert arrays["reward"].tolist() == [0, 2.5, 0, 0]
    assert arrays["terminated"].tolist() == [False, True, False, False]
    assert not arrays["truncated"].any()
    assert arrays["behaviour_kind"].tolist() == [0, 1, 0, 0]
    assert arrays["policy_update"].tolist() == [0, 12, 0, 0]
    assert arrays["life_lost"].tolist() == [False, True, False, False]
    assert not arrays["kind"].any()  # the writer's last store


def test_absent_policy_numbers_are_not_checked() -> None:
    box = spaces.Box(-1, 1, (2,), np.float32)
    plan, arrays = plan_for(box, box)
    arrays["raw_action"][1] = np.nan
    arrays["behaviour"][1] = np.nan
    assert plan.meaning(run(plan)) == ("raw_action", False)
    assert plan.meaning(run(plan, present=~plan.raw_action_bit)) == ("behaviour", False)
    assert run(plan, present=~(plan.raw_action_bit | plan.behaviour_bit)) == 0


def test_many_leaves() -> None:
    box = spaces.Box(-1, 1, (1,), np.float32)
    plan, arrays = plan_for(spaces.Tuple([box] * 90), box)
    assert run(plan) == 0
    arrays["observation.89"][2] = np.inf
    assert plan.meaning(run(plan)) == ("observation.89", False)
