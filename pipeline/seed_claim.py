"""One collection a seed: while it writes, no other process begins the same episodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage.errors import ConfigError
from storage.file_lock import FileLock, LockHeldError

if TYPE_CHECKING:
    from storage import Store

__all__ = ["claimed_seed"]


@contextmanager
def claimed_seed(store: Store, seed: int) -> Iterator[None]:
    """Hold ``locks/seed-SEED.lock`` of a store, which ends with this process, however that ends.

    Whoever holds it looks for episodes of the seed afterwards: those of a collection that ended,
    or was killed, are in the store by then.

    Raises:
        ConfigError: another process collects with the seed.
    """
    path = store.paths.locks / f"seed-{seed}.lock"
    try:
        lock = FileLock(path)
    except LockHeldError as holder:
        raise ConfigError(
            f"{store.path} is just being collected with --seed={seed} by {holder}: the same "
            "episodes would be written twice. Give another --seed."
        ) from None
    try:
        lock.sign()
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
