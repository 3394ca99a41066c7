"""V-RACER's network: state value and Gaussian policy in one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from storage.errors import ConfigError
from training.acting.actor import PolicyLayout
from training.gaussian import raw_from_stdev, stdev_from_raw
from training.network import Mlp, output_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["INITIAL_STDEV", "VRacerNetwork", "VRacerOutput"]

INITIAL_STDEV = math.sqrt(0.2)
"""V-RACER's standard deviation before learning, in units of the raw action (Sigma = 0.2 I)."""


class VRacerOutput(NamedTuple):
    """What V-RACER's network says about a batch of states."""

    value: Tensor
    """V(s), shape (batch,)."""
    mean: Tensor
    """Mean of the raw action, shape (batch, action)."""
    stdev: Tensor
    """Standard deviation, shape (action,), or (batch, action) where it depends on the state."""


class VRacerNetwork(nn.Module):
    """State value and Gaussian policy of V-RACER in one network.

    Inputs are standardised observations, float32, shape (batch, observation_size). The standard
    deviation is one free vector shared by all states, as in the authors' code; with
    ``state_dependent_stdev`` it is an output of the network, as in the paper's text.

    Raises:
        ConfigError: a size is below one, or ``initial_stdev`` is not positive.

    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        hidden: Sequence[int] = (128, 128),
        residual: bool = True,
        state_dependent_stdev: bool = False,
        initial_stdev: float = INITIAL_STDEV,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if action_size < 1:
            raise ConfigError(f"a policy needs at least one action dimension, not {action_size}")
        if not initial_stdev > 0:
            raise ConfigError(f"initial_stdev = {initial_stdev} must be positive")
        self.observation_size = observation_size
        self.action_size = action_size
        self.state_dependent_stdev = state_dependent_stdev
        self.body = Mlp(observation_size, hidden, residual=residual, generator=generator)
        outputs = 1 + action_size * (2 if state_dependent_stdev else 1)
        self.head = output_layer(hidden[-1], outputs, generator)
        self._start_stdev(raw_from_stdev(initial_stdev))

    def forward(self, observation: Tensor) -> VRacerOutput:
        """Value, mean and standard deviation at (batch, observation_size)."""
        outputs = self.head(self.body(observation))
        last = 1 + self.action_size
        raw = outputs[:, last:] if self.state_dependent_stdev else self.raw_stdev
        return VRacerOutput(outputs[:, 0], outputs[:, 1:last], stdev_from_raw(raw))

    @property
    def policy_layout(self) -> PolicyLayout:
        """V first, then the mean, then perhaps the raw standard deviation."""
        last = 1 + self.action_size
        return PolicyLayout(0, 1, last if self.state_dependent_stdev else -1, bounded=False)

    @property
    def shared_raw_stdev(self) -> Tensor | None:
        """Raw standard deviation of all states, (A,)."""
        return None if self.state_dependent_stdev else self.raw_stdev

    def _start_stdev(self, raw: float) -> None:
        if self.state_dependent_stdev:
            with torch.no_grad():
                self.head.bias[1 + self.action_size :] = raw
        else:
            self.raw_stdev = nn.Parameter(torch.full((self.action_size,), raw))
