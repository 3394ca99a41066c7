"""NAF's gradient at the outputs of its network, in closed form.

The same numbers that autograd finds for `naf_loss`, per step: near steps get the error's part,
at the mean times beta, every step (1 - beta) times the gradient of the divergence at the mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import Floats32, Index, kernel
from training.divergence_kernels import divergence_of, divergence_slope
from training.engines.batch_memory import BatchMemory
from training.engines.host_targets import HostTargets
from training.engines.mlp_pass import ForwardPass
from training.engines.output_gradient import OutputGradient
from training.gaussian import stdev_from_raw
from training.ratio_kernels import is_near, log_density_of, log_normaliser, ratio_of

if TYPE_CHECKING:
    from torch import Tensor

    from training.agents.naf.network import NafNetwork
    from training.batches.transition_batch import TransitionBatch
    from training.refer import ReferSettings
    from training.stage import Feedback, Schedule

__all__ = ["NafGradient", "naf_gradient"]

_VECTORS = ("behaviour_log_density", "reward", "continuing", "sampling_weight")
_FEEDBACK = ("value", "importance_ratio", "divergence", "priority_error")

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)


@kernel
def _positive(x: np.float32, exponential: bool) -> Any:
    """A number of the diagonal, e^x or (x + sqrt(1 + x^2)) / 2, and its slope.

    The latter is 1 / (2 (sqrt(1 + x^2) - x)), too, in which nothing cancels where x is negative.
    """
    if exponential:
        power = np.exp(x)
        return power, power
    root = np.sqrt(_ONE + x * x)
    number = _HALF * (x + root) if x > _ZERO else _HALF / (root - x)
    return number, number / root


@kernel
def _read_row(
    outputs: Floats32,
    row: Index,
    exponential: bool,
    bounded: bool,
    lower: Floats32,
    slope: Floats32,
    means: Floats32,
) -> None:
    """Fill L (A, A), the slopes of its diagonal (A,) and the row's mean, in ``means`` (B, A)."""
    width = means.shape[1]
    at = 1
    for k in range(width):
        for j in range(k):
            lower[k, j] = outputs[row, at + j]
        lower[k, k], slope[k] = _positive(outputs[row, at + k], exponential)
        at += k + 1
    for k in range(width):
        number = outputs[row, at + k]
        means[row, k] = np.float32(math.tanh(number)) if bounded else number


@kernel
def _advantage(lower: Floats32, offset: Floats32, turned: Floats32) -> np.float32:
    """-1/2 |L^T (a - m)|^2; fills ``turned`` (A,), which is L^T (a - m)."""
    total = _ZERO
    for j in range(offset.size):
        turned[j] = _ZERO
        for k in range(j, offset.size):
            turned[j] += lower[k, j] * offset[k]
        total += turned[j] * turned[j]
    return -_HALF * total


