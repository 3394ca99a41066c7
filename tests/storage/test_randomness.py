"""The counter-based streams: equal to numpy's Philox, uniform, and independent by purpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.randomness import (
    bounded,
    derive_seed,
    normal_pair,
    philox,
    stream_key,
    uniform_double,
)

WORDS = st.integers(0, 2**64 - 1)


def block(key: tuple[int, int], counter: tuple[int, int, int, int]) -> list[int]:
    return [int(word) for word in philox(*map(np.uint64, (*key, *counter)))]


@settings(max_examples=50, deadline=None)
@given(st.tuples(WORDS, WORDS), st.tuples(st.integers(1, 2**64 - 1), WORDS, WORDS, WORDS))
def test_philox_equals_numpy(key, counter) -> None:
    before = [counter[0] - 1, *counter[1:]]  # numpy advances its counter before the first block
    generator = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(before, np.uint64))
    assert block(key, counter) == generator.random_raw(4).tolist()


def test_known_answer() -> None:
    """The all-zero and all-one vectors of Random123's known-answer file."""
    assert block((0, 0), (0, 0, 0, 0)) == [
        0x16554D9ECA36314C,
        0xDB20FE9D672D0FDC,
        0xD7E772CEE186176B,
        0x7E68B68AEC7BA23B,
    ]
    ones = 2**64 - 1
    assert block((ones, ones), (ones,) * 4) == [
        0x87B092C3013FE90B,
        0x438C3C67BE8D0224,
        0x9CC7D7C69CD777B6,
        0xA09CAEBF594F0BA0,
    ]


def test_streams_are_told_apart_by_seed_and_purpose() -> None:
    keys = {stream_key(seed, purpose) for seed in (0, 1, 2) for purpose in ("a", "b", "ab")}
    assert len(keys) == 9
    assert stream_key(1, "a") == stream_key(1, "a")


def test_stream_keys_never_change_between_releases() -> None:
    assert [int(word) for word in stream_key(0, "replay draws")] == [
        10689162182663396274,
        4211661057919972806,
    ]
    assert derive_seed(7, "reset", 0, 1) == 1389164555


def test_derived_seeds_fit_an_environment_and_differ() -> None:
    seeds = {derive_seed(7, "reset", lane, episode) for lane in range(8) for episode in range(250)}
    assert len(seeds) == 2000
    assert min(seeds) >= 0
    assert max(seeds) < 2**31
    assert derive_seed(7, "reset", 1, 23) != derive_seed(7, "reset", 12, 3)


@pytest.mark.parametrize("bits", [0, 1, 2**11, 2**63, 2**64 - 1])
def test_uniform_double_and_bounded_stay_in_range(bits: int) -> None:
    assert uniform_double(np.uint64(bits)) == (bits >> 11) / 2**53
    assert 0.0 <= uniform_double(np.uint64(bits)) < 1.0
    for bound in (1, 2, 3, 2**40 + 1):
        assert bounded(np.uint64(bits), bound) == (bits * bound) >> 64


def test_normals_have_the_moments_and_tails_of_a_normal() -> None:
    key = stream_key(3, "test normals")
    pairs = []
    for index in range(20_000):
        words = [np.uint64(word) for word in block(key, (index, 0, 0, 0))]
        pairs += [normal_pair(words[0], words[1]), normal_pair(words[2], words[3])]
    draws = np.array(pairs)
    assert abs(draws.mean()) < 5 / np.sqrt(draws.size)
    assert abs(draws.var() - 1) < 5 * np.sqrt(2 / draws.size)
    assert abs(np.mean(draws[:, 0] * draws[:, 1])) < 5 / np.sqrt(len(draws))
    assert abs(np.mean(np.abs(draws) > 2) - 0.0455) < 0.004
    assert np.isfinite(normal_pair(np.uint64(2**64 - 1), np.uint64(0))).all()
