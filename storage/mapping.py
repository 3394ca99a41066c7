"""Memory maps whose descriptor is closed at once.

Python's own ``mmap`` keeps a duplicate of the descriptor for as long as the map lives; a store of
a thousand column files would use up the process's limit. Here the map is made through libc, and
unmapped when the last array over it is gone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from storage.containment import open_regular
from storage.errors import MapLimitError
from storage.machine import map_limit

__all__ = ["drop_pages", "expect_random", "map_file", "sync_pages"]

_PROT_READ = 1
_PROT_WRITE = 2
_MAP_SHARED = 1
_MS_SYNC = 4
_MADV_RANDOM = 1
_MADV_DONTNEED = 4
_PAGE = os.sysconf("SC_PAGESIZE")
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.msync.argtypes = _libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _unmap(address: int, length: int) -> None:
    _libc.munmap(address, length)


def _map(descriptor: int, length: int, writable: bool, path: Path) -> int:
    protection = _PROT_READ | _PROT_WRITE if writable else _PROT_READ
    address = _libc.mmap(None, length, protection, _MAP_SHARED, descriptor, 0)
    if address is None or address == _FAILED:
        code = ctypes.get_errno()
        what = f"cannot map {length:,} bytes of {path}: {os.strerror(code)}"
        if code == errno.ENOMEM:
            raise MapLimitError(
                f"{what}. A process may have {map_limit() or 0:,} maps, one for each column of "
                "each segment of a window: lower the window, or raise vm.max_map_count"
            )
        raise OSError(code, what, str(path))
    return int(address)


def map_file(path: Path, length: int, *, writable: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Map the first ``length`` bytes of a file, shared; returns them as uint8 array.

    ``length`` may exceed the file: bytes beyond its end must not be touched until the file has
    grown over them. A read-only map can never be made writable.
    """
    descriptor = open_regular(path, os.O_RDWR if writable else os.O_RDONLY)
    try:
        address = _map(descriptor, length, writable, path)
    finally:
        os.close(descriptor)
    buffer = (ctypes.c_ubyte * length).from_address(address)
    finalizer = weakref.finalize(buffer, _unmap, address, length)
    finalizer.atexit = False
    memory = memoryview(buffer)
    return np.frombuffer(memory if writable else memory.toreadonly(), dtype=np.uint8)


def sync_pages(array: np.ndarray[Any, Any], path: Path) -> None:
    """Wait until the device holds the pages of a mapped, contiguous array of the file at ``path``.

    Raises OSError where the device could not take them: then nobody knows what it holds of them.
    """
    address, length = _pages(array)
    if length and _libc.msync(address, length, _MS_SYNC):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))


def drop_pages(array: np.ndarray[Any, Any]) -> None:
    """Let this process's pages of a mapped, contiguous array go; touching them reads them anew.

    Changes that were made stay with the file: the page cache has them.
    """
    address, length = _pages(array)
    if length:
        _libc.madvise(address, length, _MADV_DONTNEED)


def expect_random(array: np.ndarray[Any, Any]) -> None:
    """Have the kernel read no more of a mapped, contiguous array than what is touched.

    Otherwise it reads 128 KiB around each page that is not in memory.
    """
    address, length = _pages(array)
    if length:
        _libc.madvise(address, length, _MADV_RANDOM)


def _pages(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Address and length of the whole pages that an array lies on."""
    first = array.ctypes.data // _PAGE * _PAGE
    return first, array.ctypes.data + array.nbytes - first if array.nbytes else 0