@kernel
def naf_gradient(
    outputs: Floats32,
    next_outputs: Floats32,
    stdev: Floats32,
    batch: tuple[Floats32, Floats32, Floats32],
    vectors: tuple[Floats32, ...],
    numbers: tuple[float, float, float, float],
    rules: tuple[bool, bool, bool, bool, bool],
    gradient: Floats32,
    feedback: Floats32,
) -> float:
    """Fill the gradient at the outputs and the feedback; gives the loss.

    ``outputs`` (B, 1 + A (A + 1) / 2 + A) are value, triangle of L and mean at the states,
    ``next_outputs`` the target network's at the next ones, of which the value is read; ``stdev``
    (A,) is the policy's. ``batch`` is raw action, behaviour mean and behaviour stdev, (B, A) each;
    ``vectors`` are behaviour log density, reward, continuing and sampling weight, (B,) each;
    ``numbers`` beta, far bound, reward scale and discount; ``rules`` rule 1, rule 2, whether the
    divergence is KL(pi || mu), the diagonal exponential, and the mean bounded. ``feedback`` (4, B)
    becomes Q, importance ratio, divergence and |e|.
    """
    action, mu_mean, mu_stdev = batch
    log_mu, reward, continuing, weight = vectors
    beta, bound = np.float32(numbers[0]), np.float32(numbers[1])
    scale, discount = np.float32(numbers[2]), np.float32(numbers[3])
    rule_1, rule_2, reverse, exponential, bounded = rules
    size, width = action.shape
    improving = beta if rule_2 else _ONE
    holding = _ONE - beta if rule_2 else _ZERO
    means = np.empty((size, width), np.float32)
    lower, slope = np.empty((width, width), np.float32), np.empty(width, np.float32)
    offset, turned = np.empty(width, np.float32), np.empty(width, np.float32)
    normaliser = log_normaliser(stdev)
    mean_at = 1 + width * (width + 1) // 2
    loss = 0.0
    for i in range(size):
        _read_row(outputs, i, exponential, bounded, lower, slope, means)
        for k in range(width):
            offset[k] = action[i, k] - means[i, k]
        ratio = ratio_of(log_density_of(i, action, means, 0, stdev, normaliser) - log_mu[i])
        near = is_near(ratio, bound)
        divergence = divergence_of(i, means, 0, stdev, mu_mean, mu_stdev, reverse)
        value = outputs[i, 0] + _advantage(lower, offset, turned)
        target = reward[i] / scale + discount * continuing[i] * next_outputs[i, 0]
        error = target - value
        share = weight[i] / np.float32(size)
        pull = share * error if near or not rule_1 else _ZERO
        loss += _HALF * pull * error
        if rule_2:
            loss += share * holding * divergence
        gradient[i, 0] = -pull
        at = 1
        for k in range(width):
            along = _ZERO
            for j in range(k + 1):
                along += lower[k, j] * turned[j]
                gradient[i, at + j] = pull * turned[j] * offset[k]
            gradient[i, at + k] *= slope[k]
            at += k + 1
            by_mean = -pull * improving * along
            if rule_2:
                held = divergence_slope(
                    means[i, k], stdev[k], mu_mean[i, k], mu_stdev[i, k], reverse
                )
                by_mean += share * holding * held[0]
            if bounded:
                by_mean *= _ONE - means[i, k] * means[i, k]
            gradient[i, mean_at + k] = by_mean
        feedback[0, i] = value
        feedback[1, i] = ratio
        feedback[2, i] = divergence
        feedback[3, i] = abs(error)
    return loss


class NafGradient(OutputGradient):
    """NAF's stage for the fused engine, with the target network that follows."""

    def __init__(
        self,
        network: NafNetwork,
        target: NafNetwork,
        settings: ReferSettings,
        discount: float,
        target_rate: float,
    ) -> None:
        super().__init__(network.body, network.head, dict(network.named_parameters()))
        self._target = target
        self._targets = HostTargets([(network, target)], target_rate)
        self._discount = discount
        self._rules = (
            settings.rule_1,
            settings.rule_2,
            settings.divergence == "policy_behaviour",
            network.diagonal == "exp",
            network.bounded_mean,
        )
        self._stdev: Floats32 = stdev_from_raw(network.raw_stdev).numpy()
        self._next: ForwardPass | None = None
        self._memory: BatchMemory | None = None

    def bind(self) -> None:
        """Take hold of the memory of both networks."""
        super().bind()
        self._next, self._memory = None, None
        self._targets.bind()

    def fill_outputs(
        self,
        outputs: Floats32,
        gradient: Floats32,
        others: dict[Tensor, Floats32],  # noqa: ARG002
        batch: TransitionBatch,
        schedule: Schedule,
    ) -> tuple[float, Feedback]:
        """Gradient at value, triangle and mean; feedback as of `NafStage`."""
        memory = self._take(batch)
        loss = naf_gradient(
            outputs,
            self._next_outputs(batch, len(outputs)),
            self._stdev,
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
            memory.numbers,
        )
        return loss, memory.feedback()

    def stepped(self) -> None:
        """The target goes a part of its way."""
        self._targets.follow()

    def _next_outputs(self, batch: TransitionBatch, size: int) -> Floats32:
        """The target network's outputs at the next states."""
        if self._next is None or len(self._next.outputs) != size:
            self._next = ForwardPass(self._target.body, self._target.head, size)
        self._next.forward(batch.next_observation.numpy())
        return self._next.outputs

    def _take(self, batch: TransitionBatch) -> BatchMemory:
        """The batch's memory, which batches of one size share."""
        if self._memory is None or not self._memory.holds(batch):
            self._memory = BatchMemory(batch, self._stdev.size, _VECTORS, _FEEDBACK)
        return self._memory
