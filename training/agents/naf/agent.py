"""NAF with remember-and-forget experience replay as a Lightning module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import torch

from storage.spaces import space_size
from training.agents.naf.config import NafConfig
from training.agents.naf.gradient import NafGradient
from training.agents.naf.network import NafNetwork
from training.agents.naf.stage import NafStage
from training.agents.noisy_learner import NoisyLearner
from training.engines.adam import make_adam
from training.engines.engine_making import make_engine
from training.engines.following import following, frozen_copy
from training.engines.mlp_pass import has_passes
from training.learner import network_generator

if TYPE_CHECKING:
    from torch import Tensor

    from storage import EnvironmentSpec
    from training.batches.transition_batch import TransitionBatch
    from training.config import RunConfig
    from training.engines.engine import Engine

__all__ = ["Naf"]


class Naf(NoisyLearner):
    """NAF (Gu et al., 2016; ReF-ER, section 4): Q is quadratic around the mean that acts.

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; every action must be continuous.

    Raises:
        UnsupportedSpaceError: an action space with a part that is no box.
    """

    settings = NafConfig

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        size = space_size(spec.observation_space, "observation")
        super().__init__(config, spec, size)
        settings = cast("NafConfig", config.agent)
        self.network = NafNetwork(
            size,
            space_size(spec.action_space, "action"),
            hidden=settings.hidden,
            residual=settings.residual,
            activation=settings.activation,
            initialisation=settings.initialisation,
            output_bound=settings.output_bound,
            diagonal=settings.diagonal,
            bounded_mean=settings.bounded_mean,
            stdev=settings.stdev,
            generator=network_generator(config.seed),
        )
        self.target = cast("NafNetwork", frozen_copy(self.network))
        self.act_with(self.network)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam over all parameters but the target's; its rate comes from the schedule."""
        return make_adam(self.network.parameters(), learning_rate=self.config.agent.learning_rate)

    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """The engine for the one stage of NAF, whose target follows in the same update."""
        settings = cast("NafConfig", self.config.agent)
        networks = self.network, self.target
        own = settings.refer, settings.discount
        rate = settings.target_rate
        by_hand = partial(NafGradient, *networks, *own, rate)
        self._stage = NafStage(*networks, *own)
        return make_engine(
            self._stage,
            dict(self.network.named_parameters()),
            optimizer,
            wish=settings.engine,
            recorded=recorded,
            updates=self.planned_updates,
            max_gradient_norm=settings.max_gradient_norm,
            rule=following([networks], rate),
            closed_form=by_hand if has_passes(self.network.body) else None,
        )

    def errors(self, batch: TransitionBatch) -> Tensor:
        """|Q_hat - Q| of each step of a batch, (batch,)."""
        parameters = dict(self.network.named_parameters())
        return self._stage(parameters, batch, self._schedule)[1]["priority_error"]
