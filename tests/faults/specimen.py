"""Stores that have one of everything, and everything that anybody can read of a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zarr
from gymnasium import spaces

import storage
from storage.layout import data_offset
from storage.overlay import OVERLAY_COLUMNS
from tests.storage.stacked import Stacked
from tests.storage.zoo import SPACES, spec

__all__ = ["everything_read", "kind_of", "make_nested", "make_stacked"]


def make_nested(path: Path) -> Path:
    """Nested spaces, info, lost lives, five segments, an overlay, and an episode repaired away."""
    space = spaces.Dict({"arm": SPACES["dict"], "more": SPACES["tuple"]})
    environment = spec(space, SPACES["discrete_start"])
    store = storage.create(path, environment, info={"x": "f4"}, life_loss=True)
    rng = np.random.default_rng(1)
    space.seed(1)
    with store.writer(lanes=2, row_budget=60, capacity=512, run="specimen") as writer:
        for episode in range(24):
            lane, length = episode % 2, int(rng.integers(1, 20))
            writer.begin(lane, space.sample(), seed=episode, info={"x": 0.5})
            for t in range(length):
                writer.step(
                    lane,
                    action=int(rng.integers(-3, 1)),
                    reward=float(rng.normal()),
                    observation=space.sample(),
                    terminated=t == length - 1 and episode % 3 > 0,
                    truncated=t == length - 1 and episode % 3 == 0,
                    life_lost=bool(t % 2),
                    info={"x": t} if t % 2 else None,
                )
    damage_and_repair(path)
    with storage.open(path, mode="r+") as store:
        overlay = store.overlay("main", mode="r+")
        for info in store.segments:
            segment = overlay.segment(info.id, info.rows)
            for column in OVERLAY_COLUMNS:
                values = (
                    rng.integers(0, 2, info.rows) if column.name == "far" else rng.random(info.rows)
                )
                segment.array(column.name)[:] = values
            overlay.publish(info.id, info.rows)
        overlay.close()
    return path


def damage_and_repair(path: Path) -> None:
    """A flipped bit of a reward, and the repair that takes its episode out."""
    with storage.open(path) as store:
        start = int(store.records(1)["start"][1])
    flip(path / "steps.zarr/000001/reward/c.0", data_offset(512) + 8 * start)
    assert not storage.verify(path).sound
    storage.repair(path)
    assert storage.verify(path).sound


def flip(file: Path, at: int, mask: int = 1) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ mask]))


def make_stacked(path: Path) -> Path:
    """Stacks of frames under two keys, three segments."""
    shown = Stacked(keys=2)
    with shown.create(path).writer(row_budget=40, capacity=256, run="stacks") as writer:
        for episode in range(12):
            frames = shown.frames(episode, 4 + episode)
            shown.write(writer, frames, terminated=episode % 2 == 0)
    return path


def kind_of(name: str) -> str:
    """What kind of file a path below a store is."""
    parts = Path(name).parts
    top, last = parts[0], parts[-1]
    if top == "log":
        return {"store.json": "copy of the root metadata"}.get(
            last, "commit log" if last.endswith(".log") else "open note"
        )
    if last.endswith(".lock"):
        return "lock file"
    if top == "steps.zarr" and len(parts) == 2:
        return "root metadata"
    if top in ("steps.zarr", "overlays") and last == "zarr.json":
        owner = "overlay" if top == "overlays" else "segment"
        return f"{owner}'s metadata"
    named = {
        "steps.zarr": "column",
        "overlays": "overlay column",
        "episodes": "episode table",
        "quarantine": "quarantine",
    }
    return named.get(top, top)


def everything_read(path: Path) -> Iterator[tuple[str, str]]:
    """Names and digests of what every public reader gives."""
    with storage.open(path) as store:
        yield "table", _digest(store.episodes.to_pydict())
        yield "description", _digest([store.schema.to_json(), store.env_spec.to_json()])
        for number, episode in enumerate(store.iterate_episodes()):
            yield f"episode {number}", _digest([repr(episode.record), episode.columns])
            yield f"observation {number}", _digest(episode.observation)
        for name, array in store.to_dask().items():
            yield f"dask {name}", _digest(array.compute())
        for overlay in sorted((path / "overlays").glob("*.zarr")):
            yield from _read_overlay(store, overlay.stem)
    yield from _read_zarr(path / "steps.zarr", "steps")
    for table in sorted((path / "episodes").glob("*.arrow")):
        yield table.name, _digest(pa.ipc.open_file(table).read_all().to_pydict())


def _read_overlay(store: storage.Store, name: str) -> Iterator[tuple[str, str]]:
    overlay = store.overlay(name)
    for info in store.segments:
        segment = overlay.segment(info.id, info.rows)
        for column in OVERLAY_COLUMNS:
            yield f"overlay {info.id} {column.name}", _digest(segment.array(column.name))
    yield from _read_zarr(overlay.path, "overlay")


def _read_zarr(path: Path, name: str) -> Iterator[tuple[str, str]]:
    for segment in sorted(path.iterdir()):
        if segment.is_dir():
            group = zarr.open_group(segment, mode="r")
            for key, array in sorted(group.arrays()):
                alone = zarr.open_array(segment / key, mode="r")
                yield f"{name} {segment.name} {key}", _digest([array[...], alone[...]])


def _digest(value: Any) -> str:
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()


def _feed(sha: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        sha.update(f"{value.dtype}{value.shape}".encode())
        sha.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        _feed(sha, [item for pair in value.items() for item in pair])
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(sha, item)
    else:
        sha.update(repr(value).encode())
