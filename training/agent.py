"""What every replay agent shares: rounds on Lightning, counters, checkpoints and metrics."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from lightning.pytorch import LightningModule

from storage.errors import ConfigError, FeedbackError, NonFiniteError
from training.checkpoints.checkpoint_file import AGENT_KEY
from training.checkpoints.checkpoint_fit import (
    check_agent,
    check_loops,
    check_optimizer,
    check_whole,
)
from training.checkpoints.plain_state import as_arrays, as_tensors
from training.config_file import to_mapping
from training.counters import Counters
from training.evaluation import Evaluation
from training.metrics import RecentReturns, rounds_between_rows
from training.placement import check_trainer
from training.progress import Status
from training.sanity import check_parameters_sane

if TYPE_CHECKING:
    import numpy as np
    import torch
    from lightning.pytorch.callbacks import Callback
    from numpy.typing import NDArray

    from storage import EnvironmentSpec, EpisodeRecord
    from storage.episode import Episode
    from storage.replay import ReplayView
    from storage.replay.schemes.priority_settings import PrioritySettings
    from training.acting.policy import Policy
    from training.agent_config import AgentConfig
    from training.config import RunConfig
    from training.experience import Experience

__all__ = ["OUTSIDE_LANE", "ReplayAgent"]


OUTSIDE_LANE = 2**31
"""Lane number of draws outside the run, which no environment lane has."""


class ReplayAgent(LightningModule):
    """Base of the agents that learn from a replay view.

    One ``training_step`` is a round: the experience takes k environment steps and calls
    :meth:`learn` after each. The optimizer is stepped with the round as its closure, so that
    Lightning counts rounds; the engine leaves every gradient None, so that step changes nothing.

    Contract for subclasses. They name ``settings``, the class of their configuration, and
    ``fields``, set ``policy`` in ``__init__`` and implement:
    :meth:`bind`, called when training starts, after every checkpoint was loaded;
    :meth:`start_learning`, called once, when the warm-up has ended and a batch can be drawn;
    :meth:`update`, one gradient step with feed-back, forgetting and schedules;
    :meth:`measure`, numbers for a metrics row; ``learning_state`` and ``load_learning_state`` for
    what is neither a parameter nor a buffer nor the optimizer's.

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment.

    Raises:
        ConfigError: the settings are another agent's.
    """

    settings: ClassVar[type[AgentConfig]]
    """The class of the agent's settings."""
    policy: Policy
    fields: ClassVar[tuple[str, ...]]
    """What :meth:`update` reads of a replay batch; nothing else is gathered."""
    optional_fields: ClassVar[tuple[str, ...]] = ()
    """What it reads besides, where the store has such columns."""

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        super().__init__()
        if not isinstance(config.agent, self.settings):
            raise ConfigError(
                f"{type(self).__name__} takes settings of {self.settings.__name__}, not of "
                f"{type(config.agent).__name__}; make it by training.build(config)"
            )
        self.automatic_optimization = False
        self.config = config
        self.spec = spec
        self.counters = Counters()
        self.recent_returns = RecentReturns()
        self._view: ReplayView | None = None
        self._draws_outside = 0
        self._round_start = 0
        self._began = 0.0

    @abstractmethod
    def bind(self, optimizer: torch.optim.Optimizer) -> None:
        """Prepares the update engine on the optimizer's present state."""

    @abstractmethod
    def start_learning(self, view: ReplayView) -> None:
        """Sets the scales and the first targets of the whole window."""

    @abstractmethod
    def update(self, view: ReplayView) -> None:
        """Runs one gradient step."""

    @abstractmethod
    def measure(self, view: ReplayView) -> dict[str, float]:
        """Numbers of the newest update and of the window, for a metrics row."""

    @abstractmethod
    def learning_state(self) -> dict[str, Any]:
        """State besides parameters, buffers and optimizer: numbers, text, arrays."""

    @abstractmethod
    def load_learning_state(self, state: dict[str, Any]) -> None:
        """Takes back what :meth:`learning_state` gave."""

    @property
    def target_discount(self) -> float:
        """Discount of the value targets that the replay view keeps up to date."""
        return self.config.agent.discount

    def initial_errors(self, episode: Episode) -> NDArray[np.float32] | None:  # noqa: ARG002
        """Errors of the steps of an episode that enters the window, (T,), for their priorities.

        Asked for where ``replay.priorities.initial`` is current_td and the policy gave no values
        while acting. None: there are none, and the largest priority so far takes their place.
        """
        return None

    @property
    @abstractmethod
    def beta(self) -> float:
        """Weight of the improvement in ReF-ER's blend."""

    @property
    @abstractmethod
    def engine_name(self) -> str:
        """Name of the engine that runs updates, once :meth:`bind` was called."""

    @property
    def environment_steps(self) -> int:
        """Environment steps so far, warm-up included; none where a fixed store is learnt from."""
        return self.steps if self.acting else 0

    @property
    def steps(self) -> int:
        """How far the run is in what ``loop.steps`` counts: environment steps, or updates."""
        return self.counters.environment_steps

    @property
    def acting(self) -> bool:
        """Whether the run acts, instead of learning from a fixed store."""
        return self.config.replay.store is None

    @property
    def acting_update(self) -> int:
        """How many updates the weights that act have seen."""
        return self.counters.updates

    @property
    def experience_text(self) -> str:
        """What it has been trained for, such as "1,100 steps" or "64 updates on STORE"."""
        if self.acting:
            return f"{self.environment_steps:,} steps"
        return f"{self.counters.updates:,} updates on {self.config.replay.store}"

    @property
    def checkpoint_name(self) -> str:
        """The file that a run goes on from, for messages."""
        trainer = self._trainer
        return str((trainer and trainer.ckpt_path) or "the checkpoint")

    @property
    def planned_updates(self) -> int:
        """Updates that the present budget makes of the whole run, at least one."""
        loop = self.config.loop
        steps = loop.steps - loop.warmup if self.acting else loop.steps
        return max(int(steps * self._ratio), 1)

    @property
    def priorities(self) -> PrioritySettings:
        """How this run makes priorities: left open, the weights' exponent ends with its updates.

        It is a function of the present budget and the number of the draw. A run that is resumed
        with another budget goes on at the exponent that belongs to that budget, so that a longer
        one draws with a smaller exponent again; ``beta_draws`` given, nothing moves.
        """
        priorities = self.config.replay.priorities
        if priorities.beta_draws is not None:
            return priorities
        return replace(priorities, beta_draws=self.planned_updates)

    @property
    def learning(self) -> bool:
        """Whether the warm-up has ended."""
        return self.counters.origin_steps >= 0

    @property
    def finished(self) -> bool:
        """Whether the budget of steps is spent."""
        return self.steps >= self.config.loop.steps

    def passed(self, rounds: int) -> bool:
        """Whether the newest round came to a multiple of so many whole rounds, or to the end."""
        size = rounds * self.config.loop.round_steps
        return self.finished or self.steps // size > self._round_start // size

    def act(self, observation: Any, *, greedy: bool = True) -> Any:
        """The action for one raw observation, normalised inside, as the environment takes it.

        Args:
            observation: What the environment showed.
            greedy: The mean action; otherwise a draw, indexed by a counter of this agent's own.
        """
        if greedy:
            return self.policy.act(0, 0, observation, greedy=True).action
        self._draws_outside += 1
        return self.policy.act(OUTSIDE_LANE, self._draws_outside, observation).action

    def learn(self, view: ReplayView, steps: int) -> None:
        """Does what ``steps`` of the budget have made due: end the warm-up, or update."""
        self.counters.environment_steps = steps
        if not self.learning:
            self._try_start(view)
            return
        due = self.counters.due()
        for _ in range(due):
            self.update(view)
            self.counters.updates += 1
        if not due:  # where updates are rarer than episodes, the window would grow without end
            view.forget()

    def begin_learning(self, view: ReplayView) -> None:
        """Ends the warm-up: from here on every step owes its updates."""
        self.start_learning(view)
        self.counters.start(self._ratio)

    def episode_ended(self, record: EpisodeRecord) -> None:
        """Counts an episode that was just committed."""
        self.recent_returns.add(record)

    def status(self) -> Status:
        """The state that a progress bar shows."""
        return Status(
            steps=self.steps,
            acting=self.acting,
            budget=self.config.loop.steps,
            updates=self.counters.updates,
            mean_return=self.recent_returns.mean,
            beta=self.beta,
            far_fraction=0.0 if self._view is None else self._view.far_fraction,
        )

    def log_row(self, metrics: dict[str, float]) -> None:
        """Sends a row to every logger, at the present number of steps of the budget."""
        taken = {"environment_steps": self.environment_steps} if self.acting else {}
        for logger in self.loggers:
            logger.log_metrics(taken | metrics, step=self.steps)

    def configure_callbacks(self) -> list[Callback]:
        """Evaluation while training, unless it is switched off."""
        return [Evaluation()] if self.config.evaluation.episodes else []

    def on_train_start(self) -> None:
        """Binds the engine and opens the experience, after every checkpoint was loaded.

        Then callbacks that have an ``on_run_open(trainer, agent)`` are called: whatever writes
        into the run's folder waits for it, because the store is held from then on.

        Raises:
            ConfigError: the trainer uses neither one CPU nor one GPU.
        """
        check_trainer(self.trainer)
        self.bind(cast("torch.optim.Optimizer", self.optimizers(use_pl_optimizer=False)))
        experience: Experience = cast("Any", self.trainer).datamodule
        experience.begin(self)
        self._view = experience.view
        self._adopt_ratio()
        self._began = time.perf_counter() - self.counters.wall_time
        for logger in self.loggers:
            rewind = getattr(logger, "rewind", None)
            if rewind is not None:
                rewind(self.steps)
        self.trainer.should_stop = self.finished
        # Lightning leaves on_train_epoch_start out where a run goes on within an epoch.
        for callback in cast("Any", self.trainer).callbacks:
            opened = getattr(callback, "on_run_open", None)
            if opened is not None:
                opened(self.trainer, self)

    def training_step(self, experience: Experience, _: int) -> None:
        """Plays one round and logs its end; raises `DivergenceError` where weights are lost."""
        self._round_start = self.steps
        optimizer = cast("Any", self.optimizers())
        try:
            optimizer.step(closure=partial(experience.play_round, self))
        except (FeedbackError, NonFiniteError) as error:
            check_parameters_sane(self.parameters(), self.counters.updates, error)
            raise
        self.counters.wall_time = time.perf_counter() - self._began
        if self.passed(self._rounds_between_rows):
            self.log_row(self._row(experience.view))
        if self.finished:
            self.trainer.should_stop = True

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds settings, environment, counters and learning state, as plain values.

        Raises:
            DivergenceError: weights that nothing could go on from; the file stays as it was.
        """
        check_parameters_sane(self.parameters(), self.counters.updates)
        checkpoint[AGENT_KEY] = {
            "config": to_mapping(self.config),
            "environment": self.spec.to_json(),
            "counters": asdict(self.counters),
            "recent_returns": self.recent_returns.state(),
            "learning": as_tensors(self.learning_state()),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes them back, in a trainer with all that is needed to go on.

        Raises:
            CheckpointError: the checkpoint is damaged, no agent's, another agent's, for other
                spaces, or of weights alone.
        """
        if self._trainer is None:
            self._adopt(checkpoint, "the checkpoint")
            return
        where = self.checkpoint_name
        experience = cast("Any", self.trainer).datamodule
        check_whole(checkpoint, type(experience).__qualname__, where)
        self._adopt(checkpoint, where)
        own = cast("torch.optim.Optimizer", self.configure_optimizers())
        check_optimizer(checkpoint["optimizer_states"], own, where)
        check_loops(checkpoint["loops"]["fit_loop"], self.trainer.fit_loop.state_dict(), where)

    def restore(self, checkpoint: dict[str, Any], where: str = "the checkpoint") -> None:
        """Loads a checkpoint's content outside of a Trainer, for acting; ``where`` names it.

        Raises:
            CheckpointError: its parameters do not fit this agent.
        """
        self._adopt(checkpoint, where)
        self.load_state_dict(checkpoint["state_dict"])
        self.eval()

    def _adopt(self, checkpoint: dict[str, Any], where: str) -> None:
        own = self.config.agent.kind, self.spec, self.state_dict()
        kept = check_agent(checkpoint, *own, where)
        self.counters = Counters(**kept["counters"])
        self.recent_returns = RecentReturns.restore(kept["recent_returns"])
        self.load_learning_state(as_arrays(kept["learning"]))

    @property
    def _rounds_between_rows(self) -> int:
        config = self.config
        return rounds_between_rows(config.logging.every_steps, config.loop.round_steps)

    def _try_start(self, view: ReplayView) -> None:
        enough = view.n_steps >= self.config.agent.batch_size
        if enough and self.environment_steps >= self.config.loop.warmup:
            self.begin_learning(view)

    def _adopt_ratio(self) -> None:
        """A ratio changed by the user before resuming holds from here on, without a debt."""
        if self.learning and self._ratio != self.counters.ratio:
            self.counters.start(self._ratio)

    @property
    def _ratio(self) -> float:
        """Updates for each step of the budget."""
        return self.config.loop.updates_per_step if self.acting else 1.0

    def _row(self, view: ReplayView) -> dict[str, float]:
        row: dict[str, float] = {
            "updates": self.counters.updates,
            "wall_time": self.counters.wall_time,
            "episodes": self.recent_returns.count,
            "stored_steps": view.n_steps,
            "far_fraction": view.far_fraction,
            "beta": self.beta,
        }
        if not math.isnan(self.recent_returns.mean):
            row["episode_return"] = self.recent_returns.mean
        if self.counters.updates:
            row |= self.measure(view)
        return row
