"""NAF with remember-and-forget experience replay as a Lightning module."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, cast

import torch

from storage.spaces import space_size
from training.actor import GaussianActor
from training.agents.naf.config import NafConfig
from training.agents.naf.gradient import NafGradient
from training.agents.naf.network import NafNetwork
from training.agents.naf.stage import NafStage
from training.engines.adam import make_adam
from training.engines.engine_making import make_engine
from training.engines.following import following, frozen_copy
from training.episode_batches import episode_batches
from training.learner import Learner, network_generator
from training.noise import Noise
from training.policy import GaussianPolicy
from training.row_converter import check_densities
from training.scaling import flat_rows
from training.transition_batch import TRANSITION_FIELDS, TransitionConverter, as_gaussian

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from storage import EnvironmentSpec
    from storage.episode import Episode
    from storage.replay import RefreshChunk
    from training.config import RunConfig
    from training.engines.engine import Engine

__all__ = ["Naf"]


class Naf(Learner):
    """NAF (Gu et al., 2016; ReF-ER, section 4): Q is quadratic around the mean that acts.

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; every action must be continuous.

    Raises:
        UnsupportedSpaceError: an action space with a part that is no box.
    """

    settings = NafConfig
    fields = TRANSITION_FIELDS

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
        self._nominal = settings.noise != "gaussian"
        self.target = cast("NafNetwork", frozen_copy(self.network))
        self.actor = GaussianActor(
            self.network,
            self.observation_scaling,
            seed=config.seed,
            noise=Noise.named(settings.noise, config.loop.lanes),
        )
        self.policy = GaussianPolicy(self.actor, spec)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam over all parameters but the target's; its rate comes from the schedule."""
        return make_adam(self.network.parameters(), learning_rate=self.config.agent.learning_rate)

    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """The engine for the one stage of NAF, whose target follows in the same update."""
        settings = cast("NafConfig", self.config.agent)
        networks = self.network, self.target
        own = settings.refer, settings.discount
        clip, rate = settings.gradient_clip, settings.target_rate
        by_hand = partial(NafGradient, *networks, *own, rate)
        self._stage = NafStage(*networks, *own)
        return make_engine(
            self._stage,
            dict(self.network.named_parameters()),
            optimizer,
            wish=settings.engine,
            recorded=recorded,
            updates=self.planned_updates,
            max_gradient_norm=math.inf if clip is None else clip,
            rule=following([networks], rate),
            closed_form=by_hand if settings.activation == "softsign" else None,
        )

    def make_converter(self) -> TransitionConverter:
        """Batches of whole transitions with the behaviour's density."""
        return TransitionConverter(
            self.observation_scaling,
            self.network.action_size,
            self.device,
            nominal=self._nominal,
        )

    def bind_actor(self) -> None:
        """Takes hold of the present weights for acting; from a device they are copied."""
        self.actor.bind()

    def evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[float32], NDArray[float32]]:
        """Zeros, since no value target is learnt from, and rho of stored rows.

        Raises:
            SchemaMismatchError: a step's behaviour has no density.
        """
        rows = chunk.rows
        kinds = as_gaussian(rows.behaviour_kind) if self._nominal else rows.behaviour_kind
        values, ratios = self.actor.evaluate(
            flat_rows(rows.observation), rows.raw_action, rows.behaviour, kinds
        )
        check_densities(chunk, ratios)
        return values, ratios

    def initial_errors(self, episode: Episode) -> NDArray[float32]:
        """|Q_hat - Q| of each step under the present network and target."""
        parameters = dict(self.network.named_parameters())
        convert = self.make_converter()
        with torch.no_grad():
            errors = [
                self._stage(parameters, convert(batch), self._schedule)[1]["priority_error"].cpu()
                for batch in episode_batches(episode)
            ]
        return torch.cat(errors).numpy()
