from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.cheetah import ACTIONS, OBSERVATIONS, spec
from bench.eager_policy import EagerActor, EagerPolicy
from training.acting.actor import GaussianActor
from training.acting.policy import GaussianPolicy
from training.agents.vracer.network import VRacerNetwork
from training.scaling import ObservationScaling


@pytest.fixture
def parts() -> tuple[VRacerNetwork, ObservationScaling]:
    draw = torch.Generator().manual_seed(3)
    network = VRacerNetwork(OBSERVATIONS, ACTIONS, hidden=(16, 16), generator=draw)
    scaling = ObservationScaling(OBSERVATIONS)
    scaling.statistics[0] = 0.5
    scaling.statistics[1] = 2.0
    return network, scaling


def test_it_is_the_same_policy_as_the_kernel_s(
    parts: tuple[VRacerNetwork, ObservationScaling],
) -> None:
    eager = EagerPolicy(EagerActor(*parts, seed=0), spec())
    kernel = GaussianPolicy(GaussianActor(*parts, seed=0), spec())
    observation = np.random.default_rng(0).normal(size=OBSERVATIONS)
    ours, theirs = (each.act(0, 1, observation, greedy=True) for each in (eager, kernel))
    np.testing.assert_allclose(ours.action, theirs.action, atol=1e-6)
    assert ours.raw_action is not None
    np.testing.assert_allclose(ours.raw_action, theirs.raw_action, atol=1e-6)
    np.testing.assert_allclose(ours.behaviour, theirs.behaviour, atol=1e-6)
    assert ours.value == pytest.approx(theirs.value, abs=1e-6)
    assert ours.behaviour_kind == theirs.behaviour_kind
    assert ours.action.dtype == theirs.action.dtype
    assert eager.value(observation) == pytest.approx(kernel.value(observation), abs=1e-6)


def test_its_draws_spread_as_its_behaviour_says(
    parts: tuple[VRacerNetwork, ObservationScaling],
) -> None:
    actor = EagerActor(*parts, seed=0)
    observation = np.zeros(OBSERVATIONS)
    draws = np.array([actor.act(observation)[0] for _ in range(2000)])
    behaviour = actor.act(observation)[1]
    np.testing.assert_allclose(draws.mean(0), behaviour[:ACTIONS], atol=0.04)
    np.testing.assert_allclose(draws.std(0), behaviour[ACTIONS:], rtol=0.06)
