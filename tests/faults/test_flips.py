"""Flipped bytes and truncated files: each is found by verify, or provably changes nothing."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import storage
from storage.column_file import ColumnFile
from storage.episode_table import write_episode_table
from storage.overlay import OVERLAY_COLUMNS
from storage.segment import header_of
from storage.zarr_metadata import encode
from tests.faults.specimen import everything_read, kind_of, make_nested, make_stacked

CLOSED = ("quarantine",)
"""Folders whose files nobody reads; a finding names each file, and that is all it can do."""


@pytest.fixture(scope="module", params=[make_nested, make_stacked], ids=["nested", "stacks"])
def specimen(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request.param(tmp_path_factory.mktemp("specimen") / "store")


@contextmanager
def damaged(file: Path, chance: random.Random) -> Iterator[tuple[str, int]]:
    """A file with one byte flipped, or cut short; put back afterwards. Gives what, and where."""
    before = file.read_bytes()
    at = chance.randrange(len(before))
    if chance.random() < 0.3:
        what, after = "truncation", before[:at]
    else:
        mask = chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))
        what, after = "flip", before[:at] + bytes([before[at] ^ mask]) + before[at + 1 :]
    file.write_bytes(after)
    try:
        yield what, at
    finally:
        file.write_bytes(before)


def findings(path: Path) -> set[str]:
    return {str(finding) for finding in storage.verify(path, workers=1).findings}


def uncounted(path: Path, file: Path, at: int, before: bytes) -> bool:
    """Whether a byte stands for nothing, by the kind of its file.

    Lock files hold words for messages, and a boot id whose loss makes readers look twice. Of a
    column, the bytes behind the committed rows are nobody's. Of a table, deriving it again from the
    log gives the bytes that were there; of the root metadata, writing what it says again does (a
    space that became a tab).
    """
    kind = kind_of(str(file.relative_to(path)))
    if kind == "lock file":
        return True
    if kind.endswith("root metadata"):
        return encode(json.loads(file.read_bytes())) == before
    with storage.open(path) as store:
        if kind in ("column", "overlay column"):
            log = store.log(int(file.parent.parent.name))
            columns = (*store.schema.columns, *OVERLAY_COLUMNS)
            column = next(c for c in columns if c.name == file.parent.name)
            return at >= ColumnFile(file.parent, column, header_of(log).capacity).size(log.rows)
        if kind == "episode table":
            log = store.log(int(file.stem))
            again = path / "staging" / file.name
            write_episode_table(again, header_of(log), log.records, path / "staging")
            same = again.read_bytes() == before
            again.unlink()
            return same
    return False


def harmless(path: Path, file: Path, at: int, whole: tuple) -> bool:
    """The byte stands for nothing, the content hash is the same, and so is every public read."""
    before, content, known = whole
    return (
        uncounted(path, file, at, before)
        and storage.content_hash(path) == content
        and dict(everything_read(path)) == known
    )


@pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.soak)])
def test_every_flip_and_truncation_is_found_or_harmless(
    specimen: Path, tmp_path: Path, count: int
) -> None:
    path = tmp_path / "store"
    shutil.copytree(specimen, path)
    quiet, content, known = findings(path), storage.content_hash(path), dict(everything_read(path))
    files: dict[str, list[Path]] = {}
    for file in sorted(each for each in path.rglob("*") if each.is_file() and each.stat().st_size):
        files.setdefault(kind_of(str(file.relative_to(path))), []).append(file)
    table: Counter[tuple[str, str]] = Counter()
    missed = []
    for seed in range(count):
        chance = random.Random(seed)
        kind = chance.choice([kind for kind in sorted(files) if kind not in CLOSED])
        file = chance.choice(files[kind])
        whole = file.read_bytes(), content, known
        with damaged(file, chance) as (what, at):
            if findings(path) - quiet:
                outcome = "found"
            elif harmless(path, file, at, whole):
                outcome = "harmless"
            else:
                outcome = "missed"
                missed.append(f"random.Random({seed}): {what} of {file.relative_to(path)} at {at}")
        table[kind, outcome] += 1
    for kind in sorted(files):
        counts = {each: table[kind, each] for each in ("found", "harmless", "missed")}
        print(f"| {kind} | {counts['found']} | {counts['harmless']} | {counts['missed']} |")
    assert not missed, "\n".join(missed)
    assert findings(path) == quiet, "the copy was not put back"
