"""Settings of prioritized replay: PER, and what PSER adds to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from storage.errors import ConfigError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["PRIORITY_PRESETS", "PrioritySettings", "SequenceSettings"]

Initial = Literal["max_ever", "max_current", "current_td", "constant"]
_LARGEST: Final = 3.4028234663852886e38
_SMALLEST: Final = 1.1754943508222875e-38
_SMALLEST_SHARE: Final = math.log(1e-84)
"""Log of the smallest positive float32 over the largest, and a little less."""
_FURTHEST: Final = 2**24


@dataclass(frozen=True, slots=True)
class PrioritySettings:
    """How errors become priorities, draws and sampling weights.

    The defaults are the preset ``paper`` (Schaul et al. 2016, proportional; PSER eqs. 3, 4, 10).

    Args:
        alpha: Exponent of the draws, P(i) = p_i^alpha / sum_k p_k^alpha; in [0, 1].
        beta: Exponent of the sampling weights (1 / (N P(i)))^beta at the first draw; in [0, 1].
        beta_final: The exponent after ``beta_draws`` draws, reached linearly.
        beta_draws: Draws until ``beta_final``; a training run that leaves it out takes its planned
            updates, a view by itself then keeps ``beta``.
        epsilon: Added to each error, so that no drawn step is lost for good.
        error: What becomes a priority: "absolute", |error| + epsilon, or "huber", the Huber loss
            of the error (threshold 1) + epsilon.
        exponent: Where alpha acts: on "draws" (the stored priority is the plain one) or already on
            "priorities", before decay and eta (PSER's authors' code).
        initial: Priority of a step that has none yet: "max_ever", the largest that was ever set;
            "max_current", the largest in the window; "current_td", that of its error as computed
            while acting (where there is none: "max_ever"); or "constant".
        initial_constant: The value of "constant"; also what the maxima begin at.
        normalise: Which largest weight the weights are divided by: that of the "batch", or of the
            whole "store", meaning all steps of the window with a priority above 0.
        stratified: Each of a batch's steps comes from its own equal share of the total priority;
            otherwise all are drawn independently.

    Raises:
        ConfigError: a value outside its range, each named.
    """

    alpha: float = 0.6
    beta: float = 0.4
    beta_final: float = 1.0
    beta_draws: int | None = None
    epsilon: float = 1e-5
    error: Literal["absolute", "huber"] = "absolute"
    exponent: Literal["draws", "priorities"] = "draws"
    initial: Initial = "max_ever"
    initial_constant: float = 1.0
    normalise: Literal["batch", "store"] = "batch"
    stratified: bool = True

    def __post_init__(self) -> None:
        """Refuse values outside their range, naming them all."""
        draws = self.beta_draws
        _refuse(
            "priorities",
            [
                *(_unit(name, getattr(self, name)) for name in ("alpha", "beta", "beta_final")),
                _within("epsilon", self.epsilon, 0.0, _LARGEST),
                _within("initial_constant", self.initial_constant, _SMALLEST, _LARGEST),
                (
                    draws is None or (_is_whole(draws) and 1 <= draws < 2**63),
                    f"beta_draws = {draws!r} must be a whole number from 1, or left out",
                ),
                _chosen("error", self.error, ("absolute", "huber")),
                _chosen("exponent", self.exponent, ("draws", "priorities")),
                _chosen("initial", self.initial, get_args(Initial)),
                _chosen("normalise", self.normalise, ("batch", "store")),
                (isinstance(self.stratified, bool), "stratified must be true or false"),
            ],
        )

    def beta_at(self, draw: int) -> float:
        """Exponent of the sampling weights of a draw; the first one is number 1."""
        if self.beta_draws is None:
            return self.beta
        done = min(max(draw - 1, 0) / self.beta_draws, 1.0)
        return self.beta + (self.beta_final - self.beta) * done


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """How a step's priority decays backwards along its episode (PSER).

    Args:
        decay: Factor for each step back (rho of eqs. 5 to 8); in [0, 1).
        window: Steps that are reached back, W; left out: the largest i with decay^i >= 0.01
            (eq. 8).
        mode: "max", p_{n-i} = max(p_n decay^i, p_{n-i}) (eq. 6), or "add", the sum of both, at
            most the largest priority ever set (eq. 7).
        eta: A drawn step keeps at least eta times its priority (eq. 9); 0 switches that off.
        decay_on_insert: Decays from new steps when their episode enters, too.
        stop_at_life_loss: Nothing decays across a life loss, where the store has ``life_lost``.

    Raises:
        ConfigError: a value outside its range, each named.
    """

    decay: float = 0.4
    window: int | None = None
    mode: Literal["max", "add"] = "max"
    eta: float = 0.7
    decay_on_insert: bool = False
    stop_at_life_loss: bool = True

    def __post_init__(self) -> None:
        """Refuse values outside their range, naming them all."""
        window = self.window
        _refuse(
            "sequences",
            [
                (
                    _is_number(self.decay) and 0.0 <= self.decay < 1.0,
                    f"decay = {self.decay!r} must lie in [0, 1)",
                ),
                (
                    window is None or (_is_whole(window) and 0 <= window <= _FURTHEST),
                    f"window = {window!r} must be a whole number of steps up to 2**24, or left out",
                ),
                _chosen("mode", self.mode, ("max", "add")),
                _unit("eta", self.eta),
                *(
                    (isinstance(getattr(self, name), bool), f"{name} must be true or false")
                    for name in ("decay_on_insert", "stop_at_life_loss")
                ),
            ],
        )

    @property
    def reach(self) -> int:
        """W: the window as given, or by eq. 8."""
        if self.window is not None:
            return self.window
        if self.decay < 0.01:
            return 0
        reach = math.floor(math.log(0.01) / math.log(self.decay))
        return min(reach + (self.decay ** (reach + 1) >= 0.01), _FURTHEST)

    def factors(self) -> npt.NDArray[np.float64]:
        """decay^1 … decay^W, as far as any priority times them is more than 0 in float32."""
        reach = self.reach if self.decay > 0.0 else 0
        if reach:
            reach = min(reach, math.ceil(_SMALLEST_SHARE / math.log(self.decay)))
        return np.multiply.accumulate(np.full(reach, self.decay))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within(name: str, value: Any, low: float, high: float) -> tuple[bool, str]:
    text = f"{name} = {value!r} must lie in [{low:.3g}, {high:.3g}]"
    return _is_number(value) and low <= value <= high, text


def _unit(name: str, value: Any) -> tuple[bool, str]:
    return _within(name, value, 0.0, 1.0)


def _chosen(name: str, value: Any, allowed: tuple[str, ...]) -> tuple[bool, str]:
    return value in allowed, f"{name} = {value!r} must be one of {', '.join(allowed)}"


def _refuse(what: str, checks: list[tuple[bool, str]]) -> None:
    wrong = [text for ok, text in checks if not ok]
    if wrong:
        raise ConfigError(f"impossible settings of {what}: " + "; ".join(wrong))


PRIORITY_PRESETS: Final = {
    "paper": PrioritySettings(),
    "dopamine": PrioritySettings(
        alpha=0.5, beta=0.5, beta_final=0.5, epsilon=1e-10, error="huber", exponent="priorities"
    ),
}
"""Values of the papers, and those of PSER's authors' code."""
