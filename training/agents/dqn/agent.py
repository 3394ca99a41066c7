"""DQN on a replay store, with prioritized replay and the remember-and-forget rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.optim import Adam

from storage.spaces import space_size
from training.agent import OUTSIDE_LANE
from training.agents.dqn.acting import FrameActor, RowActor
from training.agents.dqn.config import DqnConfig
from training.agents.dqn.frames import frame_shape
from training.agents.dqn.network import QNetwork
from training.agents.dqn.policy import DiscretePolicy
from training.agents.dqn.stage import DQN_SCHEDULE, DqnStage
from training.batches.discrete_batch import DISCRETE_FIELDS, DiscreteConverter, check_distributions
from training.batches.discrete_kernels import probability_ratios
from training.engines.adam import AdamRule
from training.engines.centred_rmsprop import CentredRMSprop, CentredRMSpropRule
from training.engines.engine_making import make_engine
from training.engines.following import frozen_copy
from training.learner import Learner, network_generator

if TYPE_CHECKING:
    from gymnasium.spaces import Discrete
    from numpy.typing import NDArray

    from storage import EnvironmentSpec
    from storage.episode import Episode
    from storage.replay import RefreshChunk
    from training.agents.dqn.acting import QActor
    from training.config import RunConfig
    from training.engines.engine import Engine

__all__ = ["Dqn"]


class Dqn(Learner):
    """Deep Q-learning (Mnih et al. 2015), double and dueling where asked for.

    Args:
        config: The run's settings.
        spec: Name and spaces of the environment; its action must be one Discrete.

    Raises:
        ConfigError: convolutions over what are no frames.
        UnsupportedSpaceError: another action space.
    """

    policy: DiscretePolicy
    settings = DqnConfig
    schedule = DQN_SCHEDULE
    fields = DISCRETE_FIELDS
    optional_fields = ("life_lost",)

    def __init__(self, config: RunConfig, spec: EnvironmentSpec) -> None:
        settings = cast("DqnConfig", config.agent)
        settings.check_spaces(spec)
        frames = None if settings.network == "mlp" else frame_shape(spec.observation_space)
        size = space_size(spec.observation_space, "observation") if frames is None else 0
        super().__init__(config, spec, size)
        self._frames = frames is not None
        self._space = cast("Discrete", spec.action_space)
        self.network = QNetwork(
            size if frames is None else frames,
            int(self._space.n),
            hidden=settings.hidden,
            padding=settings.padding,
            activation=settings.activation,
            dueling=settings.dueling,
            generator=network_generator(config.seed),
        )
        self.target = frozen_copy(self.network)
        self.actor: QActor = (
            FrameActor(self.network)
            if self._frames
            else RowActor(self.network, self.observation_scaling)
        )
        self._temperature = settings.temperature if settings.policy == "softmax" else 0.0
        self.policy = DiscretePolicy(
            self.actor, spec, self._exploration, temperature=self._temperature, seed=config.seed
        )
        self._stage = DqnStage(self.network, self.target, settings)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Centred RMSProp or Adam over all parameters; the rate comes from the schedule."""
        settings, parameters = self._settings, self.network.parameters()
        if settings.optimizer == "adam":
            return Adam(parameters, lr=settings.learning_rate, eps=settings.adam_epsilon)
        return CentredRMSprop(
            parameters,
            learning_rate=settings.learning_rate,
            decay=settings.rmsprop_decay,
            epsilon=settings.rmsprop_epsilon,
        )

    def make_engine(self, optimizer: torch.optim.Optimizer, recorded: str | None) -> Engine:
        """The engine for the one stage of DQN."""
        settings = self._settings
        return make_engine(
            self._stage,
            dict(self.network.named_parameters()),
            optimizer,
            wish=settings.engine,
            recorded=recorded,
            updates=self.planned_updates,
            max_gradient_norm=settings.max_gradient_norm,
            rule=AdamRule if settings.optimizer == "adam" else CentredRMSpropRule,
        )

    def make_converter(self) -> DiscreteConverter:
        """Batches of whole transitions with the behaviour's distribution."""
        return DiscreteConverter(
            self.observation_scaling,
            self._space,
            self.device,
            frames=self._frames,
            life_loss_ends=self._settings.life_loss_ends,
        )

    def bind_actor(self) -> None:
        """Takes hold of the present weights for acting; from a device they are copied."""
        self.actor.bind()

    def rates(self, done: int) -> dict[str, float]:
        """The learning rate, and epsilon of the policy that acts next."""
        return super().rates(done) | {"exploration": self._present_exploration}

    def updated(self, done: int) -> None:
        """Copies the network to its target when that is due."""
        if done % self._settings.target_interval == 0:
            with torch.no_grad():
                targets, learnt = self.target.parameters(), self.network.parameters()
                torch._foreach_copy_(list(targets), list(learnt))

    def evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Zeros for V, and rho of stored rows under the policy that acts next."""
        rows, size = chunk.rows, len(chunk)
        epsilon = self._present_exploration
        if self._temperature == 0.0 and epsilon == 1.0:
            values = np.zeros((size, self.network.actions), np.float32)  # they play no role
        else:
            values = self.actor.values(rows.observation)
        actions = np.asarray(rows.action, np.int64) - int(self._space.start)
        ratios = np.empty(size, np.float32)
        probability_ratios(
            values,
            epsilon,
            self._temperature,
            actions,
            rows.behaviour,
            rows.behaviour_kind,
            ratios,
        )
        check_distributions(chunk, ratios)
        return np.zeros(size, np.float32), ratios

    def initial_errors(self, episode: Episode) -> NDArray[np.float32]:
        """|TD error| of each step under the present network and target."""
        parameters = dict(self.network.named_parameters())
        return self.errors_along(
            episode, lambda batch: self._stage.errors(parameters, batch, self._schedule)
        )

    def act(self, observation: Any, *, greedy: bool = True) -> Any:
        """The action for one raw observation, as the environment takes it.

        Args:
            observation: What the environment showed.
            greedy: The action of the largest value; otherwise the policy's draw, of epsilon-greedy
                at ``evaluation_epsilon``, indexed by a counter of this agent's own.
        """
        if greedy:
            return super().act(observation)
        self._draws_outside += 1
        epsilon = self._settings.evaluation_epsilon
        return self.policy.act_by(OUTSIDE_LANE, self._draws_outside, observation, epsilon).action

    def restore(self, checkpoint: dict[str, Any], where: str = "the checkpoint") -> None:
        """Loads a checkpoint's content for acting outside of a run, at the epsilon it had then.

        Raises:
            CheckpointError: its parameters do not fit this agent.
        """
        super().restore(checkpoint, where)
        self.policy.hold(self._present_exploration)

    @property
    def _settings(self) -> DqnConfig:
        return cast("DqnConfig", self.config.agent)

    def _exploration(self, step: int) -> float:
        """Epsilon at an environment step."""
        return self._settings.exploration(step, self.config.loop.warmup)

    @property
    def _present_exploration(self) -> float:
        """Epsilon of the next act; where nobody acts, that of the end."""
        if not self.acting:
            return self._settings.exploration_final
        return self._exploration(self.environment_steps)
