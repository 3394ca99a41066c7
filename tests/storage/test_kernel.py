"""The address arithmetic of kernels, and their compilation where nothing can be cached."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest

import storage.kernel as kernels
from storage.kernel import (
    address_of,
    copy_bytes,
    kernel,
    load_f4,
    load_f8,
    load_i4,
    load_i8,
    load_u1,
    multiply_high,
    prefetch,
    store_f4,
    store_i4,
    store_i8,
    store_u1,
)


@kernel
def _load_all(address: int) -> tuple[int, int, int, float, float]:
    return (
        load_u1(address),
        load_i4(address),
        load_i8(address),
        load_f4(address),
        load_f8(address),
    )


@kernel
def _store_all(address: int) -> None:
    store_u1(address, np.uint8(200))
    store_i4(address + 1, np.int32(-5))
    store_i8(address + 5, np.int64(-(2**40)))
    store_f4(address + 13, np.float32(0.1))


@kernel
def _copy(target: int, source: int, count: int) -> None:
    prefetch(source)
    copy_bytes(target, source, count)


@kernel
def _product(left: np.uint64, right: np.uint64) -> np.uint64:
    return multiply_high(left, right)


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_loads_of_every_width_and_alignment(offset: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, 16).astype(np.uint8)
    got = _load_all(address_of(data) + offset)
    wanted = [
        data[offset : offset + np.dtype(kind).itemsize].view(kind)[0]
        for kind in ("u1", "<i4", "<i8", "<f4", "<f8")
    ]
    np.testing.assert_array_equal(got, wanted)


def test_stores_touch_their_own_bytes_only() -> None:
    data = np.full(18, 7, np.uint8)
    _store_all(address_of(data))
    assert data[0] == 200
    assert data[1:5].view("<i4")[0] == -5
    assert data[5:13].view("<i8")[0] == -(2**40)
    assert data[13:17].view("<f4")[0] == np.float32(0.1)
    assert data[17] == 7


@pytest.mark.parametrize("count", [0, 1, 88, 5000])
def test_copies_exactly_the_bytes(count: int) -> None:
    source = np.random.default_rng(1).integers(0, 256, count + 1).astype(np.uint8)
    target = np.zeros(count + 1, np.uint8)
    _copy(address_of(target), address_of(source), count)
    assert target.tolist() == [*source[:count].tolist(), 0]


def test_prefetch_of_a_wild_address_does_no_harm() -> None:
    _copy(0, 0, 0)
    _copy(12345, 12345, 0)


@pytest.mark.parametrize("left", [0, 1, 2**32, 2**63 + 12345, 2**64 - 1])
@pytest.mark.parametrize("right", [0, 3, 2**33 + 1, 2**64 - 1])
def test_multiply_high(left: int, right: int) -> None:
    assert _product(np.uint64(left), np.uint64(right)) == (left * right) >> 64


def test_a_kernel_compiles_where_no_cache_can_be_written(monkeypatch) -> None:
    def njit(cache: bool = False, **options: object):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(kernels, "njit", njit)
    double = kernel(lambda x: 2 * x)
    assert double(21) == 42


def test_no_kernel_sorts_by_argument() -> None:
    """Numba may keep a sort and an argsort on disk under one name, and then run the other one."""
    root = Path(kernels.__file__).parents[1]
    modules = [*root.glob("storage/**/*.py"), *root.glob("training/**/*.py")]
    compiled = [path for path in modules if "@kernel" in path.read_text(encoding="utf-8")]
    assert len(compiled) > 20
    for path in compiled:
        assert "argsort(" not in path.read_text(encoding="utf-8"), path
