"""V-RACER with remember-and-forget experience replay as a Lightning module."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from storage.randomness import derive_seed
from storage.spaces import flatten_space
from training.actor import GaussianActor
from training.agent import ReplayAgent
from training.batch_kernels import any_truncated
from training.device import HOST, HostReader
from training.engines.adam import make_adam
from training.engines.engine_making import make_engine
from training.metrics import effective_fraction, quantiles
from training.network import VRacerNetwork
from training.policy import GaussianPolicy
from training.refer import annealed, beta_rate, far_bound, next_beta
from training.sampling_metrics import sampling_metrics
from training.scaling import ObservationScaling, RewardScaling, flat_rows
from training.stage import ScheduleTensors
from training.tensor_batch import BatchConverter
from training.vracer_gradient import VRacerGradient
from training.vracer_stage import VRACER_SCHEDULE, VRacerStage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage import EnvironmentSpec
    from storage.replay import Batch, RefreshChunk, ReplayView
    from storage.spaces import Leaf
    from training.config import RunConfig
    from training.stage import Feedback
    from training.tensor_batch import TensorBatch

__all__ = ["VRacer"]

_FED_BACK = ("importance_ratio", "value", "divergence")
"""Names of the feedback that the replay view stores."""
_PRIORITY = "priority_error"
"""What it makes priorities of, where steps are drawn by them."""


@dataclass(slots=True)
class _Newest:
    """What every update replaces; apart, because setting attributes of a module is slow."""

    beta: float
    engine: str | None = None
    """Name of the engine that has run updates; None before the first."""
    acting_update: int = 0
    """Updates that the weights copied for acting have seen."""
    batch: TensorBatch | None = None
    feedback: Feedback = field(default_factory=dict)
    learnt: dict[str, NDArray[np.float32]] = field(default_factory=dict)


class VRacer(ReplayAgent):
    """V-RACER (ReF-ER, section 4; order of one iteration: reference implementation).

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; every action must be continuous.

    Raises:
        ConfigError: an action space that is not a box.
    """

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

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        super().__init__(config, spec)
        settings = config.agent
        leaves = flatten_space(spec.observation_space, "observation")
        observation_size = _size(leaves)
        action_size = _size(flatten_space(spec.action_space, "action"))
        self.network = VRacerNetwork(
            observation_size,
            action_size,
            hidden=settings.hidden,
            residual=settings.residual,
            state_dependent_stdev=settings.state_dependent_stdev,
            initial_stdev=settings.initial_stdev,
            generator=_generator(config.seed),
        )
        self.observation_scaling = ObservationScaling(observation_size)
        self.reward_scaling = RewardScaling()
        self.actor = GaussianActor(self.network, self.observation_scaling, seed=config.seed)
        self.policy = GaussianPolicy(self.actor, spec)
        self._newest = _Newest(settings.refer.beta_start)
        prioritized = config.replay.prioritized
        self._read = HostReader((*_FED_BACK, _PRIORITY) if prioritized else _FED_BACK)
        self._away = False  # whether the weights lie on a device, where acting cannot read them

    @property
    def beta(self) -> float:
        """Weight of the improvement in ReF-ER's blend."""
        return self._newest.beta

    @property
    def engine_name(self) -> str:
        """Name of the engine that runs updates, once bound."""
        return self._engine.name

    @property
    def acting_update(self) -> int:
        """How many updates the acting weights have seen; from a GPU they come at intervals."""
        return self._newest.acting_update if self._away else self.counters.updates

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam over all parameters; its rate comes from the schedule."""
        return make_adam(self.network.parameters(), learning_rate=self.config.agent.learning_rate)

    def bind(self, optimizer: torch.optim.Optimizer) -> None:
        """Prepares the update engine on the optimizer's present state."""
        settings = self.config.agent
        refer, discount, clip = settings.refer, settings.discount, settings.gradient_clip
        self._engine = make_engine(
            VRacerStage(self.network, refer, discount),
            dict(self.network.named_parameters()),
            optimizer,
            wish=settings.engine,
            recorded=self._newest.engine,
            updates=self.planned_updates,
            max_gradient_norm=math.inf if clip is None else clip,
            closed_form=partial(VRacerGradient, self.network, refer, discount),
        )
        self._away = self.device.type != HOST.type
        self._convert = BatchConverter(
            self.observation_scaling, self.network.action_size, self.device
        )
        self._schedule = ScheduleTensors(*VRACER_SCHEDULE, device=self.device)
        self._schedule.set(reward_scale=self.reward_scaling.value)
        self._copy_weights()

    def start_learning(self, view: ReplayView) -> None:
        """Sets the scales from the whole window, then V, rho and the targets of every step."""
        settings = self.config.agent
        statistics = view.statistics()
        if settings.scale_observations:
            self.observation_scaling.start(statistics)
        if settings.scale_rewards:
            self.reward_scaling.start(statistics)
        self._adopt_reward_scale(view)
        view.refresh(self._evaluate, far_bound(settings.refer, self.counters.updates))

    def update(self, view: ReplayView) -> None:
        """One gradient step with its feed-back, in the order of the reference's iteration."""
        settings, done, newest = self.config.agent, self.counters.updates, self._newest
        refer = settings.refer
        bound = far_bound(refer, done)
        rate = annealed(settings.learning_rate, refer.annealing, done)
        batch = view.sample(settings.batch_size)
        self._refresh_truncated(view, batch)
        self._schedule.set(learning_rate=rate, beta=newest.beta, far_bound=bound)
        newest.batch = self._convert(batch)
        newest.feedback = self._engine.update(newest.batch, self._schedule)
        newest.engine = self._engine.name
        newest.learnt = self._read(newest.feedback)
        view.feed_back(batch, **newest.learnt, far_bound=bound)
        newest.beta = next_beta(
            refer,
            newest.beta,
            rate=beta_rate(
                refer,
                batch_size=settings.batch_size,
                window=view.window,
                stored=view.n_steps,
                learning_rate=rate,
            ),
            far_fraction=view.far_fraction,
        )
        view.forget()
        if self._away and (done + 1) % settings.acting_interval == 0:
            self._copy_weights(done + 1)
        if (done + 1) % settings.scaling_interval == 0:
            self._move_scales(view, bound)

    def measure(self, view: ReplayView) -> dict[str, float]:
        """Numbers of the newest update, and of its draw where that was prioritized."""
        newest, done = self._newest, self.counters.updates
        if newest.batch is None:
            return {}
        refer = self.config.agent.refer
        ratio = newest.learnt["importance_ratio"]
        return {
            "loss": float(newest.feedback["loss"]),
            "gradient_norm": float(newest.feedback["gradient_norm"]),
            "divergence": float(newest.learnt["divergence"].mean()),
            "value": float(newest.learnt["value"].mean()),
            "stdev": self._mean_stdev(newest.batch),
            **quantiles("importance_ratio", ratio),
            "effective_sample_fraction": effective_fraction(ratio),
            "far_bound": far_bound(refer, done),
            "learning_rate": annealed(self.config.agent.learning_rate, refer.annealing, done),
            "reward_scale": self.reward_scaling.value,
            **self._measured_draw(view, newest.batch),
        }

    def _measured_draw(self, view: ReplayView, batch: TensorBatch) -> dict[str, float]:
        """Numbers of a prioritized draw; none of a uniform one."""
        if not self.config.replay.prioritized:
            return {}
        weights, errors = batch.sampling_weight.cpu().numpy(), self._newest.learnt[_PRIORITY]
        return sampling_metrics(self.priorities, view.draws, weights, errors)

    def learning_state(self) -> dict[str, Any]:
        """State besides parameters, buffers and optimizer."""
        return {"beta": self._newest.beta, "engine": self._newest.engine or ""}

    def load_learning_state(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`learning_state` gave."""
        self._newest = _Newest(state["beta"], state["engine"] or None)

    def _copy_weights(self, update: int | None = None) -> None:
        """Take hold of the present weights for acting; from a device they are copied."""
        self.actor.bind()
        self._newest.acting_update = self.counters.updates if update is None else update

    def _evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """V and rho of stored rows under the present policy."""
        rows = chunk.rows
        return self.actor.evaluate(
            flat_rows(rows.observation), rows.raw_action, rows.behaviour, rows.behaviour_kind
        )

    def _refresh_truncated(self, view: ReplayView, batch: Batch) -> None:
        """V(s_T) of the batch's truncated last steps, by the network as it is now."""
        if any_truncated(batch.truncated, batch.terminated):
            where = np.flatnonzero(batch.truncated & ~batch.terminated)
            segment, row = batch.segment[where], batch.row[where] + 1
            final = view.observe(segment, row)
            view.refresh_bootstrap(batch, where, self.actor.values(flat_rows(final)))

    def _move_scales(self, view: ReplayView, bound: float) -> None:
        settings = self.config.agent
        statistics = view.statistics()
        if settings.scale_observations:
            self.observation_scaling.move(statistics)
        if settings.scale_rewards:
            self.reward_scaling.move(statistics)
        self._adopt_reward_scale(view)
        view.recount_far(bound)

    def _adopt_reward_scale(self, view: ReplayView) -> None:
        self._schedule.set(reward_scale=self.reward_scaling.value)
        view.set_targets(self.config.agent.discount, self.reward_scaling.value)

    def _mean_stdev(self, batch: TensorBatch) -> float:
        with torch.no_grad():
            return float(self.network(batch.observation).stdev.mean())


def _size(leaves: tuple[Leaf, ...]) -> int:
    return sum(leaf.size for leaf in leaves)


def _generator(seed: int) -> torch.Generator:
    generator = torch.Generator()
    generator.manual_seed(derive_seed(seed, "network initialisation"))
    return generator
