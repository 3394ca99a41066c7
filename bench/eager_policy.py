"""Acting as a plain torch loop does it: the baseline that the actor's kernel is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from storage.layout import BehaviourKind
from training.acting.action_mapping import ActionMapping
from training.acting.policy import PolicyStep

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.environment_spec import EnvironmentSpec
    from training.agents.vracer.network import VRacerNetwork
    from training.scaling import ObservationScaling

__all__ = ["EagerActor", "EagerPolicy"]


class EagerActor:
    """Scales, runs the network's modules and draws, one torch call after the other."""

    def __init__(self, network: VRacerNetwork, scaling: ObservationScaling, *, seed: int) -> None:
        self._network = network
        self._scaling = scaling
        self._draw = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def act(
        self, observation: NDArray[np.float64], *, greedy: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
        """Raw action (A,), behaviour (2 A,) and V at one raw observation, float64 (O,)."""
        mean_stdev = self._scaling.statistics
        scaled = (torch.from_numpy(observation) - mean_stdev[0]) / mean_stdev[1]
        value, mean, stdev = self._network(scaled.float()[None])
        mean, stdev = mean[0], stdev.reshape(-1)
        raw = mean
        if not greedy:
            raw = mean + stdev * torch.randn(mean.shape, generator=self._draw)
        return raw.numpy(), torch.cat([mean, stdev]).numpy(), value.item()


class EagerPolicy:
    """Acts with an `EagerActor` in an environment of flat observations (a `training.Policy`).

    Its noise depends on how often it acted, unlike a policy's of the product: a run with it cannot
    be resumed bit for bit.
    """

    def __init__(self, actor: EagerActor, spec: EnvironmentSpec) -> None:
        self._actor = actor
        self._mapping = ActionMapping(spec.action_space)

    def begin(self, lane: int, steps: int) -> None:
        """Nothing of this policy is tied to an episode."""

    def act(
        self, lane: int, step_index: int, observation: Any, *, greedy: bool = False
    ) -> PolicyStep:
        """Draws an action, or takes the mean if ``greedy``."""
        raw, behaviour, value = self._actor.act(observation, greedy=greedy)
        action = self._mapping.to_action(raw)
        return PolicyStep(action, raw, behaviour, int(BehaviourKind.GAUSSIAN), value)

    def value(self, observation: Any) -> float:
        """V(s) of one raw observation."""
        return self._actor.act(observation, greedy=True)[2]
