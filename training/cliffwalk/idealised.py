"""Simulations of the idealised processes behind Theorem 1, draw by draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from storage.errors import ConfigError
from storage.kernel import Floats, Index, Integers, kernel
from storage.randomness import bounded, philox, stream_key, uniform_double
from training.cliffwalk.environment import transitions

__all__ = ["simulate_per", "simulate_pser", "simulate_uniform"]

Key = np.ndarray[Any, np.dtype[np.uint64]]


@kernel
def _replay_uniformly(
    key: Key, size: Index, copies: Integers, extra: Index, draws: Integers
) -> None:
    """Draws of `size` transitions until one copy of each state was met, the last state first.

    `copies` int64: how many transitions are of use, one state after the other. `extra` draws are
    needed besides.
    """
    zero = np.uint64(0)
    for repeat in range(draws.size):
        count = 0
        words = philox(key[0], key[1], zero, np.uint64(repeat), zero, zero)
        for state in range(copies.size):
            useful = False
            while not useful:
                useful = bounded(words[count & 3], size) < copies[state]
                count += 1
                if count & 3 == 0:
                    block = np.uint64(count >> 2)
                    words = philox(key[0], key[1], block, np.uint64(repeat), zero, zero)
        draws[repeat] = count + extra


@kernel
def _draw(priorities: Floats, share: float) -> Index:
    """The place whose part of the sum of priorities holds `share` of it."""
    rest = share * priorities.sum()
    for place in range(priorities.size):
        rest -= priorities[place]
        if rest < 0.0:
            return place
    return int(np.argmax(priorities))


@kernel
def _replay_sequence(key: Key, n: Index, decay: float, window: Index, draws: Integers) -> None:
    """Draws by priority from the episode of right actions until its first state is learnt."""
    zero = np.uint64(0)
    for repeat in range(draws.size):
        priorities = np.zeros(n)
        priorities[n - 1] = 1.0
        next_state, count = n - 1, 0
        while next_state >= 0:
            words = philox(key[0], key[1], np.uint64(count), np.uint64(repeat), zero, zero)
            drawn = _draw(priorities, uniform_double(words[0]))
            count += 1
            if drawn != next_state:
                continue
            priorities[drawn] = 0.0
            for back in range(1, min(drawn, window) + 1):
                place = drawn - back
                priorities[place] = max(priorities[place], decay**back)
            next_state -= 1
        draws[repeat] = count


def simulate_uniform(n: int, repeats: int, seed: int) -> Integers:
    """Draws of uniform replay, int64 [repeats]."""
    return _uniformly(n, n, repeats, _key(seed, f"uniform {n}"), 0)


def simulate_per(n: int, repeats: int, seed: int, *, error_before: bool = False) -> Integers:
    """Draws of PER, int64 [repeats]: the goal's one, then as if uniformly.

    With `error_before`, a learnt transition keeps its priority until it is drawn once more. That
    is the next draw, since all other priorities are next to nothing.
    """
    extra = n - 1 if error_before else 0
    purpose = f"per {n} before" if error_before else f"per {n}"
    return _uniformly(n, n - 1, repeats, _key(seed, purpose), 1 + extra)


def simulate_pser(
    n: int, decay: float, repeats: int, seed: int, *, window: int | None = None
) -> Integers:
    """Draws of PSER with MAX decay, int64 [repeats].

    Raises:
        ConfigError: a window of no steps, or a decay of 0: nothing would ever be passed on.
    """
    if decay <= 0.0 or (window is not None and window < 1):
        raise ConfigError(
            f"PSER with decay {decay} and window {window} passes nothing on, so the draws would "
            "never end; give a decay above 0 and a window of at least 1 step"
        )
    draws = np.empty(repeats, np.int64)
    key = _key(seed, f"pser {n} {decay!r} {window}")
    _replay_sequence(key, n, decay, n if window is None else window, draws)
    return draws


def _uniformly(n: int, states: int, repeats: int, key: Key, extra: int) -> Integers:
    """Draws for the first `states` states, the latest of which has the fewest copies."""
    draws = np.empty(repeats, np.int64)
    copies = 2 ** np.arange(n - states, n, dtype=np.int64)
    _replay_uniformly(key, transitions(n), copies, extra, draws)
    return draws


def _key(seed: int, purpose: str) -> Key:
    return np.array(stream_key(seed, f"cliffwalk theorem {purpose}"), np.uint64)
