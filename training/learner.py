"""What the agents share besides rounds: one update after another, with ReF-ER's bookkeeping."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from storage.randomness import derive_seed
from training.agent import ReplayAgent
from training.batches.episode_batches import episode_batches
from training.device import HOST, HostReader
from training.metrics import effective_fraction, quantiles
from training.refer import annealed, beta_rate, far_bound, next_beta
from training.sampling_metrics import sampling_metrics
from training.sanity import check_update
from training.scaling import ObservationScaling, RewardScaling
from training.stage import ScheduleTensors

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from storage import EnvironmentSpec
    from storage.episode import Episode
    from storage.replay import Batch, RefreshChunk, ReplayView
    from training.config import RunConfig
    from training.engines.engine import Engine
    from training.stage import Feedback

__all__ = ["Learner", "network_generator"]

_UPDATES_BETWEEN_LOOKS = 100
"""On a device: a look at the loss waits for it."""

_PRIORITY = "priority_error"
"""What the replay view makes priorities of, where steps are drawn by them."""


@dataclass(slots=True)
class _Newest:
    """What every update replaces; apart, because setting attributes of a module is slow."""

    beta: float
    engine: str | None = None
    """Name of the engine that has run updates; None before the first."""
    acting_update: int = 0
    """Updates that the weights copied for acting have seen."""
    batch: Any = None
    feedback: Feedback = field(default_factory=dict)
    learnt: dict[str, NDArray[np.float32]] = field(default_factory=dict)


class Learner(ReplayAgent):
    """Base of the agents that come with Sharpwave: draw, update, feed back, forget.

    Contract for subclasses. ``__init__`` makes the networks as submodules, then the ``policy``.
    They implement :meth:`make_engine`, :meth:`make_converter`, :meth:`bind_actor` and
    :meth:`evaluate`, and name ``schedule`` and ``fed_back``. What their stages read of the
    schedule besides the learning rate, beta, far bound and reward scale is set by :meth:`rates`.
    A stage's feedback holds ``priority_error`` and everything that ``fed_back`` names.
    """

    schedule: ClassVar[tuple[str, ...]] = ("learning_rate", "beta", "far_bound", "reward_scale")
    """Names of the 0-dim tensors that stages read."""
    fed_back: ClassVar[tuple[str, ...]] = ("importance_ratio", "divergence")
    """Names of the feedback that the replay view stores."""

    _engine: Engine
    _convert: Callable[[Batch], Any]
    _schedule: ScheduleTensors

    def __init__(self, config: RunConfig, spec: EnvironmentSpec, observation_size: int) -> None:
        super().__init__(config, spec)
        self.observation_scaling = ObservationScaling(observation_size)
        self.reward_scaling = RewardScaling()
        self._newest = _Newest(config.agent.refer.beta_start)
        prioritized = config.replay.prioritized
        self._read = HostReader((*self.fed_back, _PRIORITY) if prioritized else self.fed_back)
        self._away = False  # whether the weights lie on a device, where acting cannot read them

    @abstractmethod
    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """The engine on the optimizer's present state; ``recorded`` is a checkpoint's."""

    @abstractmethod
    def make_converter(self) -> Callable[[Batch], Any]:
        """What makes tensors of a replay batch, on the device of the weights."""

    @abstractmethod
    def bind_actor(self) -> None:
        """Takes hold of the present weights for acting; from a device they are copied."""

    @abstractmethod
    def evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """V (zeros without a state value) and rho of stored rows, under the present policy."""

    def rates(self, done: int) -> dict[str, float]:
        """Learning rates after so many updates, by their names in the schedule."""
        settings = self.config.agent
        return {
            "learning_rate": annealed(settings.learning_rate, settings.refer.annealing, done),
        }

    def refresh_batch(self, view: ReplayView, batch: Batch) -> None:
        """Whatever the present network must renew in a batch before it is learnt from."""

    def updated(self, done: int) -> None:
        """Called after each update with the number of them, for what is due now and then."""

    def measure_batch(self, batch: Any) -> dict[str, float]:  # noqa: ARG002
        """The agent's own numbers for a metrics row, from the newest batch."""
        return {}

    @property
    def target_discount(self) -> float:
        """Discount of stored value targets: 0 for agents without V, whose sweeps end at once."""
        return self.config.agent.discount if "value" in self.fed_back else 0.0

    @property
    def beta(self) -> float:
        """Weight of the improvement in ReF-ER's blend."""
        return self._newest.beta

    @property
    def scales_observations(self) -> bool:
        """Whether observations are scaled: never those without numbers to scale, as of frames."""
        return self.config.agent.scale_observations and self.observation_scaling.size > 0

    @property
    def engine_name(self) -> str:
        """Name of the engine that runs updates, once bound."""
        return self._engine.name

    @property
    def acting_update(self) -> int:
        """How many updates the acting weights have seen; from a GPU they come at intervals."""
        return self._newest.acting_update if self._away else self.counters.updates

    def bind(self, optimizer: torch.optim.Optimizer) -> None:
        """Prepares the update engine on the optimizer's present state."""
        self._engine = self.make_engine(optimizer, self._newest.engine)
        self._away = self.device.type != HOST.type
        self._convert = self.make_converter()
        self._schedule = ScheduleTensors(*self.schedule, device=self.device)
        self._schedule.set(reward_scale=self.reward_scaling.value)
        self._copy_weights()

    def start_learning(self, view: ReplayView) -> None:
        """Sets the scales from the whole window, then V, rho and the targets of every step."""
        settings = self.config.agent
        if self.scales_observations or settings.scale_rewards:
            statistics = view.statistics()
            if self.scales_observations:
                self.observation_scaling.start(statistics)
            if settings.scale_rewards:
                self.reward_scaling.start(statistics)
        self._adopt_reward_scale(view)
        view.refresh(self.evaluate, far_bound(settings.refer, self.counters.updates))

    def update(self, view: ReplayView) -> None:
        """One gradient step with its feed-back, in the order of the reference's iteration."""
        settings, done, newest = self.config.agent, self.counters.updates, self._newest
        refer = settings.refer
        bound = far_bound(refer, done)
        rates = self.rates(done)
        batch = view.sample(settings.batch_size)
        self.refresh_batch(view, batch)
        self._schedule.set(**rates, beta=newest.beta, far_bound=bound)
        newest.batch = self._convert(batch)
        newest.feedback = self._engine.update(newest.batch, self._schedule)
        newest.engine = self._engine.name
        if not self._away or done % _UPDATES_BETWEEN_LOOKS == 0:
            check_update(newest.feedback, done + 1)
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
                learning_rate=rates["learning_rate"],
            ),
            far_fraction=view.far_fraction,
        )
        view.forget()
        self.updated(done + 1)
        if self._away and (done + 1) % settings.acting_interval == 0:
            self._copy_weights(done + 1)
        if (done + 1) % settings.scaling_interval == 0:
            self._move_scales(view, bound)

    def measure(self, view: ReplayView) -> dict[str, float]:
        """Numbers of the newest update, and of its draw where that was prioritized."""
        newest, done = self._newest, self.counters.updates
        if newest.batch is None:
            return {}
        ratio = newest.learnt["importance_ratio"]
        return {
            "loss": float(newest.feedback["loss"]),
            "gradient_norm": float(newest.feedback["gradient_norm"]),
            "divergence": float(newest.learnt["divergence"].mean()),
            "value": float(newest.feedback["value"].mean()),
            **self.measure_batch(newest.batch),
            **quantiles("importance_ratio", ratio),
            "effective_sample_fraction": effective_fraction(ratio),
            "far_bound": far_bound(self.config.agent.refer, done),
            **self.rates(done),
            "reward_scale": self.reward_scaling.value,
            **self._measured_draw(view),
        }

    def errors_along(
        self, episode: Episode, errors: Callable[[Any], Tensor]
    ) -> NDArray[np.float32]:
        """What ``errors`` gives of each step of an episode, (T,); it is called without gradients.

        Args:
            episode: A committed one, of any length.
            errors: Of a batch as the agent's converter makes it, (batch,).
        """
        convert = self.make_converter()
        with torch.no_grad():
            found = [errors(convert(batch)).cpu() for batch in episode_batches(episode)]
        return torch.cat(found).numpy()

    def learning_state(self) -> dict[str, Any]:
        """State besides parameters, buffers and optimizer."""
        return {"beta": self._newest.beta, "engine": self._newest.engine or ""}

    def load_learning_state(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`learning_state` gave."""
        self._newest = _Newest(state["beta"], state["engine"] or None)

    def _measured_draw(self, view: ReplayView) -> dict[str, float]:
        """Numbers of a prioritized draw; none of a uniform one."""
        if not self.config.replay.prioritized:
            return {}
        weights = self._newest.batch.sampling_weight.cpu().numpy()
        errors = self._newest.learnt[_PRIORITY]
        return sampling_metrics(self.priorities, view.draws, weights, errors)

    def _copy_weights(self, update: int | None = None) -> None:
        self.bind_actor()
        self._newest.acting_update = self.counters.updates if update is None else update

    def _move_scales(self, view: ReplayView, bound: float) -> None:
        settings = self.config.agent
        if self.scales_observations or settings.scale_rewards:
            statistics = view.statistics()
            if self.scales_observations:
                self.observation_scaling.move(statistics)
            if settings.scale_rewards:
                self.reward_scaling.move(statistics)
        self._adopt_reward_scale(view)
        view.recount_far(bound)

    def _adopt_reward_scale(self, view: ReplayView) -> None:
        self._schedule.set(reward_scale=self.reward_scaling.value)
        view.set_targets(self.target_discount, self.reward_scaling.value)


def network_generator(seed: int) -> torch.Generator:
    """The stream that a run's networks are initialised from."""
    generator = torch.Generator()
    generator.manual_seed(derive_seed(seed, "network initialisation"))
    return generator
