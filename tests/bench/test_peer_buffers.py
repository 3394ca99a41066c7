from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pytest

from bench.bare_gather import BareGather
from bench.cheetah import ACTIONS, EPISODE, OBSERVATIONS
from bench.peer_buffers import PRIORITIZED, UNIFORM, Maker, installed, label
from bench.transitions import Transitions

STEPS = 2**11


@pytest.fixture(scope="module")
def transitions() -> Transitions:
    return Transitions.random(STEPS)


def test_transitions_are_float32_episodes_with_priorities(transitions: Transitions) -> None:
    assert len(transitions) == STEPS
    some = transitions.part(slice(EPISODE - 2, EPISODE + 1))
    assert some["obs"].shape == some["obs_next"].shape == (3, OBSERVATIONS)
    assert some["act"].shape == (3, ACTIONS)
    assert {some[name].dtype for name in ("obs", "act", "rew", "obs_next")} == {
        np.dtype(np.float32)
    }
    assert np.array_equal(some["obs"][1:], some["obs_next"][:-1])
    assert some["truncated"].tolist() == [False, True, False]
    assert not some["terminated"].any()
    assert 0.01 <= transitions.priority.min() < 0.02
    assert 0.99 < transitions.priority.max() <= 1.0


def test_what_is_not_installed_or_does_not_load_is_left_out_with_the_reason(
    transitions: Transitions,
) -> None:
    def unfit(given: Transitions) -> BareGather:
        raise ImportError(f"/a/place/x.so: undefined symbol: {'y' * 99}", path="/a/place/x.so")

    def absent(given: Transitions) -> BareGather:
        raise ModuleNotFoundError("No module named 'no_such_peer'")

    def fine(given: Transitions) -> BareGather:
        return BareGather(len(given), 8)

    makers: dict[str, Maker] = {"no_such_peer": absent, "numba": unfit, "numpy": fine}
    buffers, left_out = installed(makers, transitions)
    assert list(buffers) == [label("numpy")] == [f"numpy {version('numpy')}"]
    assert left_out["no_such_peer"] == "not installed"
    assert left_out["numba"].startswith("does not load here: undefined symbol: yyy")
    assert left_out["numba"].endswith("y…")
    assert len(left_out["numba"]) == 80


@pytest.mark.parametrize("makers", [PRIORITIZED, UNIFORM], ids=["prioritized", "uniform"])
@pytest.mark.parametrize("name", UNIFORM)
def test_each_installed_peer_draws_takes_errors_and_appends(
    makers: dict[str, Maker], name: str, transitions: Transitions
) -> None:
    if name not in makers:
        pytest.skip(f"{name} has no prioritized buffer")
    buffers, left_out = installed({name: makers[name]}, transitions)
    if left_out:
        pytest.skip(f"{name} is left out: {left_out[name]}")
    (buffer,) = buffers.values()
    buffer.append()
    drawn = buffer.draw(32)
    buffer.update(drawn, np.linspace(0.01, 1, 32, dtype=np.float32))
    text = str(drawn).lower()
    assert "obs" in text
    assert ("weight" in text) == (makers is PRIORITIZED)


def test_a_bare_gather_copies_rows_and_reuses_its_buffer() -> None:
    gather = BareGather(100, 24)
    first = gather.draw(16)
    assert first.shape == (16, 24)
    assert (first == 1).all()
    assert gather.draw(16) is first
    assert gather.draw(8) is not first
    rows = np.arange(600, dtype=np.uint8).reshape(100, 6)
    assert {tuple(row) for row in BareGather(100, 6, rows).draw(50)} <= set(map(tuple, rows))
    gather.update(first, np.zeros(16, np.float32))
    gather.append()
