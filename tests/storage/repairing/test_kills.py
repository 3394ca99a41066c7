"""A repair that is killed anywhere and run again ends where one ends that ran through."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import storage
from storage.log_header import LogHeader
from storage.log_record import record_dtype
from tests.storage.damage import Sound, column_file, cut, flip, make_sound, row_at, spoil, tree
from tests.storage.interrupts import count_lines, interrupted_at

_PACKAGE = str(Path(storage.__file__).parent)
_VERIFICATION = str(Path(_PACKAGE, "verification"))


def damaged(path: Path) -> Sound:
    """A store with something for a repair to do in every segment, and outside them."""
    sound = make_sound(path)
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    behaviour = column_file(sound, 0, "behaviour").path
    cut(behaviour, row_at(sound, 0, "behaviour", 25))
    flip(column_file(sound, 0, "kind").path, 20_000)
    spoil(sound.paths.log(1), 40)
    header, size = LogHeader.decode(sound.paths.log(2).read_bytes(), sound.paths.log(2))
    spoil(sound.paths.log(2), size + record_dtype(len(header.columns)).itemsize + 8)
    flip(sound.paths.log(0), 50)
    (sound.paths.segment(2) / "action" / "zarr.json").write_bytes(b"{}")
    with sound.paths.log(3).open("ab") as file:
        file.write(b"torn")
    sound.paths.episode_table(3).write_bytes(b"ARROW")
    flip(sound.paths.steps / "zarr.json", 60)
    cut(next((sound.paths.overlays / "main.zarr").glob("0*")) / "priority" / "c.0", 9)
    return sound


class Outcome:
    """What is there after a repair that ran through, wherever an earlier one stopped."""

    def __init__(self, path: Path) -> None:
        files = tree(path, "locks", "quarantine", "staging")
        self.files = {name: data for name, data in files.items() if not name.endswith(".lock")}
        self.content = storage.content_hash(path)
        self.kept = Counter(
            (file.split("/", 2)[2], data)
            for file, data in tree(path).items()
            if file.startswith("quarantine/") and not file.endswith("note.json")
        )

    def require_equal(self, other: Outcome) -> None:
        assert self.files == other.files
        assert self.kept == other.kept
        assert self.content == other.content


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    sound = damaged(tmp_path_factory.mktemp("straight") / "store")
    storage.repair(sound.path)
    assert sound.kinds() == set()
    return Outcome(sound.path)


def require_finished(sound: Sound, straight: Outcome) -> None:
    storage.repair(sound.path)
    assert sound.kinds() == set()
    Outcome(sound.path).require_equal(straight)
    assert storage.repair(sound.path).actions == ()


def test_the_damage_is_of_every_sort(tmp_path: Path) -> None:
    sound = damaged(tmp_path / "store")
    actions = storage.repair(sound.path, dry_run=True).actions
    assert {each.kind for each in actions} == {
        "correct-log",
        "void",
        "set-aside",
        "cut-tail",
        "derive",
        "restore-root",
        "drop-overlay",
    }


def interrupt_everywhere(tmp_path: Path, straight: Outcome, places: int) -> None:
    counted = damaged(tmp_path / "counted")
    lines = count_lines(lambda: storage.repair(counted.path, workers=1))
    for number in range(places):
        sound = damaged(tmp_path / str(number))
        at = 1 + number * lines // places
        with pytest.raises(KeyboardInterrupt), interrupted_at(at):
            storage.repair(sound.path, workers=1)
        require_finished(sound, straight)


def test_an_interrupt_anywhere_is_made_up_for(tmp_path: Path, straight: Outcome) -> None:
    interrupt_everywhere(tmp_path, straight, 10)


@pytest.mark.soak
def test_an_interrupt_at_many_lines_is_made_up_for(tmp_path: Path, straight: Outcome) -> None:
    interrupt_everywhere(tmp_path, straight, 400)


class _Killer:
    """Ends this process without a word at the n-th line that repairs, or counts them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) or file.startswith(_VERIFICATION):
            return None
        return self.line

    def line(self, _: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            self.seen += 1
            if self.seen == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.line


def _repair(path: Path, at: int, tell: Any) -> None:
    killer = _Killer(at)
    sys.settrace(killer)
    storage.repair(path, workers=1)
    sys.settrace(None)
    tell.send(killer.seen)


def run_killed(path: Path, at: int) -> int:
    """Lines that a repair ran through; -1 where it was killed."""
    context = multiprocessing.get_context("spawn")
    mine, yours = context.Pipe()
    process = context.Process(target=_repair, args=(path, at, yours))
    process.start()
    yours.close()
    try:
        return int(mine.recv())
    except EOFError:
        return -1
    finally:
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)


def kill_everywhere(tmp_path: Path, straight: Outcome, places: int) -> None:
    lines = run_killed(damaged(tmp_path / "counted").path, -1)
    for number in range(places):
        sound = damaged(tmp_path / str(number))
        at = lines // 2 + number * lines // (2 * places)
        assert run_killed(sound.path, at) == -1
        run_killed(sound.path, lines - at)  # perhaps the next one as well
        require_finished(sound, straight)


def test_a_repair_that_is_killed_is_finished_by_the_next(tmp_path: Path, straight: Outcome) -> None:
    kill_everywhere(tmp_path, straight, 1)


@pytest.mark.soak
def test_a_repair_that_is_killed_anywhere_is_finished_by_the_next(
    tmp_path: Path, straight: Outcome
) -> None:
    kill_everywhere(tmp_path, straight, 120)
