"""Other people's readers, on closed stores and on stores that are being written."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import dask
import dask.array as da
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorstore
import xarray as xr
import zarr
from gymnasium import spaces

import storage
from tests.storage.zoo import F4, SPACES, play, spec, tiny_spec


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> storage.Store:
    """Three segments of nested observations of several dtypes."""
    path = tmp_path_factory.mktemp("foreign") / "store"
    observation = spaces.Dict(
        {
            "frame": SPACES["image"],
            "speed": SPACES["scalar_box"],
            "half": SPACES["half"],
            "flag": SPACES["bool_box"],
        }
    )
    observation.seed(3)
    made = storage.create(path, spec(observation, SPACES["discrete_start"]), info={"x": "f4"})
    rng = np.random.default_rng(0)
    with made.writer(row_budget=300) as writer:
        for length in rng.integers(1, 90, 18):
            writer.begin(0, observation.sample())
            for t in range(length):
                writer.step(
                    0,
                    action=int(rng.integers(-3, 1)),
                    reward=float(rng.normal()),
                    observation=observation.sample(),
                    terminated=t == length - 1,
                    truncated=False,
                    behaviour=[0.25] * 4,
                    info={"x": t} if t % 2 else None,
                )
    assert len(made.segments) >= 3
    return made


def test_zarr(store: storage.Store) -> None:
    root = zarr.open_group(store.path / "steps.zarr", mode="r")
    assert root.attrs["format_version"] == 1
    assert root.attrs["store_uuid"] == store.uuid
    assert sorted(name for name, _ in root.members()) == [f"{i.id:06d}" for i in store.segments]
    for info in store.segments:
        group = root[f"{info.id:06d}"]
        assert group.metadata.consolidated_metadata is not None
        assert set(dict(group.members())) == set(store.columns)
        for name in store.columns:
            ours = store.segment(info.id).array(name)
            for array in (
                group[name],
                zarr.open_array(group.store_path.store.root / group.path / name, mode="r"),
            ):
                assert array.dtype == ours.dtype
                np.testing.assert_array_equal(array[...], ours)
            picks = np.array([0, 5, len(ours) - 1])
            np.testing.assert_array_equal(group[name].oindex[picks], ours[picks])


def test_tensorstore(store: storage.Store) -> None:
    for info in store.segments:
        for name in store.columns:
            folder = store.paths.segment(info.id) / name
            kvstore = {"driver": "file", "path": f"{folder}/"}
            array = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}).result()
            np.testing.assert_array_equal(array.read().result(), store.segment(info.id).array(name))
            assert array.domain.labels[0] == "row"


def test_dask(store: storage.Store) -> None:
    ours = store.to_dask()
    with dask.config.set(scheduler="synchronous"):
        for name, array in ours.items():
            expected = store.columns[name][:]
            np.testing.assert_array_equal(array.compute(), expected)
            np.testing.assert_array_equal(
                pickle.loads(pickle.dumps(array))[5:9].compute(), expected[5:9]
            )
            parts = [da.from_zarr(store.paths.segment(i.id) / name) for i in store.segments]
            np.testing.assert_array_equal(da.concatenate(parts).compute(), expected)


def test_xarray(store: storage.Store) -> None:
    ours = store.to_xarray()
    assert ours.sizes["row"] == store.n_rows
    assert ours.attrs["store_uuid"] == store.uuid
    assert ours["observation.frame"].dims == (
        "row",
        *(f"observation.frame_dim_{i}" for i in (1, 2, 3)),
    )
    steps = ours.reward.where(ours.kind == 1)
    assert float(steps.sum()) == pytest.approx(sum(store.episodes["return"].to_pylist()))
    for info in store.segments:
        theirs = xr.open_zarr(store.paths.segment(info.id))
        for name in store.columns:
            np.testing.assert_array_equal(theirs[name].values, store.segment(info.id).array(name))


def test_arrow_pandas_and_duckdb(store: storage.Store) -> None:
    files = [store.paths.episode_table(info.id) for info in store.segments]
    tables = [pa.ipc.open_file(file).read_all() for file in files]
    theirs = pa.concat_tables(tables)
    assert theirs.equals(store.episodes)
    frame = pd.concat([pd.read_feather(file) for file in files])
    assert frame["length"].sum() == store.n_steps
    assert set(frame["ending"]) == {"terminated"}
    total, longest = duckdb.sql("select sum(length), max(length) from theirs").fetchall()[0]
    assert (total, longest) == (store.n_steps, frame["length"].max())


def test_published_tables_equal_ours_while_open(f4: F4) -> None:
    table = pa.ipc.open_file(f4.path / "episodes/000000.arrow").read_all()
    assert table.equals(f4.store.episodes)


def test_a_zarr_listing_never_meets_half_a_segment(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    root = zarr.open_group(store.path / "steps.zarr", mode="r")
    with store.writer(row_budget=2) as writer:
        for episode in range(12):
            play(writer, 0, episode)
            for _, group in root.members():
                assert {array.shape[0] for _, array in group.members()} == {group["kind"].shape[0]}


FRAME = """
import json, statistics, sys, time
from pathlib import Path
import numpy as np, zarr
def memory(field):
    return int(Path("/proc/self/status").read_text().split(field)[1].split()[0])
