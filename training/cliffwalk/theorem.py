"""Theorem 1 of PSER: expected draws until every state of Blind Cliffwalk is learnt.

Assumptions: learning rate 1; all values 0 at first; a transition's error is 0 until its successor
is learnt; a learnt transition's priority falls to ε → 0, and drawing one whose error is 0 leaves
its priority as it is. "Draws" include the first one of the goal transition.
"""

from __future__ import annotations

from training.cliffwalk.environment import transitions

__all__ = ["expected_per", "expected_per_error_before", "expected_pser", "expected_uniform"]


def expected_uniform(n: int) -> float:
    """M (2 - 2^(1 - n)) with M = 2^(n + 1) - 2 transitions: state i has 2^(n - 1 - i) copies."""
    return transitions(n) * (2.0 - 2.0 ** (1 - n))


def expected_per(n: int) -> float:
    """1 + M (1 - 2^(1 - n)): the goal is drawn at once, the other states as uniformly as ever."""
    return 1.0 + transitions(n) * (1.0 - 2.0 ** (1 - n))


def expected_per_error_before(n: int) -> float:
    """PER whose priorities are set from the error before the update, as every real one's are.

    Each learnt transition but the last is drawn once more, which finds its error to be 0:
    `expected_per` + (n - 1).
    """
    return expected_per(n) + (n - 1)


def expected_pser(n: int, decay: float, window: int | None = None) -> float:
    """1 + Σ_m (1 - ρ^m') / (1 - ρ) for m = 1 … n - 1, where m' = min(m, W), or m without a window.

    Of the m states that are left, those within reach have priorities in proportion 1 : ρ : ρ² …,
    nearest first, and only the nearest is of use.
    """
    total = 1.0
    for left in range(1, n):
        reached = left if window is None else min(left, window)
        total += (1.0 - decay**reached) / (1.0 - decay)
    return total
