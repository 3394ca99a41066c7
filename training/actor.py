"""The lean actor: a Gaussian policy evaluated one observation at a time, by a compiled kernel.

The kernels read the torch weights in place, so every update is seen by the next act. One row a
call: how many rows are evaluated together changes no bit of any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from storage.errors import ConfigError
from storage.kernel import Bytes, Floats, Floats32, kernel
from storage.randomness import normal_pair, philox, stream_key, uniform_double
from training.behaviour import behaviour_log_density
from training.gaussian import LOG_RATIO_LIMIT

if TYPE_CHECKING:
    from torch import Tensor

    from training.network import VRacerNetwork
    from training.scaling import ObservationScaling

__all__ = ["NOISE_LIMIT", "Action", "GaussianActor"]

NOISE_LIMIT = 3.0
"""Standard normal draws beyond plus or minus this are replaced by uniform ones within it."""

_NOISE = "action noise"
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)

Function = TypeVar("Function", bound=Callable[..., Any])


def _summing_kernel(function: Function) -> Function:
    """A kernel whose sums may be reassociated into SIMD lanes: same bits on one machine only."""
    compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
    return cast(Function, compiled(function))


@_summing_kernel
def _affine(weight: Floats32, bias: Floats32, inputs: Floats32, outputs: Floats32) -> None:
    """Outputs = weight @ inputs + bias, four rows at a time."""
    rows, columns = weight.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = _ZERO, _ZERO, _ZERO, _ZERO
        for j in range(columns):
            x = inputs[j]
            a += weight[i, j] * x
            b += weight[i + 1, j] * x
            c += weight[i + 2, j] * x
            d += weight[i + 3, j] * x
        outputs[i] = a + bias[i]
        outputs[i + 1] = b + bias[i + 1]
        outputs[i + 2] = c + bias[i + 2]
        outputs[i + 3] = d + bias[i + 3]
    for i in range(whole, rows):
        a = _ZERO
        for j in range(columns):
            a += weight[i, j] * inputs[j]
        outputs[i] = a + bias[i]


@kernel
def _forward(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    scaling: Floats,
    observation: Floats,
    scratch: Floats32,
) -> Floats32:
    """Scale one observation and run it through the layers; the head's outputs, in ``scratch``."""
    hidden, fresh = scratch[0], scratch[1]
    head: Floats32 = scratch[2]
    for j in range(observation.shape[0]):
        hidden[j] = np.float32((observation[j] - scaling[0, j]) / scaling[1, j])
    last = len(weights) - 1
    for layer in range(last):
        weight = weights[layer]
        _affine(weight, biases[layer], hidden, fresh)
        for i in range(weight.shape[0]):
            activated = fresh[i] / (_ONE + abs(fresh[i]))
            hidden[i] = activated + hidden[i] if links[layer] else activated
    _affine(weights[last], biases[last], hidden, head)
    return head


@kernel
def _stdev(raw: float) -> float:
    """Standard deviation of a raw number, as `training.gaussian.stdev_from_raw`."""
    return 0.5 * math.exp(math.asinh(raw))


@kernel
def _noise(
    key: tuple[np.uint64, np.uint64], step: int, lane: int, pair: int
) -> tuple[float, float]:
    """Two of the standard normal numbers of one act, within [-3, 3]."""
    block = philox(key[0], key[1], np.uint64(step), np.uint64(lane), np.uint64(pair), np.uint64(0))
    first, second = normal_pair(block[0], block[1])
    if abs(first) > NOISE_LIMIT:
        first = NOISE_LIMIT * (2.0 * uniform_double(block[2]) - 1.0)
    if abs(second) > NOISE_LIMIT:
        second = NOISE_LIMIT * (2.0 * uniform_double(block[3]) - 1.0)
    return first, second


