"""DQN's loss: the temporal-difference error of one step against a target network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from training.gaussian import LOG_RATIO_LIMIT
from training.refer import blend, near_mask
from training.setting_checks import FLOAT32_TINY
from training.stage import PureModule

if TYPE_CHECKING:
    from torch import nn

    from training.agents.dqn.config import DqnConfig
    from training.agents.dqn.network import QNetwork
    from training.batches.discrete_batch import DiscreteBatch
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["DQN_SCHEDULE", "DqnStage", "categorical_divergence", "dqn_loss", "target_values"]

DQN_SCHEDULE = ("learning_rate", "beta", "far_bound", "reward_scale", "exploration")
"""What DQN reads from the schedule; ``exploration`` is epsilon of the present policy."""

_SMALLEST_RATIO, _LARGEST_RATIO = math.exp(-LOG_RATIO_LIMIT), math.exp(LOG_RATIO_LIMIT)


class DqnStage:
    """The one stage of DQN, over all parameters of its network (a `Stage`).

    ``target`` is a frozen copy, whose tensors are copied into now and then.

    Feedback, each (batch,): ``value`` Q(s, a), ``importance_ratio`` rho of the policy that would
    act now, ``divergence`` the KL of rule 2 (zeros without it), ``priority_error`` |TD error|.
    """

    def __init__(self, network: QNetwork, target: nn.Module, settings: DqnConfig) -> None:
        self._network = PureModule(network)
        self._target = target
        self._settings = settings

    def __call__(
        self, parameters: Parameters, batch: DiscreteBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        values = self._network(parameters, batch.observation)
        targets = self._targets(parameters, batch, schedule)
        return dqn_loss(values, targets, batch, schedule, self._settings)

    def errors(self, parameters: Parameters, batch: DiscreteBatch, schedule: Schedule) -> Tensor:
        """|TD error| of each step of a batch, (batch,), without a gradient."""
        with torch.no_grad():
            values = self._network(parameters, batch.observation)
            chosen = values.gather(1, batch.action[:, None]).squeeze(1)
            errors: Tensor = (self._targets(parameters, batch, schedule) - chosen).abs()
        return errors

    def _targets(self, parameters: Parameters, batch: DiscreteBatch, schedule: Schedule) -> Tensor:
        with torch.no_grad():
            following = chooser = self._target(batch.next_observation)
            if self._settings.double:
                chooser = self._network(parameters, batch.next_observation)
            return target_values(batch, schedule, following, chooser, self._settings)


def target_values(
    batch: DiscreteBatch,
    schedule: Schedule,
    following: Tensor,
    chooser: Tensor,
    settings: DqnConfig,
) -> Tensor:
    """What Q(s, a) is drawn to: r / scale + gamma Q'(s', argmax), r alone where nothing follows.

    ``following`` are Q'(s', .) of the target network, ``chooser`` the values that the next action
    is greedy in: the same ones (Mnih et al. 2015), or the learnt network's (van Hasselt et al.
    2016), (batch, actions) each.
    """
    rewards = batch.reward.clamp(-1.0, 1.0) if settings.clip_rewards else batch.reward
    best = following.gather(1, chooser.argmax(1, keepdim=True)).squeeze(1)
    return rewards / schedule["reward_scale"] + settings.discount * batch.continuing * best


def dqn_loss(
    values: Tensor,
    targets: Tensor,
    batch: DiscreteBatch,
    schedule: Schedule,
    settings: DqnConfig,
) -> tuple[Tensor, Feedback]:
    """DQN's blended loss from Q(s, .), (batch, actions), and constant targets, (batch,).

    Q is value and policy in one, so its squared or Huber loss is what ReF-ER blends: near steps get
    beta times it, far steps nothing under rule 1, and under rule 2 every step gets (1 - beta) times
    the divergence of the softmax policy from the behaviour. Without rule 2 beta plays no role.
    """
    refer = settings.refer
    chosen = values.gather(1, batch.action[:, None]).squeeze(1)
    error = targets - chosen
    losses = _error_loss(error, settings)
    divergence = None
    if refer.rule_2:
        divergence = categorical_divergence(values, batch.behaviour, settings)
    with torch.no_grad():
        ratio = _importance_ratio(values, batch, schedule, settings)
        near = near_mask(ratio, schedule["far_bound"])
    loss = blend(
        refer,
        schedule["beta"],
        near,
        batch.sampling_weight,
        policy_loss=losses,
        divergence=divergence,
    )
    feedback = {
        "value": chosen.detach(),
        "importance_ratio": ratio,
        "divergence": torch.zeros_like(ratio) if divergence is None else divergence.detach(),
        "priority_error": error.detach().abs(),
    }
    return loss, feedback


def categorical_divergence(values: Tensor, behaviour: Tensor, settings: DqnConfig) -> Tensor:
    """KL between the behaviour's distribution and the softmax of the values, (batch,).

    In the direction of ``refer.divergence``; a behaviour of 0 counts as float32's smallest number
    where its logarithm is wanted.
    """
    log_policy = functional.log_softmax(values / settings.temperature, 1)
    log_behaviour = behaviour.clamp(min=FLOAT32_TINY).log()
    if settings.refer.divergence == "behaviour_policy":
        return (behaviour * (log_behaviour - log_policy)).sum(1)
    return (log_policy.exp() * (log_policy - log_behaviour)).sum(1)


def _error_loss(error: Tensor, settings: DqnConfig) -> Tensor:
    if settings.loss == "squared":
        return 0.5 * error * error
    return functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=1.0)


def _importance_ratio(
    values: Tensor, batch: DiscreteBatch, schedule: Schedule, settings: DqnConfig
) -> Tensor:
    """Rho, pi(a|s) / mu(a|s) of the policy that acts now, within exp(-7) and exp(7), (batch,)."""
    action = batch.action[:, None]
    if settings.policy == "softmax":
        policy = functional.softmax(values / settings.temperature, 1).gather(1, action)
    else:
        epsilon = schedule["exploration"]
        is_best = values.argmax(1, keepdim=True) == action
        policy = epsilon / values.shape[1] + (1.0 - epsilon) * is_best
    ratio = policy / batch.behaviour.gather(1, action)
    return ratio.squeeze(1).clamp(_SMALLEST_RATIO, _LARGEST_RATIO)
