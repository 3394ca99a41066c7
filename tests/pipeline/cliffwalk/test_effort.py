"""The time that is told before a study begins."""

from __future__ import annotations

import pytest

from pipeline.cliffwalk.effort import effort_text, seconds_of
from training.cliffwalk.sampler import Sampler
from training.cliffwalk.trial import Trial


def trials(n: int, count: int, *samplers: Sampler) -> list[Trial]:
    return [Trial(n, sampler, seed=seed) for sampler in samplers for seed in range(count)]


def test_a_state_more_doubles_it() -> None:
    samplers = Sampler("uniform"), Sampler("per"), Sampler("pser-add", "max")
    assert seconds_of(trials(13, 3, *samplers)) == 2 * seconds_of(trials(12, 3, *samplers))


def test_each_sampler_takes_its_own_time() -> None:
    """Of n = 16: uniform 9 s to 11 s, PSER from max 14 s, from epsilon 1 s, as measured."""
    assert seconds_of(trials(16, 1, Sampler("uniform"))) == pytest.approx(10.6, abs=0.1)
    assert seconds_of(trials(16, 1, Sampler("pser-max", "max"))) == pytest.approx(13.8, abs=0.1)
    assert seconds_of(trials(16, 1, Sampler("pser-max"))) == pytest.approx(1.0, abs=0.1)
    assert seconds_of(trials(16, 9, Sampler("oracle"))) == 0.0


@pytest.mark.parametrize(
    ("n", "count", "text"),
    [
        (8, 100, ""),
        (16, 20, "some 5 min of one core"),
        (16, 100, "some 25 min of one core"),
        (20, 1000, "some 60 h of one core"),
    ],
)
def test_words(n: int, count: int, text: str) -> None:
    assert effort_text(trials(n, count, Sampler("pser-max", "max"))) == text
