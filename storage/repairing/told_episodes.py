"""How many episodes a segment had whose log is lost, as far as anything else tells."""

from __future__ import annotations

import json

import numpy as np

from storage.layout import INNER_ROWS, LARGEST_CAPACITY, RowKind
from storage.verification.blocks import row_blocks
from storage.verification.regular_files import read_file
from storage.verification.store_facts import StoreFacts

__all__ = ["told_episodes"]

_LARGEST_TABLE = 2**28


def told_episodes(facts: StoreFacts, segment: int) -> int | None:
    """By its table, or by the closing rows of its columns; None where neither can be read."""
    told = [each for each in (_by_table(facts, segment), _by_rows(facts, segment)) if each]
    return max(told, default=None)


def _by_table(facts: StoreFacts, segment: int) -> int | None:
    import pyarrow as pa

    try:
        data = read_file(facts.paths.episode_table(segment), _LARGEST_TABLE)
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            count = range(reader.num_record_batches)
            return int(sum(reader.get_batch(number).num_rows for number in count))
    except (OSError, ValueError, pa.ArrowException):
        return None


def _by_rows(facts: StoreFacts, segment: int) -> int | None:
    folder = facts.paths.segment(segment) / "kind"
    try:
        document = json.loads(read_file(folder / "zarr.json"))
        capacity = document["chunk_grid"]["configuration"]["chunk_shape"][0]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(capacity) is not int or capacity % INNER_ROWS or not 0 < capacity <= LARGEST_CAPACITY:
        return None
    column, closings = facts.schema.column("kind"), 0
    try:
        for block in row_blocks(folder / "c.0", column, capacity, capacity):
            closings += int(np.count_nonzero(block.rows == RowKind.CLOSING))
    except OSError:
        return None
    return closings
