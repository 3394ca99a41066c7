"""Counter-based randomness: every number is a pure function of (seed, purpose, index).

A stream is a Philox4x64-10 key made from a seed and a purpose; what a stream gives depends on the
counter alone, so a checkpoint saves indices and never a generator's state, and streams of
different purposes never share a number. Philox: Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", SC 2011. `numpy.random.Philox` advances its counter before its first block: its block
for counter c is `philox` at c + 1.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from storage.errors import ConfigError
from storage.kernel import kernel, multiply_high

__all__ = [
    "bounded",
    "checked_seed",
    "derive_seed",
    "normal_pair",
    "philox",
    "stream_key",
    "uniform_double",
]

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_ELEVEN = np.uint64(11)


def _digest(seed: int, purpose: str, indices: tuple[int, ...], size: int) -> bytes:
    text = "\0".join([str(int(seed)), purpose, *(str(int(index)) for index in indices)])
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def checked_seed(seed: Any) -> int:
    """A seed as an int; ConfigError for anything that is no whole number."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return int(seed)
    raise ConfigError(f"seed={seed!r}: give a whole number")


def stream_key(seed: int, purpose: str) -> tuple[np.uint64, np.uint64]:
    """The Philox key of the stream (seed, purpose); the same on every machine and release.

    >>> stream_key(0, "replay draws") == stream_key(0, "replay draws")
    True
    """
    digest = _digest(seed, purpose, (), 16)
    return (
        np.uint64(int.from_bytes(digest[:8], "little")),
        np.uint64(int.from_bytes(digest[8:], "little")),
    )


def derive_seed(seed: int, purpose: str, *indices: int) -> int:
    """A seed in [0, 2**31) for something that has a generator of its own.

    `derive_seed(run_seed, "reset", lane, episode)` seeds an environment's reset.
    """
    return int.from_bytes(_digest(seed, purpose, indices, 4), "little") & 0x7FFFFFFF


@kernel
def philox(
    k0: np.uint64, k1: np.uint64, c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """One Philox4x64-10 block: four uint64 of key (k0, k1) at counter (c0, c1, c2, c3)."""
    for _ in range(10):
        high_0 = multiply_high(_MULTIPLIER_0, c0)
        high_1 = multiply_high(_MULTIPLIER_1, c2)
        low_0 = _MULTIPLIER_0 * c0
        low_1 = _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@kernel
def uniform_double(bits: np.uint64) -> float:
    """A float64 in [0, 1) from the upper 53 bits."""
    return np.float64(bits >> _ELEVEN) * (1.0 / 9007199254740992.0)


@kernel
def bounded(bits: np.uint64, bound: int) -> np.int64:
    """An int64 in [0, bound), bound < 2**53; its bias, bound / 2**64, cannot be measured."""
    return np.int64(multiply_high(bits, np.uint64(bound)))


@kernel
def normal_pair(first: np.uint64, second: np.uint64) -> tuple[float, float]:
    """Two independent standard normal float64 (Box-Muller); |z| <= 8.6."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform_double(first)))
    angle = 2.0 * math.pi * uniform_double(second)
    return radius * math.cos(angle), radius * math.sin(angle)
