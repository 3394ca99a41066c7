from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import storage
from storage.commit_log import CommitLog
from storage.errors import (
    ConfigError,
    CorruptStoreError,
    FormatVersionError,
    ReadOnlyStoreError,
    StoreExistsError,
    StoreNotFoundError,
    UnsupportedSpaceError,
)
from tests.storage.zoo import F4, SPACES, check_tiny, f4_spec, play, spec, tiny_spec


def test_an_empty_store_can_be_reopened_without_a_network(tmp_path: Path, monkeypatch) -> None:
    """LeRobot: resuming an empty dataset gives a network error."""
    storage.create(tmp_path / "store", f4_spec()).close()

    def refuse(*_: object) -> None:
        raise AssertionError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    store = storage.open(tmp_path / "store", mode="r+")
    assert (store.n_episodes, store.n_steps, store.n_rows, store.segments) == (0, 0, 0, ())
    assert store.episodes.num_rows == 0
    assert store.columns["observation"][:].shape == (0, 1)
    assert store.to_dask()["observation"].shape == (0, 1)
    with store.writer() as writer:
        writer.begin(0, np.zeros(1))
    assert list(store.iterate_episodes()) == []


def test_create_refuses_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    storage.create(tmp_path / "empty", f4_spec())
    with pytest.raises(StoreExistsError, match=r"mode='r\+'"):
        storage.create(tmp_path / "empty", f4_spec())
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreExistsError):
        storage.create(tmp_path / "file", f4_spec())
    storage.create(tmp_path / "deep" / "er" / "store", f4_spec())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "empty", "file"]


def test_unsupported_spaces_are_refused_at_creation(tmp_path: Path) -> None:
    """Minari: space type cannot be serialised."""
    with pytest.raises(UnsupportedSpaceError, match=r"Text.*observation\.note"):
        storage.create(
            tmp_path / "store",
            spec(spaces.Dict({"note": spaces.Text(5)}), spaces.Discrete(2)),
        )
    assert not (tmp_path / "store").exists()


def test_paths_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for name in ("folder", "file", "nothing"):
        with pytest.raises(StoreNotFoundError, match="is no Sharpwave store"):
            storage.open(tmp_path / name)
    with pytest.raises(ConfigError, match="mode 'w'"):
        storage.open(tmp_path / "nothing", mode="w")


def test_a_newer_format_is_refused(f4: F4) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    document = json.loads(root.read_text())
    document["attributes"]["format_version"] = 2
    root.write_text(json.dumps(document))
    with pytest.raises(FormatVersionError, match="version 2; this release reads up to 1"):
        storage.open(f4.path)


def test_metadata_of_something_else_is_named(f4: F4) -> None:
    root = f4.path / "steps.zarr" / "zarr.json"
    for text in ("{", "[]", '{"attributes": {}}'):
        root.write_text(text)
        with pytest.raises(CorruptStoreError, match=r"zarr\.json"):
            storage.open(f4.path)


def test_reading_never_changes_a_byte_and_cannot_write(f4: F4) -> None:
    f4.writer.close()
    before = {p: p.stat().st_mtime_ns for p in f4.path.rglob("*")}
    store = storage.open(f4.path)
    store.columns["reward"][:]
    list(store.iterate_episodes())
    assert store.episodes.num_rows == 4
    with pytest.raises(ReadOnlyStoreError, match=r"mode='r\+'"):
        store.writer()
    with pytest.raises(ReadOnlyStoreError):
        store.overlay("main", mode="r+")
    assert {p: p.stat().st_mtime_ns for p in f4.path.rglob("*")} == before
    with pytest.raises(ValueError, match="read-only"):
        store.segment(0).array("reward")[0] = 5


def test_the_episode_table(f4: F4) -> None:
    table = f4.store.episodes.to_pydict()
    assert table["segment"] == [0, 0, 0]
    assert table["ordinal"] == [0, 1, 2]
    assert table["start"] == [0, 6, 10]
    assert table["length"] == [5, 3, 1]
    assert table["ending"] == ["terminated", "truncated", "terminated"]
    assert table["return"] == [5.0, 3.0, 1.0]
    assert table["seed"] == [0, 100, 200]
    assert table["run"] == ["f4"] * 3
    assert all(b <= e for b, e in zip(table["begin_time"], table["end_time"], strict=True))


def test_episodes_have_one_more_observation_than_actions(f4: F4) -> None:
    """Minari: a long argument on alignment."""
    f4.writer.close()
    lengths = []
    for episode in f4.store.iterate_episodes():
        assert len(episode.observation) == len(episode.action) + 1 == len(episode) + 1
        lengths.append(len(list(episode.transitions())))
    assert lengths == [5, 3, 1, 4]


def test_flat_transitions_have_the_true_next_observation(f4: F4) -> None:
    """D4RL: next observation taken from the next trajectory; last step dropped."""
    flat = [t for episode in f4.store.iterate_episodes() for t in episode.transitions()]
    assert len(flat) == 9
    assert [float(t.next_observation[0]) for t in flat] == [1, 2, 3, 4, 5, 101, 102, 103, 201]
    assert [t.terminated for t in flat] == [False] * 4 + [True] + [False] * 3 + [True]
    assert [int(t.action) for t in flat] == [0, 1, 2, 3, 4, 0, 1, 2, 0]


