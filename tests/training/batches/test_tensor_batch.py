from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from storage.errors import SchemaMismatchError
from training.batches.tensor_batch import BatchConverter
from training.scaling import ObservationScaling


def replay_batch(size=5, kinds=None):
    rng = np.random.default_rng(size)
    mean, stdev = rng.normal(size=(size, 2)), rng.uniform(0.1, 1.0, size=(size, 2))
    return SimpleNamespace(
        segment=np.full(size, 4),
        row=np.arange(size) + 10,
        observation=rng.normal(size=(size, 3)),
        raw_action=rng.normal(size=(size, 2)).astype(np.float32),
        reward=rng.normal(size=size),
        next_value_target=rng.normal(size=size).astype(np.float32),
        behaviour=np.concatenate([mean, stdev], axis=1).astype(np.float32),
        behaviour_kind=np.ones(size, np.uint8) if kinds is None else np.array(kinds, np.uint8),
        sampling_weight=np.ones(size, np.float32),
    )


def test_tensors_hold_the_batch():
    scaling = ObservationScaling(3)
    scaling.mean[:] = 1.0
    batch = replay_batch()
    tensors = BatchConverter(scaling, 2)(batch)
    np.testing.assert_array_equal(tensors.observation, scaling.scale(batch.observation))
    np.testing.assert_array_equal(tensors.raw_action, batch.raw_action)
    np.testing.assert_array_equal(tensors.reward, batch.reward.astype(np.float32))
    np.testing.assert_array_equal(tensors.next_value_target, batch.next_value_target)
    np.testing.assert_array_equal(tensors.behaviour_mean, batch.behaviour[:, :2])
    np.testing.assert_array_equal(tensors.behaviour_stdev, batch.behaviour[:, 2:])
    density = torch.distributions.Normal(tensors.behaviour_mean, tensors.behaviour_stdev)
    expected = density.log_prob(tensors.raw_action).sum(-1)
    assert torch.allclose(tensors.behaviour_log_density, expected, rtol=1e-5)
    assert all(tensor.dtype == torch.float32 for tensor in tensors)


def test_memory_is_reused_while_the_size_stays():
    converter = BatchConverter(ObservationScaling(3), 2)
    first = converter(replay_batch())
    addresses = [tensor.data_ptr() for tensor in first]
    batch = replay_batch()
    batch.reward[:] = 8.0
    assert [tensor.data_ptr() for tensor in converter(batch)] == addresses
    assert (first.reward == 8.0).all()
    assert converter(replay_batch(7)).reward.shape == (7,)


def test_a_uniform_behaviour_has_its_moments():
    batch = replay_batch(2, [3, 1])
    batch.behaviour[0] = np.nan
    tensors = BatchConverter(ObservationScaling(3), 2)(batch)
    assert tensors.behaviour_log_density[0].item() == pytest.approx(-2 * math.log(2))
    assert tensors.behaviour_mean[0].tolist() == [0.0, 0.0]
    assert tensors.behaviour_stdev[0].tolist() == pytest.approx([3**-0.5] * 2)


def test_a_store_without_behaviour_columns_serves_uniform_steps():
    batch = replay_batch(2, [3, 3])
    batch.behaviour = np.empty((2, 0), np.float32)
    tensors = BatchConverter(ObservationScaling(3), 2)(batch)
    assert tensors.behaviour_log_density.tolist() == pytest.approx([-2 * math.log(2)] * 2)


@pytest.mark.parametrize("kind", [0, 2, 4])
def test_an_unknown_behaviour_is_named(kind):
    batch = replay_batch(3, [1, 1, kind])
    with pytest.raises(SchemaMismatchError, match=rf"segment 4, row 12.*kind {kind}"):
        BatchConverter(ObservationScaling(3), 2)(batch)


def test_a_broken_gaussian_behaviour_is_named():
    batch = replay_batch(3)
    batch.behaviour[1, 2] = 0.0
    with pytest.raises(SchemaMismatchError, match="row 11"):
        BatchConverter(ObservationScaling(3), 2)(batch)


def test_two_broken_deviations_do_not_make_a_whole_one():
    batch = replay_batch(3)
    batch.behaviour[1, 2:] = -1.0
    with pytest.raises(SchemaMismatchError, match="row 11"):
        BatchConverter(ObservationScaling(3), 2)(batch)


@pytest.mark.parametrize("size", [1, 5, 6, 7, 50])
def test_log_densities_of_any_width_and_scale(size):
    batch = replay_batch(4)
    rng = np.random.default_rng(size)
    stdev = np.exp(rng.uniform(-80, 80, (4, size))).astype(np.float32)
    batch.raw_action = (stdev * rng.normal(size=(4, size))).astype(np.float32)
    batch.behaviour = np.concatenate([np.zeros((4, size), np.float32), stdev], axis=1)
    tensors = BatchConverter(ObservationScaling(3), size)(batch)
    normal = torch.distributions.Normal(0.0, torch.from_numpy(stdev).double())
    expected = normal.log_prob(torch.from_numpy(batch.raw_action).double()).sum(-1).float()
    assert torch.allclose(tensors.behaviour_log_density, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("field", "shape"), [("raw_action", (5, 9)), ("behaviour", (5, 3)), ("observation", (5, 4))]
)
def test_a_batch_of_another_environment_is_refused_by_name(field, shape):
    converter = BatchConverter(ObservationScaling(3), 2)
    before = [tensor.clone() for tensor in converter(replay_batch())]
    other = replay_batch()
    setattr(other, field, np.zeros(shape, getattr(other, field).dtype))
    with pytest.raises(SchemaMismatchError, match=f"the batch's {field} has shape"):
        converter(other)
    assert all(
        torch.equal(old, new) for old, new in zip(before, converter(replay_batch()), strict=True)
    )
