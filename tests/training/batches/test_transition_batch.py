from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from storage.errors import SchemaMismatchError
from training.batches.transition_batch import TRANSITION_FIELDS, TransitionConverter, as_gaussian
from training.scaling import ObservationScaling


def replay_batch(size=5, kinds=None):
    rng = np.random.default_rng(size)
    mean, stdev = rng.normal(size=(size, 2)), rng.uniform(0.1, 1.0, size=(size, 2))
    return SimpleNamespace(
        segment=np.full(size, 4),
        row=np.arange(size) + 10,
        observation=rng.normal(size=(size, 3)),
        next_observation=rng.normal(size=(size, 3)),
        raw_action=rng.normal(size=(size, 2)).astype(np.float32),
        reward=rng.normal(size=size),
        terminated=np.arange(size) % 2 == 1,
        behaviour=np.concatenate([mean, stdev], axis=1).astype(np.float32),
        behaviour_kind=np.ones(size, np.uint8) if kinds is None else np.array(kinds, np.uint8),
        sampling_weight=rng.uniform(size=size).astype(np.float32),
    )


def scaling():
    made = ObservationScaling(3)
    made.mean[:] = 1.0
    made.stdev[:] = torch.tensor([0.5, 2.0, 4.0])
    return made


def test_tensors_hold_the_transitions():
    batch = replay_batch()
    tensors = TransitionConverter(scaling(), 2)(batch)
    expected = scaling()
    np.testing.assert_array_equal(tensors.observation, expected.scale(batch.observation))
    np.testing.assert_array_equal(tensors.next_observation, expected.scale(batch.next_observation))
    np.testing.assert_array_equal(tensors.raw_action, batch.raw_action)
    np.testing.assert_array_equal(tensors.reward, batch.reward.astype(np.float32))
    np.testing.assert_array_equal(tensors.continuing, [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(tensors.behaviour_mean, batch.behaviour[:, :2])
    np.testing.assert_array_equal(tensors.behaviour_stdev, batch.behaviour[:, 2:])
    np.testing.assert_array_equal(tensors.sampling_weight, batch.sampling_weight)
    density = torch.distributions.Normal(tensors.behaviour_mean, tensors.behaviour_stdev)
    expected = density.log_prob(tensors.raw_action).sum(-1)
    assert torch.allclose(tensors.behaviour_log_density, expected, rtol=1e-5)
    assert all(tensor.dtype == torch.float32 for tensor in tensors)
    assert set(TRANSITION_FIELDS) <= set(vars(batch))


def test_memory_is_reused_while_the_size_stays():
    converter = TransitionConverter(scaling(), 2)
    addresses = [tensor.data_ptr() for tensor in converter(replay_batch())]
    assert len(set(addresses)) == 9
    again = replay_batch()
    again.next_observation[:] = 1.0
    tensors = converter(again)
    assert [tensor.data_ptr() for tensor in tensors] == addresses
    assert not tensors.next_observation.any()
    assert converter(replay_batch(7)).next_observation.shape == (7, 3)


def test_nominal_behaviour_is_refused_with_its_reason_unless_it_is_asked_for():
    batch = replay_batch(3, [1, 4, 3])
    message = r"segment 4, row 11.*correlated along its episode.*agent\.noise: gaussian"
    with pytest.raises(SchemaMismatchError, match=message):
        TransitionConverter(scaling(), 2)(batch)
    tensors = TransitionConverter(scaling(), 2, nominal=True)(batch)
    np.testing.assert_array_equal(tensors.behaviour_mean[1], batch.behaviour[1, :2])
    density = torch.distributions.Normal(tensors.behaviour_mean[1], tensors.behaviour_stdev[1])
    expected = density.log_prob(tensors.raw_action[1]).sum()
    assert tensors.behaviour_log_density[1].item() == pytest.approx(expected.item(), rel=1e-5)
    assert tensors.behaviour_log_density[2].item() == pytest.approx(-2 * math.log(2))
    assert batch.behaviour_kind.tolist() == [1, 4, 3]


@pytest.mark.parametrize("kind", [0, 2])
def test_other_behaviours_without_a_density_are_refused_in_any_case(kind):
    for nominal in (False, True):
        with pytest.raises(SchemaMismatchError, match=f"row 12.* kind {kind}"):
            TransitionConverter(scaling(), 2, nominal=nominal)(
                replay_batch(3, [1, 4 if nominal else 1, kind])
            )


def test_only_nominal_kinds_are_taken_for_others():
    assert as_gaussian(np.array([0, 1, 2, 3, 4], np.uint8)).tolist() == [0, 1, 2, 3, 1]
