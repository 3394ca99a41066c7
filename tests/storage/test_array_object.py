"""What kernels read of an array object, against what NumPy says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage import EnvironmentSpec, array_object, step_plan
from storage.array_object import data_address, is_known, is_like


def test_this_python_and_numpy_are_known() -> None:
    assert is_known()


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 2)])
def test_data_address(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    assert data_address(id(array)) == array.ctypes.data
    assert data_address(id(array[...])) == array.ctypes.data


def _like(value: object, dtype: str, sizes: tuple[int, ...]) -> bool:
    wanted = np.array(sizes, np.int64)
    kind = np.dtype(dtype)
    return is_like(id(value), id(np.ndarray), id(kind), wanted.size, int(wanted.ctypes.data))


def test_is_like_looks_at_type_dtype_shape_and_contiguity() -> None:
    array = np.zeros((3, 4), np.float32)
    assert _like(array, "f4", (3, 4))
    assert _like(array[1], "f4", (4,))
    assert _like(array[1:2], "f4", (1, 4))
    assert not _like(array, "i4", (3, 4))
    assert not _like(array, "f4", (3, 5))
    assert not _like(array, "f4", (4, 3))
    assert not _like(array, "f4", (3,))
    assert not _like(array.T, "f4", (4, 3))
    assert not _like(array[:, 1], "f4", (3,))
    assert not _like(np.ma.masked_array(array), "f4", (3, 4))
    assert not _like([0.0], "f4", (1,))


@pytest.mark.parametrize("name", ["implementation", "header"])
def test_another_layout_is_not_relied_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    is_known.cache_clear()
    if name == "header":
        monkeypatch.setattr(array_object, "_HEADER", 32)
    else:
        other = type("Implementation", (), {"name": "pypy"})
        monkeypatch.setattr(array_object.sys, "implementation", other)
    assert not is_known()
    monkeypatch.undo()
    is_known.cache_clear()
    assert is_known()


def test_without_the_layout_the_same_bytes_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "a")
    monkeypatch.setattr(step_plan, "is_known", lambda: False)
    _write(tmp_path / "b")
    assert storage.content_hash(tmp_path / "a") == storage.content_hash(tmp_path / "b")


def _write(path: Path) -> None:
    infinite = np.inf
    observations = spaces.Box(-infinite, infinite, (3,), np.float64)
    spec = EnvironmentSpec("Test-v0", observations, spaces.Box(-9, 9, (2,), np.float32))
    draw = np.random.default_rng(0)
    with storage.create(path, spec) as store, store.writer() as writer:
        for seed in range(3):
            writer.begin(0, draw.normal(size=3), seed=seed)
            for step in range(5):
                action, raw = draw.uniform(-1, 1, (2, 2)).astype(np.float32)
                policy = {"raw_action": raw, "behaviour": np.ones(4, np.float32)} if seed else {}
                writer.step(
                    0,
                    action=action,
                    reward=0.5,
                    observation=draw.normal(size=3),
                    terminated=False,
                    truncated=step == 4,
                    **policy,
                )
