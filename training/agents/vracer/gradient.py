"""V-RACER's gradient at the outputs of its network, in closed form.

The same numbers that autograd finds for `vracer_loss`, per step (the table of ReF-ER's blended
gradients): near steps get beta times the policy's and the value's part, every step (1 - beta) times
the gradient of the divergence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import Floats32, Index, kernel
from training.divergence_kernels import divergence_of, divergence_slope
from training.engines.batch_memory import BatchMemory
from training.engines.output_gradient import OutputGradient
from training.ratio_kernels import is_near, log_density_of, log_normaliser, ratio_of

if TYPE_CHECKING:
    from torch import Tensor

    from training.agents.vracer.network import VRacerNetwork
    from training.batches.tensor_batch import TensorBatch
    from training.refer import ReferSettings
    from training.stage import Feedback, Schedule

__all__ = ["VRacerGradient", "vracer_gradient"]

_VECTORS = ("behaviour_log_density", "reward", "next_value_target", "sampling_weight")
_FEEDBACK = ("value", "importance_ratio", "divergence", "priority_error")

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)


@kernel
def _spread(raw: Floats32, row: Index, first: Index, stdev: Floats32, slope: Floats32) -> Any:
    """Standard deviations exp(asinh(x)) / 2 and their derivatives from raw[row, first:].

    Gives the log of the density's normaliser, sum log stdev + A/2 log 2 pi.
    """
    for k in range(stdev.size):
        x = raw[row, first + k]
        stdev[k] = _HALF * np.exp(np.arcsinh(x))
        slope[k] = stdev[k] / np.sqrt(_ONE + x * x)
    return log_normaliser(stdev)


@kernel
def vracer_gradient(
    outputs: Floats32,
    raw_stdev: Floats32,
    batch: tuple[Floats32, Floats32, Floats32],
    vectors: tuple[Floats32, ...],
    numbers: tuple[float, float, float, float],
    rules: tuple[bool, bool, bool],
    gradient: Floats32,
    raw_gradient: Floats32,
    feedback: Floats32,
) -> float:
    """Fill the gradient at the outputs and the feedback; gives the loss.

    ``outputs`` (B, 1 + A) are value and mean, or (B, 1 + 2 A) with the raw standard deviation of
    each state; ``raw_stdev`` (1, A) is the shared one, (0, A) in the other case. ``batch`` is raw
    action, behaviour mean and behaviour stdev, (B, A) each; ``vectors`` are behaviour log density,
    reward, next value target and sampling weight, (B,) each; ``numbers`` beta, far bound, reward
    scale and discount; ``rules`` rule 1, rule 2 and whether the divergence is KL(pi || mu).
    ``feedback`` (4, B) becomes value, importance ratio, divergence and |min(1, rho) A|.
    """
    action, mu_mean, mu_stdev = batch
    log_mu, reward, following, weight = vectors
    beta, bound = np.float32(numbers[0]), np.float32(numbers[1])
    scale, discount = np.float32(numbers[2]), np.float32(numbers[3])
    rule_1, rule_2, reverse = rules
    size, width = action.shape
    shared = raw_stdev.shape[0] > 0
    improving = beta if rule_2 else _ONE
    holding = _ONE - beta if rule_2 else _ZERO
    stdev, slope = np.empty(width, np.float32), np.empty(width, np.float32)
    raw_gradient[:] = 0.0
    normaliser = _spread(raw_stdev, 0, 0, stdev, slope) if shared else _ZERO
    loss = 0.0
    for i in range(size):
        if not shared:
            normaliser = _spread(outputs, i, 1 + width, stdev, slope)
        divergence = divergence_of(i, outputs, 1, stdev, mu_mean, mu_stdev, reverse)
        log_policy = log_density_of(i, action, outputs, 1, stdev, normaliser)
        ratio = ratio_of(log_policy - log_mu[i])
        near = is_near(ratio, bound)
        value = outputs[i, 0]
        advantage = reward[i] / scale + discount * following[i] - value
        value_error = min(ratio, _ONE) * advantage
        policy_error = ratio * advantage
        share = weight[i] / np.float32(size)
        pull = share * (improving if near or not rule_1 else _ZERO)
        loss -= pull * (policy_error * log_policy + value_error * value)
        if rule_2:
            loss += share * holding * divergence
        gradient[i, 0] = -pull * value_error
        for k in range(width):
            mean, s = outputs[i, 1 + k], stdev[k]
            offset, inverse = action[i, k] - mean, _ONE / s
            pushed = pull * policy_error * inverse
            by_mean = -pushed * offset * inverse
            by_stdev = by_mean * offset * inverse + pushed
            if rule_2:
                along = divergence_slope(mean, s, mu_mean[i, k], mu_stdev[i, k], reverse)
                by_mean += share * holding * along[0]
                by_stdev += share * holding * along[1]
            gradient[i, 1 + k] = by_mean
            if shared:
                raw_gradient[k] += by_stdev * slope[k]
            else:
                gradient[i, 1 + width + k] = by_stdev * slope[k]
        feedback[0, i] = value
        feedback[1, i] = ratio
        feedback[2, i] = divergence
        feedback[3, i] = abs(value_error)
    return loss


class VRacerGradient(OutputGradient):
    """V-RACER's stage for the fused engine (an `OutputGradient`)."""

    def __init__(self, network: VRacerNetwork, settings: ReferSettings, discount: float) -> None:
        super().__init__(network.body, network.head, dict(network.named_parameters()))
        self._raw = None if network.state_dependent_stdev else network.raw_stdev
        self._discount = discount
        self._rules = (
            settings.rule_1,
            settings.rule_2,
            settings.divergence == "policy_behaviour",
        )
        self._no_raw = np.empty((0, network.action_size), np.float32)
        self._memory: BatchMemory | None = None

    def fill_outputs(
        self,
        outputs: Floats32,
        gradient: Floats32,
        others: dict[Tensor, Floats32],
        batch: TensorBatch,
        schedule: Schedule,
    ) -> tuple[float, Feedback]:
        """Gradient at value, mean and standard deviation; feedback as of `VRacerStage`."""
        memory = self._take(batch)
        raw = self._raw
        loss = vracer_gradient(
            outputs,
            self._no_raw if raw is None else raw.detach().numpy()[None],
            memory.matrices,
            memory.vectors,
            (
                schedule["beta"].item(),
                schedule["far_bound"].item(),
                schedule["reward_scale"].item(),
                self._discount,
            ),
            self._rules,
            gradient,
            self._no_raw[:, 0] if raw is None else others[raw][0],
            memory.numbers,
        )
        return loss, memory.feedback()

    def _take(self, batch: TensorBatch) -> BatchMemory:
        """The batch's memory, which batches of one size share."""
        if self._memory is None or not self._memory.holds(batch):
            self._memory = BatchMemory(batch, self._no_raw.shape[1], _VECTORS, _FEEDBACK)
        return self._memory