def test_episode_indices(f4: F4) -> None:
    assert f4.store.episode(1).record.length == 3
    assert f4.store.episode(-1).record.length == 1
    for index in (3, -4):
        with pytest.raises(IndexError, match="which has 3"):
            f4.store.episode(index)
    with pytest.raises(KeyError, match="000007"):
        f4.store.segment(7)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("side", ["observation", "action"])
def test_samples_of_every_space_come_back_bit_equal(tmp_path: Path, name: str, side: str) -> None:
    """rllib: cannot read its own recording; d3rlpy, Minari: data changes on the way."""
    other = spaces.Discrete(2)
    space = SPACES[name]
    space.seed(0)
    observation, action = (space, other) if side == "observation" else (other, space)
    samples = [space.sample() for _ in range(7)]
    store = storage.create(tmp_path / "store", spec(observation, action))
    with store.writer() as writer:
        writer.begin(0, samples[0] if side == "observation" else 0)
        for t in range(6):
            writer.step(
                0,
                action=samples[t] if side == "action" else 1,
                observation=samples[t + 1] if side == "observation" else 1,
                reward=0.0,
                terminated=t == 5,
                truncated=False,
            )
    episode = storage.open(tmp_path / "store").episode(0)
    assert episode.record.length == 6
    moves = list(episode.transitions())
    if side == "observation":
        read = [move.observation for move in moves] + [moves[-1].next_observation]
    else:
        read = [move.action for move in moves]
    for expected, actual in zip(samples, read, strict=side == "observation"):
        assert_same(actual, expected)


def assert_same(actual: object, expected: object) -> None:
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key, value in expected.items():
            assert_same(actual[key], value)
    elif isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b)
    else:
        expected = np.asarray(expected)
        assert np.asarray(actual).dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


def test_store_dtypes_are_the_spaces_own(tmp_path: Path) -> None:
    """stable-baselines3, tianshou: float64 everywhere."""
    store = storage.create(
        tmp_path / "store",
        spec(spaces.Box(0, 255, (8, 8), np.uint8), spaces.Box(-1, 1, (2,), np.float64)),
    )
    assert store.columns["observation"].dtype == np.uint8
    assert store.columns["action"].dtype == np.float64
    assert store.schema.row_bytes < 8 * 8 + 2 * 8 + 80


def test_schema_and_environment_are_remembered(tmp_path: Path) -> None:
    made = storage.create(
        tmp_path / "store",
        spec(SPACES["dict"], SPACES["tuple"], kwargs={"a": 1}, max_episode_steps=99),
        info={"x": "f4"},
        frame_stack=4,
        first_stack_padding="repeat",
        life_loss=True,
    )
    again = storage.open(tmp_path / "store")
    assert (again.uuid, again.schema, again.env_spec) == (made.uuid, made.schema, made.env_spec)


