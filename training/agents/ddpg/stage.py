"""DDPG's losses: the critic's from bootstrapped targets, the actor's through the critic."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from training.gaussian import DIVERGENCES, importance_ratio, log_density
from training.refer import blend, near_mask
from training.stage import PureModule

if TYPE_CHECKING:
    from training.agents.ddpg.network import DdpgActor, DdpgNetworks
    from training.batches.transition_batch import TransitionBatch
    from training.refer import ReferSettings
    from training.stage import Feedback, Parameters, Schedule

__all__ = [
    "ActorStage",
    "CriticStage",
    "JointStage",
    "Likeness",
    "SteadyModule",
    "actor_loss",
    "critic_loss",
]


class Likeness(NamedTuple):
    """How a batch's actions fit the policy as it is now, both (batch,) and constant."""

    ratio: Tensor
    """Importance ratio rho."""
    near: Tensor
    """Whether rho lies within the far bound."""


class CriticStage:
    """The critic's loss, over its parameters (a `Stage`).

    Feedback, each (batch,): ``value`` Q(s, a) and ``priority_error`` |Q_target - Q|.
    """

    def __init__(self, networks: DdpgNetworks, settings: ReferSettings, discount: float) -> None:
        self._networks = networks
        self._critic = PureModule(networks.critic)
        self._settings = settings
        self._discount = discount

    def __call__(
        self, parameters: Parameters, batch: TransitionBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        actor = self._networks.actor
        with torch.no_grad():
            likeness = _likeness(actor, actor(batch.observation), batch, schedule)
        value = self._critic(parameters, batch.observation, batch.raw_action)
        target = _value_targets(self._networks, batch, schedule, self._discount)
        return critic_loss(value, target, likeness, batch, schedule, self._settings)


class ActorStage:
    """The actor's loss, over its parameters, through the critic as it is now (a `Stage`).

    Feedback, each (batch,): ``importance_ratio`` rho and ``divergence`` KL.
    """

    def __init__(self, networks: DdpgNetworks, settings: ReferSettings) -> None:
        self._actor = PureModule(networks.actor)
        self._networks = networks
        self._settings = settings

    def __call__(
        self, parameters: Parameters, batch: TransitionBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        networks = self._networks
        mean = self._actor(parameters, batch.observation)
        worth = networks.critic(batch.observation, mean)
        likeness = _likeness(networks.actor, mean, batch, schedule)
        stdev = networks.actor.stdev
        return actor_loss(mean, stdev, worth, likeness, batch, schedule, self._settings)


class JointStage:
    """Both losses at the same weights, over the parameters of both networks (a `Stage`).

    Each part of the sum holds the other network constant. The feedback is that of both stages.
    """

    def __init__(self, networks: DdpgNetworks, settings: ReferSettings, discount: float) -> None:
        self._networks = networks
        self._actor = PureModule(networks.actor)
        self._critic = PureModule(networks.critic)
        self._steady_critic = SteadyModule(networks.critic)
        self._names = {
            name: [part for part, _ in networks.get_submodule(name).named_parameters()]
            for name in ("actor", "critic")
        }
        self._settings = settings
        self._discount = discount

    def __call__(
        self, parameters: Parameters, batch: TransitionBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        networks, settings = self._networks, self._settings
        own = self._part(parameters, "critic")
        mean = self._actor(self._part(parameters, "actor"), batch.observation)
        value = self._critic(own, batch.observation, batch.raw_action)
        worth = self._steady_critic(own, batch.observation, mean)
        likeness = _likeness(networks.actor, mean, batch, schedule)
        target = _value_targets(networks, batch, schedule, self._discount)
        stdev = networks.actor.stdev
        first, judged = critic_loss(value, target, likeness, batch, schedule, settings)
        second, acted = actor_loss(mean, stdev, worth, likeness, batch, schedule, settings)
        return first + second, judged | acted

    def _part(self, parameters: Parameters, network: str) -> dict[str, Tensor]:
        return {name: parameters[f"{network}.{name}"] for name in self._names[network]}


def critic_loss(
    value: Tensor,
    target: Tensor,
    likeness: Likeness,
    batch: TransitionBatch,
    schedule: Schedule,
    settings: ReferSettings,
) -> tuple[Tensor, Feedback]:
    """Half the squared error of Q(s, a) (ReF-ER eq. 2): without beta, and nothing of far steps."""
    error = value - target
    loss = blend(
        settings,
        schedule["beta"],
        likeness.near,
        batch.sampling_weight,
        value_loss=0.5 * error * error,
    )
    return loss, {"value": value.detach(), "priority_error": error.detach().abs()}


def actor_loss(
    mean: Tensor,
    stdev: Tensor,
    worth: Tensor,
    likeness: Likeness,
    batch: TransitionBatch,
    schedule: Schedule,
    settings: ReferSettings,
) -> tuple[Tensor, Feedback]:
    """The blend of -Q(s, m(s)) and the divergence (ReF-ER eqs. 3 and 10); ``worth`` is the Q."""
    divergence = DIVERGENCES[settings.divergence](
        batch.behaviour_mean, batch.behaviour_stdev, mean, stdev
    )
    loss = blend(
        settings,
        schedule["beta"],
        likeness.near,
        batch.sampling_weight,
        policy_loss=-worth,
        divergence=divergence,
    )
    return loss, {"importance_ratio": likeness.ratio, "divergence": divergence.detach()}


class SteadyModule:
    """A module whose parameters no gradient reaches, ``outputs = steady(parameters, *inputs)``.

    Where the parameters given are the module's own, a twin that shares their memory is called,
    which is quicker than to put constants in their places.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._own = dict(module.named_parameters())
        self._twin = copy.deepcopy(module).requires_grad_(False)
        for shared, tensor in zip(self._twin.parameters(), module.parameters(), strict=True):
            shared.data = tensor.detach()

    def __call__(self, parameters: Parameters, *inputs: Tensor) -> Any:
        """Outputs of the module with these parameters, named as the module names them."""
        if all(parameters[name] is tensor for name, tensor in self._own.items()):
            return self._twin(*inputs)
        constants = {name: tensor.detach() for name, tensor in parameters.items()}
        return functional_call(self._module, constants, inputs)


@torch.no_grad()
def _likeness(
    actor: DdpgActor, mean: Tensor, batch: TransitionBatch, schedule: Schedule
) -> Likeness:
    """Likeness of the batch under the fixed deviation around these means."""
    log_policy = log_density(batch.raw_action, mean, actor.stdev)
    ratio = importance_ratio(log_policy, batch.behaviour_log_density)
    return Likeness(ratio, near_mask(ratio, schedule["far_bound"]))


@torch.no_grad()
def _value_targets(
    networks: DdpgNetworks, batch: TransitionBatch, schedule: Schedule, discount: float
) -> Tensor:
    """Q_target = r / scale + gamma Q'(s', m'(s')) of the target networks; r alone at the end."""
    action = networks.target_actor(batch.next_observation)
    future = networks.target_critic(batch.next_observation, action)
    target: Tensor = batch.reward / schedule["reward_scale"] + discount * batch.continuing * future
    return target
