"""Warm parents of the processes that these tests kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.nursery import Nursery, nursery


@pytest.fixture(scope="session")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Forks writers; has imported storage alone."""
    with nursery(tmp_path_factory.mktemp("writers")) as made:
        yield made


@pytest.fixture(scope="session")
def learners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Forks the ``sharpwave`` command, warmed up for collecting and training."""
    with nursery(tmp_path_factory.mktemp("learners"), learning=True) as made:
        yield made
