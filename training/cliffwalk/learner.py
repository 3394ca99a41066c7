"""Q-learning on Blind Cliffwalk, by a table or by a linear function (Schaul et al., B.1)."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from storage.kernel import Floats, Floats32, Index, Integers, kernel
from storage.randomness import stream_key
from training.cliffwalk.environment import ACTIONS, discount, true_values

__all__ = ["Flags", "Learner", "LearnerKind", "Start", "learn", "mean_squared_error"]

LearnerKind = Literal["tabular", "linear"]
Start = Literal["zero", "normal"]
Flags = npt.NDArray[np.bool_]
START_DEVIATION: Final = 0.1

CONSTANT: Final = 0
DISCOUNT: Final = 1
STEP: Final = 2
"""Places in a learner's numbers: the constant feature, γ, and the step size."""


@kernel
def _value(parameters: Floats, constant: float, place: Index) -> Any:
    return parameters[place] + constant * parameters[parameters.size - 1]


@kernel
def learn(
    parameters: Floats,
    numbers: Floats,
    observation: Integers,
    action: Integers,
    reward: Floats,
    next_observation: Integers,
    terminated: Flags,
    errors: Floats32,
) -> None:
    """One update a transition, in order; `errors` takes |δ| as it was before each update.

    δ = r + γ max_b Q(s', b) - Q(s, a), and θ grows by step · δ · φ(s, a).
    """
    constant = numbers[CONSTANT]
    for i in range(errors.size):
        place = ACTIONS * observation[i] + action[i]
        target = reward[i]
        if not terminated[i]:
            after = ACTIONS * next_observation[i]
            first = _value(parameters, constant, after)
            target += numbers[DISCOUNT] * max(first, _value(parameters, constant, after + 1))
        error = target - _value(parameters, constant, place)
        parameters[place] += numbers[STEP] * error
        parameters[parameters.size - 1] += numbers[STEP] * error * constant
        errors[i] = abs(error)


@kernel
def mean_squared_error(parameters: Floats, numbers: Floats, truth: Floats) -> float:
    """Mean of (Q - Q*)² over all pairs of state and action; `truth` is Q*, float64 [2n]."""
    total = 0.0
    for place in range(truth.size):
        total += (_value(parameters, numbers[CONSTANT], place) - truth[place]) ** 2
    return total / truth.size


class Learner:
    """Q(s, a) = θ · φ(s, a), where φ is one-hot of the pair; `linear` appends a constant 1.

    Args:
        n: States of the environment.
        kind: "tabular", or "linear" with the constant feature, through which every update moves
            all values.
        start: θ is 0 ("zero"), or drawn from a normal distribution of standard deviation 0.1.
        step: Step size.
        seed: Of the drawn θ.
    """

    def __init__(
        self,
        n: int,
        kind: LearnerKind = "tabular",
        start: Start = "zero",
        step: float = 0.25,
        seed: int = 0,
    ) -> None:
        constant = 1.0 if kind == "linear" else 0.0
        self.numbers = np.array([constant, discount(n), step])
        """The constant feature (0 of a table), γ, and the step size."""
        self.truth = true_values(n).ravel()
        """Q*, float64 [2n]."""
        self.parameters = np.zeros(self.truth.size + 1)
        """θ, float64 [2n + 1]; the last one belongs to the constant feature."""
        self.errors = np.zeros(1, np.float32)
        """|δ| of the last update, before it was made, float32 [1]."""
        if start == "normal":
            key = stream_key(seed, "cliffwalk parameters")
            generator = np.random.Generator(np.random.Philox(key=key))
            self.parameters[:] = generator.normal(0.0, START_DEVIATION, self.parameters.size)

    @property
    def values(self) -> Floats:
        """Q, float64 [n, 2]."""
        table: Floats = self.parameters[:-1] + self.numbers[CONSTANT] * self.parameters[-1]
        return table.reshape(-1, ACTIONS)

    def mean_squared_error(self) -> float:
        """Mean of (Q - Q*)² over all pairs of state and action."""
        return mean_squared_error(self.parameters, self.numbers, self.truth)
