"""What kernels read of an array object, against what NumPy says of it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage import EnvironmentSpec, array_object, step_plan
from storage.array_object import find, is_known


def test_this_python_and_numpy_are_known() -> None:
    assert is_known()


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 2)])
def test_the_numbers_of_an_array_are_found(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    assert find(array, shape, np.float32) == array.ctypes.data
    assert find(array[...], shape, np.float32) == array.ctypes.data


def test_only_arrays_of_the_dtype_and_shape_and_in_one_piece_are_found() -> None:
    array = np.zeros((3, 4), np.float32)
    assert find(array[1], (4,), "f4") == array[1].ctypes.data
    assert find(array[1:2], (1, 4), "f4") == array[1].ctypes.data
    others = [
        array.view(np.int32),
        array.astype(">f4"),
        array[:, :3],
        array.T,
        array[::-1],
        array[None],
        np.ma.masked_array(array),
        array.tolist(),
        np.float32(1),
        None,
    ]
    assert [find(other, (3, 4), "f4") for other in others] == [0] * len(others)


@pytest.mark.parametrize("code", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_the_number_of_a_scalar_is_found_where_one_is_wanted(code: str) -> None:
    dtype = np.dtype(code)
    scalar = dtype.type(100)
    assert ctypes.string_at(find(scalar, (), dtype), dtype.itemsize) == scalar.tobytes()
    assert find(scalar, (1,), dtype) == 0
    assert find(np.bool_(True), (), dtype) == find(100, (), dtype) == 0


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
