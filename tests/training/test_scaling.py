from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from storage.errors import NonFiniteError, SchemaMismatchError
from training.scaling import ObservationScaling, RewardScaling, flat_rows


def statistics(mean=None, variance=None, second_moment=0.0):
    return SimpleNamespace(mean=mean, variance=variance, reward_second_moment=second_moment)


def test_scaling_is_the_identity_until_started():
    rows = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_array_equal(ObservationScaling(3).scale(rows), rows.astype(np.float32))
    assert RewardScaling().value == 1.0


def test_start_standardises_and_a_constant_component_counts_as_one():
    scaling = ObservationScaling(3)
    scaling.start(statistics(np.array([1.0, 2.0, 1e9]), np.array([4.0, 1e-40, 0.25])))
    assert scaling.mean.tolist() == [1.0, 2.0, 1e9]
    assert scaling.stdev.tolist() == [2.0, 1.0, 0.5]
    scaled = scaling.scale(np.array([[2.0, 3.0, 1e9 + 1.0]]))
    assert scaled.dtype == np.float32
    assert scaled.tolist() == [[0.5, 1.0, 2.0]], "float64 before rounding: no cancellation"


def test_move_takes_a_thousandth():
    scaling = ObservationScaling(1)
    scaling.start(statistics(np.array([1.0]), np.array([4.0])))
    scaling.move(statistics(np.array([2.0]), np.array([9.0])))
    assert scaling.mean[0] == pytest.approx(1.001, rel=1e-12)
    assert scaling.stdev[0] == pytest.approx(2.001, rel=1e-12)
    scaling.move(statistics(np.array([3.0]), np.array([16.0])), weight=1.0)
    assert (scaling.mean[0], scaling.stdev[0]) == (3.0, 4.0)


@pytest.mark.parametrize("nest", [dict, list])
def test_leaves_of_a_nested_space_are_concatenated(nest):
    parts = [np.array([1.0]), np.array([[2.0, 3.0]])]
    mean = dict(zip("ab", parts, strict=True)) if nest is dict else parts
    scaling = ObservationScaling(3)
    scaling.start(statistics(mean, mean))
    assert scaling.mean.tolist() == [1.0, 2.0, 3.0]
    rows = {"a": np.array([1, 2], np.int64), "b": np.ones((2, 1, 2), np.uint8)}
    assert flat_rows(rows).tolist() == [[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]


def test_scale_writes_into_a_given_array():
    out = np.empty((2, 1), np.float32)
    assert ObservationScaling(1).scale(np.array([[1.0], [2.0]]), out=out) is out
    assert out.tolist() == [[1.0], [2.0]]


def test_statistics_of_another_size_or_not_finite_are_refused():
    scaling = ObservationScaling(2)
    with pytest.raises(SchemaMismatchError, match="3 values for a scaling of 2"):
        scaling.start(statistics(np.zeros(3), np.zeros(3)))
    with pytest.raises(SchemaMismatchError, match="1 of them not finite"):
        scaling.start(statistics(np.array([0.0, np.nan]), np.ones(2)))
    assert scaling.mean.tolist() == [0.0, 0.0]


def test_reward_scale_is_the_root_of_the_second_moment():
    scaling = RewardScaling()
    scaling.start(statistics(second_moment=6.25))
    assert scaling.value == 2.5
    scaling.move(statistics(second_moment=9.0))
    assert scaling.value == 3.0
    scaling.move(statistics(second_moment=0.0))
    assert scaling.value == 1.0


def test_scalings_stay_float64_on_the_host_and_in_checkpoints():
    parent = torch.nn.Module()
    parent.observation, parent.reward = ObservationScaling(2), RewardScaling()
    parent.observation.start(statistics(np.array([1 / 3, 0.0]), np.ones(2)))
    view = parent.observation.mean
    parent.half().to("meta")
    assert parent.observation.statistics.dtype == torch.float64
    assert parent.reward.scale.device.type == "cpu"
    state = {name: value.clone() for name, value in parent.state_dict().items()}
    parent.observation.mean[:] = 5.0
    parent.load_state_dict(state)
    assert view[0] == 1 / 3


def test_rewards_whose_squares_overflow_are_told():
    scaling = RewardScaling()
    with pytest.raises(NonFiniteError, match="rewards in the replay memory is beyond all numbers"):
        scaling.start(statistics(second_moment=float("inf")))
    assert scaling.value == 1.0
