"""Policies: what acts in an environment, seen from the collector."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from storage.kernel import Floats, Floats32, Integers, kernel
from storage.layout import BehaviourKind
from storage.randomness import normal_pair, philox, stream_key, uniform_double
from storage.spaces import flatten_space, is_box
from training.acting.action_layout import ActionLayout
from training.acting.action_mapping import ActionMapping
from training.acting.noise import EpisodeClock
from training.environments.observation import ObservationReader

if TYPE_CHECKING:
    from gymnasium import Space
    from numpy.typing import NDArray

    from storage.environment_spec import EnvironmentSpec
    from training.acting.actor import GaussianActor

__all__ = ["GaussianPolicy", "Policy", "PolicyStep", "RandomPolicy"]

_RANDOM = "random policy"


class PolicyStep(NamedTuple):
    """One decision: what the environment receives, and all that the store keeps of its origin."""

    action: Any
    """In the action space, of its dtype."""
    raw_action: Floats32 | None
    """The draw before scaling and clipping, (A,); None unless all actions are boxes."""
    behaviour: Floats32 | None
    """Parameters of mu, (K,): mean then standard deviation, or the probability of every action;
    None where ``behaviour_kind`` needs none."""
    behaviour_kind: int
    """A `storage.layout.BehaviourKind`."""
    value: float | None
    """V(s); None where the policy has no value function."""


class Policy(Protocol):
    """What acts.

    Contract. `act` is called once an environment step, with the lane, the number of the environment
    step in the whole run, and the raw observation of that lane, which it must not change or keep.
    Random draws are a pure function of the policy's seed, ``step_index`` and ``lane``: no two calls
    of a run share them, and repeating a call repeats the action. Arrays that it returns are never
    written to again. Actions lie in the space: those of a foreign policy that do not are refused by
    the writer, not clipped. `value` is called at observations that are not acted on, such as the
    last of an episode. `begin` is called before the first `act` of a lane's episode, and where one
    that was left open goes on: noise that is correlated along an episode begins anew there.
    """

    def begin(self, lane: int, steps: int) -> None:
        """An episode of the lane begins, or goes on after so many steps of its own."""
        ...

    def act(
        self, lane: int, step_index: int, observation: Any, *, greedy: bool = False
    ) -> PolicyStep:
        """Decide at one raw observation; ``greedy`` asks for the best action, without noise."""
        ...

    def value(self, observation: Any) -> float | None:
        """V(s) of one raw observation; None where the policy has no value function."""
        ...


class GaussianPolicy:
    """Acts with a `GaussianActor` in the spaces of an environment (a `Policy`).

    The raw action is mapped affinely to the box and clipped; the store keeps it, so that importance
    ratios are exact. Where the actor's noise is correlated along an episode, a step's behaviour
    given the steps before is not the stored Gaussian, which is then marked as nominal.

    Raises:
        UnsupportedSpaceError: the action space has a part that is no Box.

    """

    def __init__(self, actor: GaussianActor, spec: EnvironmentSpec) -> None:
        self._actor = actor
        self._read = ObservationReader(flatten_space(spec.observation_space, "observation"))
        self._mapping = ActionMapping(spec.action_space)
        noise = actor.noise
        self._clock = EpisodeClock(noise.lanes) if noise.decay else None
        self._kind = int(BehaviourKind.NOMINAL_GAUSSIAN if noise.decay else BehaviourKind.GAUSSIAN)

    def begin(self, lane: int, steps: int) -> None:
        """Correlated noise begins anew, or goes on after so many steps."""
        if self._clock is not None:
            self._clock.begin(lane, steps)

    def act(
        self, lane: int, step_index: int, observation: Any, *, greedy: bool = False
    ) -> PolicyStep:
        """Draw an action, or take the policy's mean if ``greedy``."""
        steps = 0
        if self._clock is not None and not greedy:
            steps = self._clock.steps(lane, step_index)
        raw, behaviour, value = self._actor.act(
            lane, step_index, self._read(observation), greedy=greedy, steps=steps
        )
        return PolicyStep(self._mapping.to_action(raw), raw, behaviour, self._kind, value)

    def value(self, observation: Any) -> float | None:
        """V(s) of one raw observation; None where the network has no such output."""
        if not self._actor.has_value:
            return None
        return float(self._actor.values(self._read(observation)[None])[0])


