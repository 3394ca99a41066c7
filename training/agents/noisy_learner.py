"""What DDPG and NAF share: they act by a mean with fixed noise, and learn from transitions."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from training.acting.actor import GaussianActor
from training.acting.noise import Noise
from training.acting.policy import GaussianPolicy
from training.batches.row_converter import check_densities
from training.batches.transition_batch import TRANSITION_FIELDS, TransitionConverter, as_gaussian
from training.learner import Learner
from training.scaling import flat_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from storage.episode import Episode
    from storage.replay import RefreshChunk
    from training.acting.actor import PolicyNetwork
    from training.agents.noisy_config import NoisyConfig
    from training.batches.transition_batch import TransitionBatch

__all__ = ["NoisyLearner"]


class NoisyLearner(Learner):
    """Base of agents whose policy is a Gaussian of fixed deviation around a learnt mean.

    Contract for subclasses: ``__init__`` makes the networks and calls :meth:`act_with`;
    :meth:`errors` gives the errors that priorities are made of.
    """

    fields = TRANSITION_FIELDS

    def act_with(self, network: PolicyNetwork) -> None:
        """Makes the policy from the network that gives the mean."""
        own, config = cast("NoisyConfig", self.config.agent), self.config
        noise = Noise.named(own.noise, config.loop.lanes)
        self.actor = GaussianActor(network, self.observation_scaling, seed=config.seed, noise=noise)
        self.policy = GaussianPolicy(self.actor, self.spec)
        self._nominal = noise.decay > 0

    @abstractmethod
    def errors(self, batch: TransitionBatch) -> Tensor:
        """|Q_target - Q| of each step of a batch, (batch,); called without gradients."""

    def make_converter(self) -> TransitionConverter:
        """Batches of whole transitions with the behaviour's density."""
        return TransitionConverter(
            self.observation_scaling, self.actor.action_size, self.device, nominal=self._nominal
        )

    def bind_actor(self) -> None:
        """Takes hold of the present weights for acting; from a device they are copied."""
        self.actor.bind()

    def evaluate(self, chunk: RefreshChunk) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Zeros, since no value target is learnt from, and rho of stored rows.

        Raises:
            SchemaMismatchError: a step's behaviour has no density.
        """
        rows, kinds = chunk.rows, chunk.rows.behaviour_kind
        values, ratios = self.actor.evaluate(
            flat_rows(rows.observation),
            rows.raw_action,
            rows.behaviour,
            as_gaussian(kinds) if self._nominal else kinds,
        )
        check_densities(chunk, ratios)
        return values, ratios

    def initial_errors(self, episode: Episode) -> NDArray[np.float32]:
        """|Q_target - Q| of each step under the present networks and targets."""
        return self.errors_along(episode, self.errors)
