"""The lean actor: a Gaussian policy evaluated one observation at a time, by a compiled kernel.

The kernels read the torch weights in place, so every update is seen by the next act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from storage.errors import ConfigError
from storage.kernel import Bytes, Floats, Floats32
from storage.randomness import stream_key
from training.acting.activation_kernels import ACTIVATION_CODES
from training.acting.actor_kernels import act_row, evaluate_rows
from training.acting.noise import WHITE
from training.device import arrays_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from training.acting.noise import Noise
    from training.network import Mlp
    from training.scaling import ObservationScaling

__all__ = ["Action", "GaussianActor", "PolicyLayout", "PolicyNetwork"]

_NOISE = "action noise"


class Action(NamedTuple):
    """What the policy drew at one observation, in units of the raw action."""

    raw_action: Floats32
    """The draw u, (A,)."""
    behaviour: Floats32
    """Mean, then standard deviation, (2 A,)."""
    value: float | None
    """V(s); None where the network has no such output."""


class PolicyLayout(NamedTuple):
    """Where a network's head has the parts of a Gaussian policy: columns of its outputs."""

    value: int
    """V(s); -1 where there is none."""
    mean: int
    """The first dimension's mean."""
    stdev: int
    """The first dimension's raw standard deviation; -1 where all states share ``raw_stdev``."""
    bounded: bool
    """Whether the mean goes through tanh."""


class PolicyNetwork(Protocol):
    """What a `GaussianActor` needs of a network: hidden layers, a linear head, and its layout."""

    body: Mlp
    head: nn.Linear
    observation_size: int
    action_size: int

    @property
    def policy_layout(self) -> PolicyLayout:
        """Where the head's outputs have what the policy is made of."""

    @property
    def shared_raw_stdev(self) -> Tensor | None:
        """Raw standard deviation of all states (A,); None where the head gives it."""


class GaussianActor:
    """Acts with a `PolicyNetwork` on raw observations, scaled as the learner scales them.

    The noise is a pure function of (seed, step index, lane), and of the episode's steps so far
    where it is correlated. Not for use from several threads at once: calls share scratch memory.

    Raises:
        ConfigError: the network is not float32, or not the scaling's size.

    """

    def __init__(
        self,
        network: PolicyNetwork,
        scaling: ObservationScaling,
        *,
        seed: int,
        noise: Noise = WHITE,
    ) -> None:
        if scaling.size != network.observation_size:
            raise ConfigError(
                f"the observation scaling has {scaling.size} numbers, the network "
                f"{network.observation_size} inputs"
            )
        self._network = network
        self._scaling = scaling
        self._key = stream_key(seed, _NOISE)
        self.action_size = network.action_size
        """Dimensions of the raw action."""
        self._reach = noise.reach
        self.noise = noise
        """How the noise of a lane's steps hangs together."""
        self.has_value = network.policy_layout.value >= 0
        """Whether the network gives V(s)."""
        self.bind()

    def bind(self) -> None:
        """Take hold of the present weights: needed again only where their memory was replaced.

        In-place changes (updates, ``load_state_dict``) are seen without it. Weights on a device are
        copied to the host by this call, and stay as they were then until the next one.
        """
        network = self._network
        layers = [*network.body.layers, network.head]
        parameters = [part for layer in layers for part in (layer.weight, layer.bias)]
        if network.shared_raw_stdev is not None:
            parameters.append(network.shared_raw_stdev)
        arrays = _checked(arrays_of(parameters))
        links = np.array([*network.body.links, False], np.uint8)
        count = 2 * len(layers)
        layout = network.policy_layout
        self._policy = (
            tuple(arrays[0:count:2]),
            tuple(arrays[1:count:2]),
            links,
            ACTIVATION_CODES[network.body.activation],
            (layout.value, layout.mean, layout.stdev, int(layout.bounded)),
            arrays[count] if len(arrays) > count else np.empty(0, np.float32),
            self._scaling.statistics.numpy(),
        )
        width = max(max(array.shape) for array in arrays)
        self._scratch = np.zeros((3, width), np.float32)

    def act(
        self,
        lane: int,
        step_index: int,
        observation: Floats,
        *,
        greedy: bool = False,
        steps: int = 0,
    ) -> Action:
        """Draw an action at one raw observation, float64, contiguous, shape (O,).

        ``greedy`` takes the mean. ``steps``, of the episode so far, matter to correlated noise.
        Arrays of the result are fresh.
        """
        self._check(observation.shape, (self._network.observation_size,))
        drawn = np.empty((3, self.action_size), np.float32)
        value = act_row(
            *self._policy,
            observation,
            self._scratch,
            self._key,
            step_index,
            lane,
            self.noise.decay,
            self.noise.lanes,
            min(steps, self._reach),
            greedy,
            drawn,
        )
        known = value if self.has_value else None
        return Action(drawn[0], drawn[1:].reshape(-1), known)

    def values(self, observations: Floats) -> Floats32:
        """V(s) of raw observations, float64 (k, O) to float32 (k,); zeros where there is none."""
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
        evaluate_rows(
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


def _checked(arrays: list[NDArray[Any]]) -> list[Floats32]:
    for array in arrays:
        if array.dtype != np.float32 or not array.flags.c_contiguous:
            raise ConfigError(
                f"the actor reads contiguous float32 weights, not {array.dtype} of shape "
                f"{array.shape}"
            )
    return arrays