def test_columns_run_over_all_segments(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(lanes=2, row_budget=20) as writer:
        for episode in range(12):
            for lane in range(2):
                play(writer, lane, episode)
    reward = store.columns["reward"]
    parts = [store.segment(info.id).array("reward") for info in store.segments]
    whole = np.concatenate(parts)
    assert len(parts) > 4
    assert len(reward) == len(whole) == store.n_rows
    for key in (slice(None), slice(5, 60), slice(-7, None), slice(3, 50, 7), slice(9, 2)):
        np.testing.assert_array_equal(reward[key], whole[key])
    assert reward[-1] == whole[-1]
    with pytest.raises(IndexError, match="which has"):
        reward[len(whole)]
    assert list(store.columns) == [column.name for column in store.schema.columns]
    assert store.n_steps == int((store.columns["kind"][:] == 1).sum())


def test_a_growing_store_is_followed_by_refresh(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    reader = storage.open(tmp_path / "store")
    with store.writer(row_budget=30, publish_interval=0) as writer:
        segment = address = None
        for episode in range(25):
            record = play(writer, 0, episode)
            assert reader.refresh()
            assert not reader.refresh()
            assert reader.n_episodes == episode + 1
            check_tiny(reader, record)
            if record.segment == 0:
                segment = reader.segment(0)
                address = address or segment.address("observation")
                assert segment.address("observation") == address
                assert segment.rows == record.start + record.length + 1
    assert reader.n_steps == reader.episodes["length"].to_numpy().sum()
    store.refresh()
    assert store.n_steps == reader.n_steps


def test_a_column_file_that_was_cut_is_named(f4: F4) -> None:
    f4.writer.close()
    file = f4.path / "steps.zarr/000000/reward/c.0"
    with file.open("r+b") as opened:
        opened.truncate(32768 + 8)
    store = storage.open(f4.path)
    assert store.n_episodes == 4
    with pytest.raises(CorruptStoreError, match=r"reward/c\.0 holds .* counts 17 rows"):
        store.columns["reward"][:]


def test_a_log_of_another_store_is_named(f4: F4, tmp_path: Path) -> None:
    f4.writer.close()
    other = storage.create(tmp_path / "other", f4_spec())
    log = f4.path / "log/000000.log"
    (other.path / "log/000003.log").write_bytes(log.read_bytes())
    with pytest.raises(CorruptStoreError, match=r"000003\.log belongs to store"):
        storage.open(other.path)


MANY = """
import sys
import storage
store = storage.open(sys.argv[1])
status = open("/proc/self/status").read()
print(store.n_episodes, store.n_steps, status.split("VmHWM:")[1].split()[0])
"""


def test_many_episodes_open_without_a_scan_of_the_rows(tmp_path: Path) -> None:
    """Minari: every load scans all episodes; total_steps wrong. 100,000 episodes."""
    path = tmp_path / "store"
    store = storage.create(path, tiny_spec())
    writer = store.writer(row_budget=10)
    play(writer, 0, 0)
    writer.close()
    log = CommitLog(path / "log/000000.log")
    repeat_records(path / "log/000000.log", log, 100_000)
    out = subprocess.run(
        [sys.executable, "-c", MANY, str(path)], capture_output=True, text=True, check=True
    )
    episodes, steps, peak = out.stdout.split()
    assert int(episodes) == 100_000
    assert int(steps) == 100_000 * log.steps
    assert int(peak) < 200 * 1024


def repeat_records(path: Path, log: CommitLog, count: int) -> None:
    """Give a log ``count`` copies of its first record, one after another."""
    from storage.checksum import crc32c
    from storage.commit_log import record_dtype

    dtype = record_dtype(len(log.header.columns))
    header = len(log.header.encode())
    first = np.frombuffer(path.read_bytes()[header:], dtype, count=1)
    rows = int(first["length"][0]) + 1
    records = np.repeat(first, count)
    records["sequence"] = records["ordinal"] = np.arange(count)
    records["start"] = rows * np.arange(count)
    data = records.tobytes()
    size = dtype.itemsize
    records["crc"] = [crc32c(data[at : at + size - 4]) for at in range(0, len(data), size)]
    path.write_bytes(path.read_bytes()[:header] + records.tobytes())


def test_import_is_light() -> None:
    code = "import sys, storage; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["numba", "pyarrow", "zarr", "dask", "xarray", "gymnasium", "torch", "pandas"]
    out = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_few_descriptors(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    before = open_files()
    with store.writer(lanes=8, row_budget=2) as writer:
        for episode in range(13):
            for lane in range(8):
                play(writer, lane, episode)
        for lane in range(8):
            play(writer, lane, 13, steps=0)
        store.refresh()
        assert len(store.segments) > 100
        reader = storage.open(tmp_path / "store")
        for info in reader.segments:
            reader.segment(info.id).array("observation")
        assert open_files() - before <= 2 * 8
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


WRITE = """
import sys, numpy as np, storage
store = storage.open(sys.argv[1], mode="r+")
with store.writer(run=sys.argv[2], publish_interval=3600, row_budget=700) as writer:
    for index in range(1000):
        writer.begin(0, np.array([float(index)]), seed=index)
        writer.step(0, action=1, reward=float(sys.argv[2]), observation=[index + 0.5],
                    terminated=True, truncated=False)
"""


def test_two_processes_append_at_once(tmp_path: Path) -> None:
    """zarr-python: parallel append is unsafe."""
    path = tmp_path / "store"
    storage.create(path, f4_spec())
    children = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(path), name]) for name in ("1", "2")
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    store = storage.open(path)
    table = store.episodes.to_pandas()
    assert len(table) == 2000
    assert not table.duplicated(["segment", "ordinal"]).any()
    for name in ("1", "2"):
        mine = table[table.run == name]
        assert sorted(mine.seed) == list(range(1000))
        assert (mine["return"] == float(name)).all()
    starts = store.columns["observation"][:][store.columns["kind"][:] == 1][:, 0]
    assert sorted(starts) == sorted(2 * list(range(1000)))


POLL = """
import sys, time, storage
store = storage.open(sys.argv[1])
seen = []
while not seen or seen[-1] < 50:
    store.refresh()
    count = store.n_episodes
    lengths = store.episodes["length"].to_pylist()
    assert len(lengths) == count
    assert len(store.columns["reward"][:]) == sum(lengths) + count
    seen.append(count)
    time.sleep(0.01)
assert seen == sorted(seen), seen
print(len(set(seen)))
"""


def test_a_reader_polls_while_episodes_are_written(tmp_path: Path) -> None:
    """DeepRank, LeRobot: look at data while it is recorded."""
    path = tmp_path / "store"
    store = storage.create(path, tiny_spec())
    reader = subprocess.Popen([sys.executable, "-c", POLL, str(path)], stdout=subprocess.PIPE)
    with store.writer(row_budget=64) as writer:
        for episode in range(50):
            play(writer, 0, episode)
            time.sleep(0.01)
        out, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0
    assert int(out) >= 1
