"""NAF's network: state value, quadratic advantage and the policy's mean in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from storage.errors import ConfigError
from training.acting.actor import PolicyLayout
from training.agents.naf.advantage import DIAGONALS
from training.gaussian import raw_from_stdev, stdev_from_raw
from training.network import Mlp, output_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from training.agents.naf.advantage import Diagonal
    from training.network import Activation, Initialisation

__all__ = ["NafNetwork", "NafOutput"]


class NafOutput(NamedTuple):
    """What NAF's network says about a batch of states."""

    value: Tensor
    """V(s), shape (batch,)."""
    lower: Tensor
    """L, lower triangular with a positive diagonal, shape (batch, action, action)."""
    mean: Tensor
    """Mean of the raw action, shape (batch, action)."""
    stdev: Tensor
    """Standard deviation of the noise around it, shape (action,); constant."""


class NafNetwork(nn.Module):
    """State value, factor L of the advantage's matrix, and mean of NAF in one network.

    Inputs are standardised observations, float32, shape (batch, observation_size). The outputs are
    V, the lower triangle of L row by row, then the mean, which ``bounded_mean`` takes through tanh.
    ``stdev`` is the noise that the policy acts with; it is a setting, no parameter.

    Raises:
        ConfigError: a size is below one, or ``stdev`` is not positive.

    """

    strict_places: Tensor
    strict: Tensor
    diagonal_places: Tensor
    raw_stdev: Tensor

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        hidden: Sequence[int] = (128, 128),
        residual: bool = True,
        activation: Activation = "softsign",
        initialisation: Initialisation = "glorot",
        output_bound: float | None = None,
        diagonal: Diagonal = "smooth",
        bounded_mean: bool = False,
        stdev: float = 0.2,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if action_size < 1:
            raise ConfigError(f"a policy needs at least one action dimension, not {action_size}")
        if not stdev > 0:
            raise ConfigError(f"stdev = {stdev} must be positive")
        self.observation_size = observation_size
        self.action_size = action_size
        self.diagonal = diagonal
        self.bounded_mean = bounded_mean
        self.body = Mlp(
            observation_size,
            hidden,
            residual=residual,
            activation=activation,
            initialisation=initialisation,
            generator=generator,
        )
        self._mean_at = 1 + action_size * (action_size + 1) // 2
        outputs = self._mean_at + action_size
        self.head = output_layer(hidden[-1], outputs, generator, bound=output_bound)
        self._keep_constants(stdev)

    def forward(self, observation: Tensor) -> NafOutput:
        """Value, factor of the advantage, mean and deviation at (batch, observation_size)."""
        outputs = self.head(self.body(observation))
        mean = outputs[:, self._mean_at :]
        return NafOutput(
            outputs[:, 0],
            self._lower(outputs[:, 1 : self._mean_at]),
            torch.tanh(mean) if self.bounded_mean else mean,
            stdev_from_raw(self.raw_stdev),
        )

    def values(self, observation: Tensor) -> Tensor:
        """V alone at (batch, observation_size)."""
        outputs: Tensor = self.head(self.body(observation))
        return outputs[:, 0]

    @property
    def policy_layout(self) -> PolicyLayout:
        """Only the mean: acting needs no V, and no value target of the replay view holds one."""
        return PolicyLayout(-1, self._mean_at, -1, bounded=self.bounded_mean)

    @property
    def shared_raw_stdev(self) -> Tensor:
        """Raw standard deviation of all states, (A,)."""
        return self.raw_stdev

    def _lower(self, triangle: Tensor) -> Tensor:
        """L (batch, A, A) of its rows' numbers up to the diagonal, (batch, A (A + 1) / 2)."""
        diagonal = DIAGONALS[self.diagonal](triangle[:, self.diagonal_places])
        return triangle[:, self.strict_places] * self.strict + torch.diag_embed(diagonal)

    def _keep_constants(self, stdev: float) -> None:
        """Places in the triangle, and the noise: on the device of the weights, in no checkpoint."""
        size = self.action_size
        row, column = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        strict = column < row
        places = row * (row + 1) // 2 + column
        constants = {
            "strict_places": torch.where(strict, places, 0),
            "strict": strict.float(),
            "diagonal_places": places.diagonal().clone(),
            "raw_stdev": torch.full((size,), raw_from_stdev(stdev)),
        }
        for name, tensor in constants.items():
            self.register_buffer(name, tensor, persistent=False)
