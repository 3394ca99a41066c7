from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from bench import buffers
from bench.buffers import compare
from bench.effort import Effort
from bench.peer_buffers import Maker
from bench.tables import tables_of
from bench.transitions import Floats32, Transitions

TINY = Effort(0.0, curves=False, compiled_loop=False)


class Plain:
    """A small buffer of numpy arrays without a tree: a peer that is always there."""

    def __init__(self, transitions: Transitions) -> None:
        self.columns = transitions.part(slice(None))
        self.priority = transitions.priority
        self.end = 0

    def draw(self, size: int) -> dict[str, np.ndarray]:
        places = np.arange(size)
        return {"places": places} | {name: each[places] for name, each in self.columns.items()}

    def update(self, drawn: dict[str, np.ndarray], errors: Floats32) -> None:
        self.priority[drawn["places"]] = errors

    def append(self) -> None:
        self.end += 1


class Slow(Plain):
    """Cannot be the fastest one."""

    def draw(self, size: int) -> dict[str, np.ndarray]:
        time.sleep(0.002)
        return super().draw(size)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(**makers: Maker) -> None:
        monkeypatch.setitem(buffers._SCHEMES, "per", makers)
        monkeypatch.setitem(buffers._SCHEMES, "uniform", makers)

    return use


def test_all_parts_beside_every_peer_and_both_beside_the_fastest(
    peers: Callable[..., None], tmp_path: Path
) -> None:
    peers(numba=Slow, numpy=Plain, no_such_peer=Plain)
    figures = compare(tmp_path / "s", "per", 11, (16, 32), TINY)
    lines = [figure.line() for figure in figures]
    (table,) = tables_of(lines)
    rows = table.splitlines()
    assert rows[2] == (
        "| | draw 16 | update 16 | both 16 | draw 32 | update 32 | both 32 | append |"
    )
    assert [row.split(" |")[0] for row in rows[4:]] == [
        "| ours",
        f"| numba {version('numba')}",
        f"| numpy {np.__version__}",
        "| bare gather of packed rows",
        "| no_such_peer",
    ]
    assert "left out: not installed" in rows[-1]
    fastest = [line for line in lines if "table" not in line]
    assert [line["name"] for line in fastest] == [
        "draw and update 16 of 2^11 by priority, beside the fastest peer",
        "draw and update 32 of 2^11 by priority, beside the fastest peer",
    ]
    for line in fastest:
        assert line["limit_name"] == f"numpy {np.__version__}"
        assert line["value"] > 0
        assert line["details"]["row_bytes"] == 170


def test_the_promise_is_of_one_size(peers: Callable[..., None], tmp_path: Path) -> None:
    peers(numpy=Plain)
    assert buffers._TARGETS == {(20, 256): 0.4}
    (figure,) = (f for f in compare(tmp_path / "s", "per", 11, (16,), TINY) if f.place is None)
    assert figure.target is None


def test_uniform_buffers_have_no_updates_and_no_peer_is_no_obstacle(
    peers: Callable[..., None], tmp_path: Path
) -> None:
    peers()
    figures = compare(tmp_path / "s", "uniform", 11, (16,), TINY)
    assert [figure.name for figure in figures] == [
        "uniform replay of 2^11 steps: draw 16, beside bare gather of packed rows"
    ]
