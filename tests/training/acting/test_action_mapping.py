from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from storage.errors import SchemaMismatchError, UnsupportedSpaceError
from training.acting.action_mapping import ActionMapping


def raw(*numbers):
    return np.array(numbers, np.float32)


def test_the_box_is_minus_one_to_one_and_clipped():
    space = spaces.Box(np.array([-0.4, 2.0]), np.array([0.4, 10.0]), dtype=np.float64)
    mapping = ActionMapping(space)
    assert mapping.bounded
    assert mapping.size == 2
    np.testing.assert_allclose(mapping.to_action(raw(-1, -1)), [-0.4, 2.0])
    np.testing.assert_allclose(mapping.to_action(raw(0.5, 0)), [0.2, 6.0])
    assert mapping.to_action(raw(3, -7)).tolist() == [0.4, 2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse(dtype):
    space = spaces.Box(-3.0, 5.0, (4,), dtype)
    mapping = ActionMapping(space)
    draws = np.random.default_rng(0).uniform(-1, 1, size=(200, 4)).astype(np.float32)
    for u in draws:
        action = mapping.to_action(u)
        assert action in space
        np.testing.assert_allclose(mapping.to_raw(action), u, atol=1e-6)


def test_actions_never_leave_a_float32_box():
    space = spaces.Box(np.float32(-0.1), np.float32(0.3), (1,), np.float32)
    mapping = ActionMapping(space)
    for u in (-1.0, 1.0, -5.0, 5.0, 0.9999999):
        assert mapping.to_action(raw(u)) in space


def test_a_missing_bound_passes_the_draw_through():
    low, high = np.array([-np.inf, 0.0, -2.0]), np.array([np.inf, np.inf, 2.0])
    mapping = ActionMapping(spaces.Box(low, high, dtype=np.float64))
    assert not mapping.bounded
    assert mapping.to_action(raw(7.5, -1.0, 0.5)).tolist() == [7.5, 0.0, 1.0]
    np.testing.assert_allclose(mapping.to_raw(np.array([7.5, 3.0, 1.0])), [7.5, 3.0, 0.5])


def test_nested_boxes_are_one_raw_vector():
    space = spaces.Dict(
        {
            "grip": spaces.Box(0, 10, (1, 2), np.int64),
            "arm": spaces.Tuple([spaces.Box(-1.0, 1.0, (1,), np.float32)]),
        }
    )
    mapping = ActionMapping(space)
    action = mapping.to_action(raw(0.25, -1.0, 0.56))
    assert action in space
    assert action["arm"][0].tolist() == pytest.approx([0.25])
    assert action["grip"].tolist() == [[0, 8]]
    np.testing.assert_allclose(mapping.to_raw(action), [0.25, -1.0, 0.6], atol=1e-6)


def test_a_single_leaf_inside_a_dict_keeps_its_nesting():
    space = spaces.Dict({"arm": spaces.Box(-1.0, 1.0, (1,), np.float32)})
    assert ActionMapping(space).to_action(raw(0.5)) in space


def test_a_dimension_of_zero_width():
    mapping = ActionMapping(spaces.Box(2.0, 2.0, (1,), np.float64))
    assert mapping.to_action(raw(0.7)).tolist() == [2.0]
    assert mapping.to_raw(np.array([2.0])).tolist() == [0.0]


def test_discrete_parts_and_wrong_sizes_are_refused():
    with pytest.raises(UnsupportedSpaceError, match=r"Discrete\(3\).*action\.1"):
        ActionMapping(spaces.Tuple([spaces.Box(-1, 1, (1,)), spaces.Discrete(3)]))
    with pytest.raises(SchemaMismatchError, match="3 numbers for a space of 2"):
        ActionMapping(spaces.Box(-1, 1, (2,))).to_raw(np.zeros(3))
