"""V-RACER's loss: state value and policy from off-policy corrected value targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from training.gaussian import DIVERGENCES, importance_ratio, log_density
from training.refer import ReferSettings, blend, near_mask
from training.stage import PureModule

if TYPE_CHECKING:
    from training.agents.vracer.network import VRacerNetwork, VRacerOutput
    from training.batches.tensor_batch import TensorBatch
    from training.stage import Feedback, Parameters, Schedule

__all__ = ["VRacerStage", "vracer_loss"]


class VRacerStage:
    """The one stage of V-RACER, over all parameters of its network (a `Stage`).

    Feedback, each (batch,): ``value`` V(s), ``importance_ratio`` rho, ``divergence`` KL,
    ``priority_error`` |min(1, rho) A|.
    """

    def __init__(self, network: VRacerNetwork, settings: ReferSettings, discount: float) -> None:
        self._network = PureModule(network)
        self._settings = settings
        self._discount = discount

    def __call__(
        self, parameters: Parameters, batch: TensorBatch, schedule: Schedule
    ) -> tuple[Tensor, Feedback]:
        """Loss and feedback of one batch."""
        output = self._network(parameters, batch.observation)
        return vracer_loss(output, batch, schedule, self._settings, self._discount)


def vracer_loss(
    output: VRacerOutput,
    batch: TensorBatch,
    schedule: Schedule,
    settings: ReferSettings,
    discount: float,
) -> tuple[Tensor, Feedback]:
    """V-RACER's blended loss from the network's outputs (ReF-ER eqs. 5, 8, 9 and 10).

    With A = r / scale + gamma * V_tbc(s') - V(s) and delta = min(1, rho) A held constant, the mean
    over the batch of ``near beta (-rho A log pi(a|s) - delta V(s)) + (1 - beta) KL``. The stored
    value target of the next state is combined with the current V and rho.
    """
    log_policy = log_density(batch.raw_action, output.mean, output.stdev)
    divergence = DIVERGENCES[settings.divergence](
        batch.behaviour_mean, batch.behaviour_stdev, output.mean, output.stdev
    )
    value = output.value.detach()
    with torch.no_grad():
        ratio = importance_ratio(log_policy, batch.behaviour_log_density)
        near = near_mask(ratio, schedule["far_bound"])
        returns = batch.reward / schedule["reward_scale"] + discount * batch.next_value_target
        advantage = returns - value
        value_error = ratio.clamp(max=1.0) * advantage
        policy_error = ratio * advantage
    loss = blend(
        settings,
        schedule["beta"],
        near,
        batch.sampling_weight,
        policy_loss=-policy_error * log_policy,
        value_loss=-value_error * output.value,
        divergence=divergence,
        beta_on_value=True,
    )
    feedback = {
        "value": value,
        "importance_ratio": ratio,
        "divergence": divergence.detach(),
        "priority_error": value_error.abs(),
    }
    return loss, feedback
