"""V-RACER with remember-and-forget experience replay as a Lightning module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from storage.spaces import space_size
from training.acting.actor import GaussianActor
from training.acting.policy import GaussianPolicy
from training.agents.vracer.config import VRacerConfig
from training.agents.vracer.gradient import VRacerGradient
from training.agents.vracer.network import VRacerNetwork
from training.agents.vracer.stage import VRacerStage
from training.batches.batch_kernels import any_truncated
from training.batches.row_converter import check_densities
from training.batches.tensor_batch import BatchConverter
from training.engines.adam import make_adam
from training.engines.engine_making import make_engine
from training.learner import Learner, network_generator
from training.scaling import flat_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage import EnvironmentSpec
    from storage.replay import Batch, RefreshChunk, ReplayView
    from training.batches.tensor_batch import TensorBatch
    from training.config import RunConfig
    from training.engines.engine import Engine

__all__ = ["VRacer"]


class VRacer(Learner):
    """V-RACER (ReF-ER, section 4; order of one iteration: reference implementation).

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; every action must be continuous.

    Raises:
        ConfigError: an action space that is not a box.
    """

    settings = VRacerConfig
    fields = (
        "observation",
        "raw_action",
        "reward",
        "terminated",
        "truncated",
        "behaviour",
        "behaviour_kind",
        "next_value_target",
    )
    fed_back = ("importance_ratio", "value", "divergence")

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        size = space_size(spec.observation_space, "observation")
        super().__init__(config, spec, size)
        settings = cast("VRacerConfig", config.agent)
        self.network = VRacerNetwork(
            size,
            space_size(spec.action_space, "action"),
            hidden=settings.hidden,
            residual=settings.residual,
            state_dependent_stdev=settings.state_dependent_stdev,
            initial_stdev=settings.initial_stdev,
            generator=network_generator(config.seed),
        )
        self.actor = GaussianActor(self.network, self.observation_scaling, seed=config.seed)
        self.policy = GaussianPolicy(self.actor, spec)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam over all parameters; its rate comes from the schedule."""
        return make_adam(self.network.parameters(), learning_rate=self.config.agent.learning_rate)

    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """The engine for the one stage of V-RACER."""
        settings = self.config.agent
        refer, discount = settings.refer, settings.discount
        return make_engine(
            VRacerStage(self.network, refer, discount),
            dict(self.network.named_parameters()),
            optimizer,
            wish=settings.engine,
            recorded=recorded,
            updates=self.planned_updates,
            max_gradient_norm=settings.max_gradient_norm,
            closed_form=partial(VRacerGradient, self.network, refer, discount),
        )

    def make_converter(self) -> BatchConverter:
        """Batches with stored value targets and the behaviour's density."""
        return BatchConverter(self.observation_scaling, self.network.action_size, self.device)

    def bind_actor(self) -> None:
        """Takes hold of the present weights for acting; from a device they are copied."""
        self.actor.bind()

    def evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """V and rho of stored rows under the present policy.

        Raises:
            SchemaMismatchError: a step's behaviour has no density.
        """
        rows = chunk.rows
        values, ratios = self.actor.evaluate(
            flat_rows(rows.observation), rows.raw_action, rows.behaviour, rows.behaviour_kind
        )
        check_densities(chunk, ratios)
        return values, ratios

    def refresh_batch(self, view: ReplayView, batch: Batch) -> None:
        """V(s_T) of the batch's truncated last steps, by the network as it is now."""
        if any_truncated(batch.truncated, batch.terminated):
            where = np.flatnonzero(batch.truncated & ~batch.terminated)
            segment, row = batch.segment[where], batch.row[where] + 1
            final = view.observe(segment, row)
            view.refresh_bootstrap(batch, where, self.actor.values(flat_rows(final)))

    def measure_batch(self, batch: TensorBatch) -> dict[str, float]:
        """The policy's mean standard deviation."""
        with torch.no_grad():
            return {"stdev": float(self.network(batch.observation).stdev.mean())}
