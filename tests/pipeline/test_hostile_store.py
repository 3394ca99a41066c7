"""Stores that somebody made to do harm: every verb ends in one line, and touches nothing else."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import storage
from pipeline.cli import main
from storage.errors import SharpwaveError
from storage.root_metadata import attributes_checksum
from tests.storage.zoo import play, tiny_spec


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A verb that waits for a named pipe ends this test, not the whole run."""

    def late(*_: object) -> None:
        raise TimeoutError("it waits for something")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the user's, with a module that must never be imported."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("mine")
    (folder / "evil_module.py").write_text(
        f"open({os.fspath(folder / 'imported')!r}, 'w').close()\nEnv = Wrap = None\n"
    )
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = storage.create(tmp_path / "theirs", tiny_spec())
    with made.writer(capacity=1024) as writer:
        for episode in range(20):
            play(writer, 0, episode)
    made.replay(window=64).close()
    return made.path


def edit(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the root attributes, both copies, with a checksum that fits."""
    document = json.loads((store / "steps.zarr/zarr.json").read_text())
    change(document["attributes"])
    document["attributes"]["checksum"] = attributes_checksum(document["attributes"])
    for name in ("steps.zarr/zarr.json", "log/store.json"):
        (store / name).write_text(json.dumps(document))


def moved_out(store: Path, place: str) -> None:
    """A link out of the store where a part of it was."""
    target = store.parent / "outside" / place.replace("/", "_")
    (store / place).rename(target)
    (store / place).symlink_to(target)


def pipe(store: Path, place: str) -> None:
    (store / place).unlink()
    os.mkfifo(store / place)


def spaces(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda attributes: attributes["environment"]["observation_space"].update(changes)


VERBS = ("inspect", "verify", "repair", "migrate")
HOSTILE: dict[str, Callable[[Path], object]] = {
    "a shape of terabytes": lambda store: edit(store, spaces(shape=[2**40, 8])),
    "objects": lambda store: edit(store, spaces(dtype="object")),
    "a key with ..": lambda store: edit(
        store, spaces(type="Dict", spaces=[["../../x", {"type": "MultiBinary", "n": 2}]])
    ),
    "a column outside": lambda store: edit(
        store, lambda a: a["schema"]["columns"][0].__setitem__(0, "../../../outside")
    ),
    "2**70 choices": lambda store: edit(store, spaces(type="Discrete", n=2**70, start=0)),
    "endless nesting": lambda store: [
        (store / name).write_text("[" * 10**6)
        for name in ("steps.zarr/zarr.json", "log/store.json")
    ],
    "endless metadata": lambda store: [
        os.truncate(store / name, 2**40) for name in ("steps.zarr/zarr.json", "log/store.json")
    ],
    "a newer version": lambda store: edit(store, lambda a: a.update(format_version=2)),
    "metadata in a pipe": lambda store: pipe(store, "steps.zarr/zarr.json"),
    "a log in a pipe": lambda store: pipe(store, "log/000000.log"),
    "a column in a pipe": lambda store: pipe(store, "steps.zarr/000000/reward/c.0"),
    "linked metadata": lambda store: moved_out(store, "steps.zarr/zarr.json"),
    "linked steps": lambda store: moved_out(store, "steps.zarr"),
    "linked logs": lambda store: moved_out(store, "log"),
    "linked staging": lambda store: moved_out(store, "staging"),
    "linked quarantine": lambda store: moved_out(store, "quarantine"),
    "linked overlays": lambda store: moved_out(store, "overlays"),
    "a linked log": lambda store: moved_out(store, "log/000000.log"),
    "a linked note": lambda store: moved_out(store, "log/000000.open"),
    "a linked lock": lambda store: moved_out(store, "locks/000000.lock"),
    "a linked segment": lambda store: moved_out(store, "steps.zarr/000000"),
    "a linked column": lambda store: moved_out(store, "steps.zarr/000000/reward"),
    "a linked file": lambda store: moved_out(store, "steps.zarr/000000/reward/c.0"),
    "a linked table": lambda store: moved_out(store, "episodes/000000.arrow"),
    "a linked overlay": lambda store: moved_out(store, "overlays/main.zarr"),
    "a linked overlay's file": lambda store: moved_out(
        store, "overlays/main.zarr/000000/priority/c.0"
    ),
}


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below, with its time of change."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_verb_ends_in_one_line_or_a_report(
    store: Path, outside: Path, capsys, name: str, verb: str
) -> None:
    HOSTILE[name](store)
    before = state(outside)
    code = main([verb, str(store)])
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    if code == 2:
        assert said.err.count("\n") == 1, said.err
        assert len(said.err) < 2000
    assert "Traceback" not in said.out + said.err
    assert state(outside) == before


@pytest.mark.parametrize("name", HOSTILE)
def test_a_writer_and_a_view_touch_nothing_outside(store: Path, outside: Path, name: str) -> None:
    HOSTILE[name](store)
    before = state(outside)
    refused = ""
    try:
        opened = storage.open(store, mode="r+")
        with opened.writer(capacity=1024) as writer:
            play(writer, 0, 50)
        with opened.replay(window=64, scheme="per") as view:
            view.sample(8)
    except SharpwaveError as error:
        refused = str(error)
    assert refused == "" or str(store) in refused
    assert state(outside) == before


def test_a_folder_of_anything_is_no_store(tmp_path: Path, capsys) -> None:
    for place in (tmp_path, Path("/proc/self"), Path("/dev/null"), tmp_path / "a\nb"):
        for verb in VERBS:
            assert main([verb, str(place)]) == 2
            assert capsys.readouterr().err.count("\n") == 1


def hostile_id(store: Path) -> None:
    edit(store, lambda a: a["environment"].update(id="evil_module:Env"))


def hostile_wrapper(store: Path) -> None:
    wrapper = {"class_path": "evil_module.Wrap", "kwargs": {}}
    edit(store, lambda a: a["environment"].update(id="Pendulum-v1", wrappers=[wrapper]))


@pytest.mark.parametrize("change", [hostile_id, hostile_wrapper])
@pytest.mark.parametrize("named", [[], ["--environment.id=Pendulum-v1"]])
def test_nothing_that_a_store_names_is_imported(
    store: Path, outside: Path, tmp_path: Path, monkeypatch, capsys, change, named: list[str]
) -> None:
    monkeypatch.syspath_prepend(outside)
    monkeypatch.chdir(tmp_path)
    change(store)
    for verb in ("inspect", "verify"):
        assert main([verb, str(store)]) == 0
    capsys.readouterr()
    assert main(["train", f"--offline={store}", "--loop.steps=10", *named]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "evil_module" in said
    assert "evil_module" not in sys.modules
    assert not (outside / "imported").exists()
    assert not (tmp_path / "runs").exists()
