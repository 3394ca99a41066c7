"""NAF's loss: the squared error of a quadratic Q, and ReF-ER's rules at its mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from training.agents.naf.advantage import quadratic_advantage
from training.gaussian import DIVERGENCES, importance_ratio, log_density
from training.refer import ReferSettings, blend, near_mask
from training.stage import PureModule

if TYPE_CHECKING:
    from training.agents.naf.network import NafNetwork, NafOutput
    from training.batches.transition_batch import TransitionBatch
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["NafStage", "naf_loss"]


class NafStage:
    """The one stage of NAF, over all parameters of its network (a `Stage`).

    Feedback, each (batch,): ``value`` Q(s, a), ``importance_ratio`` rho, ``divergence`` KL,
    ``priority_error`` |Q_hat - Q|.
    """

    def __init__(
        self, network: NafNetwork, target: NafNetwork, settings: ReferSettings, discount: float
    ) -> None:
        self._network = PureModule(network)
        self._target = target
        self._settings = settings
        self._discount = discount

    def __call__(
        self, parameters: Parameters, batch: TransitionBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        output = self._network(parameters, batch.observation)
        with torch.no_grad():
            next_value = self._target.values(batch.next_observation)
        return naf_loss(output, next_value, batch, schedule, self._settings, self._discount)


def naf_loss(
    output: NafOutput,
    next_value: Tensor,
    batch: TransitionBatch,
    schedule: Schedule,
    settings: ReferSettings,
    discount: float,
) -> tuple[Tensor, Feedback]:
    """NAF's blended loss from the network's outputs (ReF-ER eqs. 2, 4 and 10).

    With e = r / scale + gamma V'(s') - Q(s, a), the mean over the batch of
    ``near e^2 / 2 + (1 - beta) KL``, where the mean's part of the gradient of ``e^2 / 2`` is
    multiplied by beta, and that of V and L is not. V' is the target network's: the greatest Q of
    the next state, which is not there after a terminal step.
    """
    log_policy = log_density(batch.raw_action, output.mean, output.stdev)
    divergence = DIVERGENCES[settings.divergence](
        batch.behaviour_mean, batch.behaviour_stdev, output.mean, output.stdev
    )
    offset = batch.raw_action - output.mean
    with torch.no_grad():
        ratio = importance_ratio(log_policy, batch.behaviour_log_density)
        near = near_mask(ratio, schedule["far_bound"])
        future = discount * batch.continuing * next_value
        target = batch.reward / schedule["reward_scale"] + future
    value = output.value + quadratic_advantage(output.lower, offset.detach())
    by_mean = output.value.detach() + quadratic_advantage(output.lower.detach(), offset)
    error = target - value
    improvement = 0.5 * (target - by_mean).square()
    loss = blend(
        settings,
        schedule["beta"],
        near,
        batch.sampling_weight,
        policy_loss=improvement - improvement.detach(),
        value_loss=0.5 * error.square(),
        divergence=divergence,
    )
    feedback = {
        "value": value.detach(),
        "importance_ratio": ratio,
        "divergence": divergence.detach(),
        "priority_error": error.detach().abs(),
    }
    return loss, feedback
