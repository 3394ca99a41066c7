"""DDPG's networks: the actor's mean, the critic's action value, and the targets of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from storage.errors import ConfigError
from training.acting.actor import PolicyLayout
from training.engines.following import frozen_copy
from training.gaussian import raw_from_stdev
from training.network import Mlp, output_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from training.agents.ddpg.config import DdpgConfig
    from training.network import Activation, Initialisation

__all__ = ["DdpgActor", "DdpgCritic", "DdpgNetworks"]


class DdpgActor(nn.Module):
    """Mean of a Gaussian policy of fixed deviation (a `training.acting.actor.PolicyNetwork`).

    Inputs are standardised observations, float32, (batch, observation_size); the mean, (batch,
    action_size), is that of the raw action.

    Raises:
        ConfigError: a size is below one, or the deviation is not positive.
    """

    stdev: Tensor
    """Standard deviation of the raw action, (action_size,): a setting, and in no checkpoint."""

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        hidden: Sequence[int] = (128, 128),
        stdev: float = 0.2,
        bounded_mean: bool = False,
        residual: bool = True,
        activation: Activation = "softsign",
        initialisation: Initialisation = "glorot",
        output_bound: float | None = None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if action_size < 1:
            raise ConfigError(f"a policy needs at least one action dimension, not {action_size}")
        if not stdev > 0:
            raise ConfigError(f"stdev = {stdev} must be positive")
        self.observation_size = observation_size
        self.action_size = action_size
        self.bounded_mean = bounded_mean
        self._raw_stdev = raw_from_stdev(stdev)
        self.body = Mlp(
            observation_size,
            hidden,
            residual=residual,
            activation=activation,
            initialisation=initialisation,
            generator=generator,
        )
        self.head = output_layer(hidden[-1], action_size, generator, bound=output_bound)
        self.register_buffer("stdev", torch.full((action_size,), stdev), persistent=False)

    def forward(self, observation: Tensor) -> Tensor:
        """Mean of the raw action, (batch, action_size)."""
        mean: Tensor = self.head(self.body(observation))
        return torch.tanh(mean) if self.bounded_mean else mean

    @property
    def policy_layout(self) -> PolicyLayout:
        """The mean alone."""
        return PolicyLayout(-1, 0, -1, bounded=self.bounded_mean)

    @property
    def shared_raw_stdev(self) -> Tensor:
        """Raw standard deviation of all states, (A,)."""
        return torch.full_like(self.stdev, self._raw_stdev)


class DdpgCritic(nn.Module):
    """Value of raw actions at standardised observations, Q(s, a).

    The action joins after ``action_layer`` hidden layers: at 0 it is an input like the observation.
    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        hidden: Sequence[int] = (128, 128),
        action_layer: int = 0,
        residual: bool = True,
        activation: Activation = "softsign",
        initialisation: Initialisation = "glorot",
        output_bound: float | None = None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = [observation_size, *hidden]
        before, after = hidden[:action_layer], hidden[action_layer:]
        self.before: Mlp | None = None
        if before:
            self.before = Mlp(
                observation_size,
                before,
                residual=residual,
                activation=activation,
                initialisation=initialisation,
                generator=generator,
            )
        self.after = Mlp(
            widths[action_layer] + action_size,
            after,
            residual=residual,
            activation=activation,
            initialisation=initialisation,
            generator=generator,
        )
        self.head = output_layer(hidden[-1], 1, generator, bound=output_bound)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Q(s, a), (batch,), of (batch, observation_size) and (batch, action_size)."""
        hidden = observation if self.before is None else self.before(observation)
        value: Tensor = self.head(self.after(torch.cat([hidden, action], 1)))
        return value.squeeze(1)


class DdpgNetworks(nn.Module):
    """Actor and critic, with frozen copies of both that follow them.

    Both draw their initial weights from ``generator``, the actor first.
    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        settings: DdpgConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        sizes = observation_size, action_size
        self.actor = DdpgActor(
            *sizes,
            hidden=settings.hidden,
            stdev=settings.stdev,
            bounded_mean=settings.bounded_mean,
            residual=settings.residual,
            activation=settings.activation,
            initialisation=settings.initialisation,
            output_bound=settings.output_bound,
            generator=generator,
        )
        self.critic = DdpgCritic(
            *sizes,
            hidden=settings.hidden,
            action_layer=settings.critic_action_layer,
            residual=settings.residual,
            activation=settings.activation,
            initialisation=settings.initialisation,
            output_bound=settings.output_bound,
            generator=generator,
        )
        self.target_actor = cast("DdpgActor", frozen_copy(self.actor))
        self.target_critic = cast("DdpgCritic", frozen_copy(self.critic))

    def parameters_of(self, *names: str) -> dict[str, Tensor]:
        """Parameters of some of the networks, named as this module names them."""
        return {
            f"{name}.{part}": tensor
            for name in names
            for part, tensor in self.get_submodule(name).named_parameters()
        }

    @property
    def following(self) -> list[tuple[nn.Module, nn.Module]]:
        """The networks with their targets."""
        return [(self.actor, self.target_actor), (self.critic, self.target_critic)]
