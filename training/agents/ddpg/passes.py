"""DDPG's passes by hand over batches of one size, around its gradients in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from training.agents.ddpg.gradient_kernels import (
    actor_gradient,
    actor_pull,
    critic_gradient,
    fit,
    take_means,
)
from training.engines.batch_memory import check_rows
from training.engines.mlp_pass import ForwardPass, InputPass, MlpPass

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from storage.kernel import Floats32
    from training.agents.ddpg.network import DdpgActor, DdpgNetworks
    from training.batches.transition_batch import TransitionBatch
    from training.refer import ReferSettings
    from training.stage import Feedback, Schedule

__all__ = ["Arrays", "Climbing", "Judging", "Reading"]


class Arrays(NamedTuple):
    """A batch's memory: `TransitionBatch` as arrays."""

    observation: Floats32
    next_observation: Floats32
    raw_action: Floats32
    reward: Floats32
    continuing: Floats32
    behaviour_mean: Floats32
    behaviour_stdev: Floats32
    behaviour_log_density: Floats32
    sampling_weight: Floats32

    @classmethod
    def of(cls, batch: TransitionBatch, action: int) -> Arrays:
        """Views of a batch's tensors.

        Raises:
            ConfigError: fields of unlike lengths.
        """
        check_rows(batch, len(batch.observation), action)
        return cls(*(tensor.numpy() for tensor in batch))


class _Likeness:
    """How the actions of a batch fit the actor's present means, and those means."""

    means: Floats32
    """(B, A)."""
    ratio: Floats32
    """(B,), rho."""
    near: NDArray[np.uint8]
    """(B,), whether rho lies within the far bound; all of them without rule 1."""

    def __init__(self, actor: DdpgActor, size: int, settings: ReferSettings) -> None:
        self._bounded = actor.bounded_mean
        self._stdev: Floats32 = actor.stdev.numpy()
        self._rule_1 = settings.rule_1
        self.means = np.empty((size, actor.action_size), np.float32)
        self.ratio = np.empty(size, np.float32)
        self.near = np.empty(size, np.uint8)

    def measure(self, outputs: Floats32, arrays: Arrays, schedule: Schedule) -> None:
        """Fill all three from the actor's outputs."""
        bound = schedule["far_bound"].item()
        take_means(outputs, self._bounded, self.means)
        actions = arrays.raw_action, arrays.behaviour_log_density
        fit(self.means, self._stdev, *actions, bound, self.ratio, self.near)
        if not self._rule_1:
            self.near[:] = 1


class Reading:
    """The actor's pass forward over batches of one size, for its likeness alone."""

    def __init__(self, networks: DdpgNetworks, size: int, settings: ReferSettings) -> None:
        actor = networks.actor
        self._actor = ForwardPass(actor.body, actor.head, size)
        self._wanted = settings.rule_1
        self._likeness = _Likeness(actor, size, settings)
        self._likeness.near[:] = 1

    def near(self, arrays: Arrays, schedule: Schedule) -> NDArray[np.uint8]:
        """Which steps count for the critic."""
        if self._wanted:
            self._actor.forward(arrays.observation)
            self._likeness.measure(self._actor.outputs, arrays, schedule)
        return self._likeness.near


class Judging:
    """The critic's passes over batches of one size, and those of both targets."""

    def __init__(
        self, networks: DdpgNetworks, size: int, gradients: dict[Tensor, Floats32], discount: float
    ) -> None:
        critic, target, follower = networks.critic, networks.target_critic, networks.target_actor
        self._critic = MlpPass(critic.after, critic.head, size, gradients)
        self._target_critic = ForwardPass(target.after, target.head, size)
        self._target_actor = ForwardPass(follower.body, follower.head, size)
        self._bounded = follower.bounded_mean
        self._next_means = np.empty((size, follower.action_size), np.float32)
        self._discount = discount
        self._numbers = np.empty((2, size), np.float32)
        value, error = torch.from_numpy(self._numbers).unbind()
        self._feedback = {"value": value, "priority_error": error}

    def fill(
        self, arrays: Arrays, near: NDArray[np.uint8], schedule: Schedule
    ) -> tuple[float, Feedback]:
        """Gradients of the critic; loss and feedback of `CriticStage`."""
        self._target_actor.forward(arrays.next_observation)
        take_means(self._target_actor.outputs, self._bounded, self._next_means)
        self._target_critic.forward(arrays.next_observation, self._next_means)
        self._critic.forward(arrays.observation, arrays.raw_action)
        loss = critic_gradient(
            self._critic.outputs,
            self._target_critic.outputs,
            (arrays.reward, arrays.continuing, arrays.sampling_weight),
            near,
            schedule["reward_scale"].item(),
            self._discount,
            self._critic.output_gradient,
            self._numbers,
        )
        self._critic.backward()
        return loss, dict(self._feedback)


class Climbing:
    """The actor's passes over batches of one size, through a critic that stays as it is."""

    def __init__(
        self,
        networks: DdpgNetworks,
        size: int,
        gradients: dict[Tensor, Floats32],
        settings: ReferSettings,
    ) -> None:
        actor, critic = networks.actor, networks.critic
        self._actor = MlpPass(actor.body, actor.head, size, gradients)
        self._critic = InputPass(critic.after, critic.head, size)
        self._stdev: Floats32 = actor.stdev.numpy()
        self._rule_2 = settings.rule_2
        reverse = settings.divergence == "policy_behaviour"
        self._rules = settings.rule_2, reverse, actor.bounded_mean
        self._divergence = np.empty(size, np.float32)
        self.likeness = _Likeness(actor, size, settings)
        self._feedback = {
            "importance_ratio": torch.from_numpy(self.likeness.ratio),
            "divergence": torch.from_numpy(self._divergence),
        }

    def act(self, arrays: Arrays, schedule: Schedule) -> None:
        """The means at the batch's states, and its likeness."""
        self._actor.forward(arrays.observation)
        self.likeness.measure(self._actor.outputs, arrays, schedule)

    def fill(self, arrays: Arrays, schedule: Schedule) -> tuple[float, Feedback]:
        """Gradients of the actor; loss and feedback of `ActorStage`. `act` comes before."""
        means, near = self.likeness.means, self.likeness.near
        weight = arrays.sampling_weight
        beta = schedule["beta"].item() if self._rule_2 else 1.0
        self._critic.forward(arrays.observation, means)
        loss = actor_pull(self._critic.outputs, weight, near, beta, self._critic.output_gradient)
        self._critic.backward()
        loss += actor_gradient(
            means,
            self._stdev,
            (arrays.behaviour_mean, arrays.behaviour_stdev),
            weight,
            self._critic.input_gradient,
            arrays.observation.shape[1],
            1.0 - beta,
            self._rules,
            self._actor.output_gradient,
            self._divergence,
        )
        self._actor.backward()
        return loss, dict(self._feedback)