array = zarr.open_array(sys.argv[1], mode="r")
rows = np.random.default_rng(0).integers(0, array.shape[0], 20)
for row in rows[:3]:
    array[int(row)]
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
before, times = memory("VmRSS:"), []
for row in rows:
    started = time.perf_counter()
    array[int(row)]
    times.append(time.perf_counter() - started)
print(json.dumps({"ms": 1e3 * statistics.median(times), "kib": memory("VmHWM:") - before}))
"""


def test_one_frame_costs_a_foreign_reader_little_memory(tmp_path: Path) -> None:
    import json

    frame = spaces.Box(0, 255, (84, 84), np.uint8)
    store = storage.create(tmp_path / "store", spec(frame, spaces.Discrete(2)))
    image = np.zeros((84, 84), np.uint8)
    with store.writer() as writer:
        writer.begin(0, image)
        for t in range(3000):
            image[0, 0] = t % 256
            writer.step(
                0, action=1, reward=0.0, observation=image, terminated=t == 2999, truncated=False
            )
    folder = store.paths.segment(0) / "observation"
    out = subprocess.run(
        [sys.executable, "-c", FRAME, str(folder)], capture_output=True, text=True, check=True
    )
    cost = json.loads(out.stdout)
    assert cost["kib"] < 5 * 1024, cost


REOPEN = """
import sys, warnings
warnings.simplefilter("error")
import numpy as np, pyarrow as pa, xarray as xr, zarr, dask, dask.array as da, tensorstore
from pathlib import Path
root, count = Path(sys.argv[1]), int(sys.argv[2])
dask.config.set(scheduler="synchronous")
def by_zarr(segment):
    return zarr.open_group(root / "steps.zarr", mode="r")[segment.name]
def by_xarray(segment):
    return xr.open_zarr(segment)
rows_seen, alone_seen, episodes_seen, reads = {}, {}, {}, 0
while reads < count:
    segments = sorted((root / "steps.zarr").glob("0*"))
    for segment in segments[-3:]:
        group = (by_zarr, by_xarray)[reads % 2](segment)
        names = ("observation", "reward", "kind", "action")
        data = {name: np.asarray(group[name]) for name in names}
        rows = {len(values) for values in data.values()}
        assert len(rows) == 1, rows
        (rows,) = rows
        assert rows >= rows_seen.get(segment.name, 0)
        rows_seen[segment.name] = rows
        kind = data["kind"]
        assert rows == 0 or kind[-1] == 2
        assert set(kind.tolist()) <= {1, 2}
        # The oracle of endless: observation = 1000 * episode + step; reward = observation + 1.
        observation, step = data["observation"][:, 0], kind == 1
        assert (data["reward"][step] == observation[step] + 1).all()
        assert (observation[1:][step[:-1]] == observation[:-1][step[:-1]] + 1).all()
        # One array alone follows the group, so it may be behind it, but never go back.
        name = segment / "reward"
        alone = da.from_zarr(name).compute()
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{name}/"}}
        later = tensorstore.open(spec).result().read().result()
        assert alone_seen.get(segment.name, 0) <= len(alone) <= len(later)
        alone_seen[segment.name] = len(later)
        for values in (alone, later):
            both = min(len(values), rows)
            assert (values[:both] == data["reward"][:both]).all()
        file = root / "episodes" / f"{segment.name}.arrow"
        if file.exists():
            table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
            assert len(table) >= episodes_seen.get(segment.name, 0)
            episodes_seen[segment.name] = len(table)
        reads += 1
print(reads, sum(rows_seen.values()))
"""


@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.soak)])
def test_reopening_in_a_loop_while_tiny_episodes_are_committed(tmp_path: Path, count: int) -> None:
    """zarr-python: reader sees half-written JSON."""
    box = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    store = storage.create(tmp_path / "store", spec(box, spaces.Discrete(2)))
    reader = subprocess.Popen(
        [sys.executable, "-c", REOPEN, str(store.path), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    episode = 0
    with store.writer(publish_interval=0, row_budget=400) as writer:
        while reader.poll() is None:
            first = 1000.0 * episode
            writer.begin(0, [first])
            length = 1 + episode % 3
            for t in range(length):
                writer.step(
                    0,
                    action=1,
                    reward=first + t + 1,
                    observation=[first + t + 1],
                    terminated=t == length - 1,
                    truncated=False,
                )
            episode += 1
    out, error = reader.communicate()
    assert reader.returncode == 0, error
    assert int(out.split()[0]) >= count
    assert int(out.split()[1]) > 0
    assert episode > 20