@kernel
def _act(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    raw_stdev: Floats32,
    scaling: Floats,
    observation: Floats,
    scratch: Floats32,
    key: tuple[np.uint64, np.uint64],
    step: int,
    lane: int,
    greedy: bool,
    action: Floats32,
) -> float:
    """Fill ``action`` (3, A) with draw, mean and stdev; return V(s)."""
    head = _forward(weights, biases, links, scaling, observation, scratch)
    size = action.shape[1]
    raw = raw_stdev if raw_stdev.shape[0] else head[1 + size :]
    noise = (0.0, 0.0)
    for j in range(size):
        if j % 2 == 0 and not greedy:
            noise = _noise(key, step, lane, j // 2)
        stdev = np.float32(_stdev(raw[j]))
        action[0, j] = head[1 + j] + stdev * (noise[0] if j % 2 == 0 else noise[1])
        action[1, j] = head[1 + j]
        action[2, j] = stdev
    return float(head[0])


@kernel
def _evaluate(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    raw_stdev: Floats32,
    scaling: Floats,
    observations: Floats,
    scratch: Floats32,
    raw_actions: Floats32,
    behaviour: Floats32,
    kinds: Bytes,
    values: Floats32,
    ratios: Floats32,
) -> None:
    """Fill V(s) and, where actions are given, the importance ratio of each row."""
    size = raw_actions.shape[1]
    for i in range(observations.shape[0]):
        head = _forward(weights, biases, links, scaling, observations[i], scratch)
        values[i] = head[0]
        if not size:
            continue
        raw = raw_stdev if raw_stdev.shape[0] else head[1 + size :]
        log_ratio = -behaviour_log_density(raw_actions[i], behaviour[i], kinds[i])
        for j in range(size):
            stdev = np.float64(np.float32(_stdev(raw[j])))
            z = (np.float64(raw_actions[i, j]) - np.float64(head[1 + j])) / stdev
            log_ratio -= 0.5 * z * z + math.log(stdev) + _HALF_LOG_2PI
        if log_ratio > LOG_RATIO_LIMIT:
            log_ratio = LOG_RATIO_LIMIT
        elif log_ratio < -LOG_RATIO_LIMIT:
            log_ratio = -LOG_RATIO_LIMIT
        ratios[i] = math.exp(log_ratio)


class Action(NamedTuple):
    """What the policy drew at one observation, in units of the raw action."""

    raw_action: Floats32
    """The draw u, (A,)."""
    behaviour: Floats32
    """Mean, then standard deviation, (2 A,)."""
    value: float
    """V(s)."""


class GaussianActor:
    """Acts with a `VRacerNetwork` on raw observations, scaled as the learner scales them.

    The noise is a pure function of (seed, step index, lane). Not for use from several threads at
    once: calls share scratch memory.

    Raises:
        ConfigError: the network is not float32, or not the scaling's size.

    """

    def __init__(self, network: VRacerNetwork, scaling: ObservationScaling, *, seed: int) -> None:
        if scaling.size != network.observation_size:
            raise ConfigError(
                f"the observation scaling has {scaling.size} numbers, the network "
                f"{network.observation_size} inputs"
            )
        self._network = network
        self._scaling = scaling
        self._key = stream_key(seed, _NOISE)
        self._size = network.action_size
        self.bind()

    def bind(self) -> None:
        """Take hold of the present weights: needed again only where their memory was replaced.

        In-place changes (updates, ``load_state_dict``) are seen without it. Weights on a device are
        copied to the host by this call, and stay as they were then until the next one.
        """
        layers = [*self._network.body.layers, self._network.head]
        raw = None if self._network.state_dependent_stdev else self._network.raw_stdev
        links = np.array([*self._network.body.links, False], np.uint8)
        width = max(max(_host(layer.weight).shape) for layer in layers)
        self._policy = (
            tuple(_host(layer.weight) for layer in layers),
            tuple(_host(layer.bias) for layer in layers),
            links,
            np.empty(0, np.float32) if raw is None else _host(raw),
            self._scaling.statistics.numpy(),
        )
        self._scratch = np.zeros((3, width), np.float32)

    def act(
        self, lane: int, step_index: int, observation: Floats, *, greedy: bool = False
    ) -> Action:
        """Draw an action at one raw observation, float64, contiguous, shape (O,).

        ``greedy`` takes the mean. Arrays of the result are fresh.
        """
        self._check(observation.shape, (self._network.observation_size,))
        drawn = np.empty((3, self._size), np.float32)
        value = _act(
            *self._policy, observation, self._scratch, self._key, step_index, lane, greedy, drawn
        )
        return Action(drawn[0], drawn[1:].reshape(-1), value)

    def values(self, observations: Floats) -> Floats32:
        """V(s) of raw observations, float64 (k, O) to float32 (k,)."""
        return self.evaluate(
            observations,
            np.empty((len(observations), 0), np.float32),
            np.empty((len(observations), 0), np.float32),
            np.zeros(len(observations), np.uint8),
        )[0]

    def evaluate(
        self, observations: Floats, raw_actions: Floats32, behaviour: Floats32, kinds: Bytes
    ) -> tuple[Floats32, Floats32]:
        """V(s) and importance ratio of rows under the present policy, float32 (k,) each.

        Observations are raw, float64 (k, O); behaviour is (k, K) with its kinds (k,). A row whose
        behaviour has no density (a closing row, an unknown behaviour) gets the ratio NaN.
        """
        rows = len(observations)
        self._check(observations.shape, (rows, self._network.observation_size))
        values, ratios = np.empty(rows, np.float32), np.empty(rows, np.float32)
        _evaluate(
            *self._policy,
            observations,
            self._scratch,
            raw_actions,
            behaviour,
            kinds,
            values,
            ratios,
        )
        return values, ratios

    @staticmethod
    def _check(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
        if shape != expected:
            raise ConfigError(
                f"observations of shape {shape} for a policy that takes {expected}; the "
                "environment's observation space is not the one the policy was made for"
            )


def _host(parameter: Tensor) -> Floats32:
    """Weights as NumPy sees them, without a copy where they are on the host."""
    array: Any = parameter.detach().cpu().numpy()
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        raise ConfigError(
            f"the actor reads contiguous float32 weights, not {array.dtype} of shape {array.shape}"
        )
    return cast(Floats32, array)
