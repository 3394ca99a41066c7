from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import storage
from training.cliffwalk.memory import fill_store


@pytest.fixture(scope="session")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, storage.Store]]:
    """Filled stores of n = 2, 4 and 8, opened for reading."""
    folder: Path = tmp_path_factory.mktemp("cliffwalk")
    stores = {}
    for n in (2, 4, 8):
        fill_store(folder / str(n), n, seed=3)
        stores[n] = storage.open(folder / str(n))
    yield stores
    for store in stores.values():
        store.close()