class RandomPolicy:
    """Draws uniformly over an action space, whatever the observation (a `Policy`).

    - Bounded boxes: uniform over the box, raw actions in [-1, 1], behaviour kind 3.
    - Boxes of which a dimension lacks a bound: no uniform exists, so every raw action is standard
      normal, kind 1.
    - Discrete, MultiDiscrete, MultiBinary and products of them: every action alike, kind 2, with
      the probabilities of all factors concatenated.
    - Boxes together with discrete parts: each as above, kind 0, because no column layout holds such
      a behaviour.

    ``greedy`` changes nothing: no action is better than another.
    """

    def __init__(self, space: Space[Any], *, seed: int) -> None:
        self._layout = ActionLayout(space)
        self._key = stream_key(seed, _RANDOM)
        low, high = self._layout.low, self._layout.high
        self._size = self._layout.size
        self._bounds = np.stack([low, high])
        boxes = np.concatenate([np.full(leaf.size, is_box(leaf)) for leaf in self._layout.leaves])
        self._counts = np.zeros(boxes.size, np.int64)
        self._counts[~boxes] = (high - low)[~boxes] + 1
        self._normal = not np.isfinite(self._bounds).all()
        self._continuous = bool(boxes.all())
        self._kind = int(self._behaviour_kind(boxes))
        self._behaviour = self._constant_behaviour()

    def begin(self, lane: int, steps: int) -> None:
        """Nothing of this policy is tied to an episode."""

    def act(
        self,
        lane: int,
        step_index: int,
        observation: Any,  # noqa: ARG002
        *,
        greedy: bool = False,  # noqa: ARG002
    ) -> PolicyStep:
        """Draw an action; the observation does not matter."""
        numbers = self._layout.empty()
        raw = np.empty(self._size, np.float32)
        _draw(self._key, step_index, lane, self._bounds, self._counts, self._normal, numbers, raw)
        action = self._layout.arrange(numbers)
        return PolicyStep(
            action, raw if self._continuous else None, self._behaviour, self._kind, None
        )

    def value(self, observation: Any) -> None:  # noqa: ARG002
        """No value function: None."""
        return

    def _behaviour_kind(self, boxes: NDArray[np.bool_]) -> BehaviourKind:
        if not boxes.any():
            return BehaviourKind.CATEGORICAL
        if not boxes.all():
            return BehaviourKind.UNKNOWN
        return BehaviourKind.GAUSSIAN if self._normal else BehaviourKind.UNIFORM

    def _constant_behaviour(self) -> Floats32 | None:
        size = self._size
        if self._kind == BehaviourKind.GAUSSIAN:
            return np.concatenate([np.zeros(size, np.float32), np.ones(size, np.float32)])
        if self._kind == BehaviourKind.CATEGORICAL:
            return np.repeat(1.0 / self._counts, self._counts).astype(np.float32)
        return None


@kernel
def _draw(
    key: tuple[np.uint64, np.uint64],
    step: int,
    lane: int,
    bounds: Floats,
    counts: Integers,
    normal: bool,
    numbers: Floats | Floats32,
    raw: Floats32,
) -> None:
    """Fill the numbers of one action (A,), and the raw action where a number is continuous.

    The rows of ``bounds`` (2, A) are low and high.
    """
    low, high = bounds[0], bounds[1]
    for j in range(counts.shape[0]):
        block = philox(key[0], key[1], np.uint64(step), np.uint64(lane), np.uint64(j), np.uint64(0))
        uniform = uniform_double(block[0])
        if counts[j]:
            numbers[j] = low[j] + min(math.floor(uniform * counts[j]), counts[j] - 1)
            continue
        draw = normal_pair(block[0], block[1])[0] if normal else 2.0 * uniform - 1.0
        raw[j] = draw
        draw = np.float64(raw[j])
        if math.isfinite(low[j]) and math.isfinite(high[j]):
            draw = low[j] + (0.5 * high[j] - 0.5 * low[j]) * (draw + 1.0)
        numbers[j] = min(max(draw, low[j]), high[j])
