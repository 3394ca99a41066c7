"""What two stores must share to be called the same."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np

from storage.opening import open as open_store
from storage.store import Store

__all__ = ["content_hash"]

_RECORD_FIELDS = ("length", "ending", "seed_known", "seed")


def content_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 over the schema, the spaces and every byte of all committed episodes, in order.

    Steps, order, endings, seeds and behaviour count. Times, UUIDs, process ids, run names, how
    the rows are cut into segments and overlays do not.
    """
    with open_store(path) as store:
        digest = hashlib.sha256(_description(store))
        logs = [store.log(info.id) for info in store.segments]
        for name in _RECORD_FIELDS:
            digest.update(_field(name, [log.records for log in logs]))
        for column in store.schema.columns:
            digest.update(_column(store, column.name))
    return digest.hexdigest()


def _description(store: Store) -> bytes:
    described: Any = {"schema": store.schema.to_json(), "environment": store.env_spec.to_json()}
    return json.dumps(described, sort_keys=True).encode()


def _field(name: str, records: list[np.ndarray[Any, Any]]) -> bytes:
    values = [np.ascontiguousarray(part[name]).tobytes() for part in records]
    return hashlib.sha256(b"".join(values)).digest()


def _column(store: Store, name: str) -> bytes:
    digest = hashlib.sha256()
    for info in store.segments:
        if info.rows:
            rows = store.segment(info.id).array(name)
            digest.update(memoryview(np.ascontiguousarray(rows)).cast("B"))  # type: ignore[arg-type]
    return digest.digest()
