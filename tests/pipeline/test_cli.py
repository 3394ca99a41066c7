from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.cli import VERBS, main
from pipeline.nearest import nearest
from storage.errors import ConfigError


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr that an error is."""
    (line,) = done.stderr.splitlines()
    assert line.startswith("sharpwave: error: ")
    return line


def test_help_lists_every_verb(sharpwave) -> None:
    text = sharpwave("--help").stdout
    assert all(f"\n  {verb} " in text for verb in VERBS)
    assert sharpwave().stdout == text


def test_version(sharpwave) -> None:
    assert sharpwave("--version").stdout.startswith("sharpwave 0.")


def test_unknown_verb_gets_the_nearest_name(sharpwave) -> None:
    assert "did you mean 'train'?" in error_line(sharpwave("trian", code=2))


def test_unknown_option_gets_the_nearest_name(sharpwave) -> None:
    line = error_line(sharpwave("inspect", "--jsn", code=2))
    assert "no option --jsn, did you mean '--json'?" in line


def test_an_option_given_twice_is_refused(sharpwave) -> None:
    line = error_line(sharpwave("evaluate", "run", "--episodes=3", "--episodes", 4, code=2))
    assert "--episodes is given twice" in line


def test_debug_shows_the_traceback(sharpwave) -> None:
    assert "Traceback" in sharpwave("--debug", "inspect", "nowhere", code=1).stderr
    assert "Traceback" in sharpwave("inspect", "nowhere", code=1, SHARPWAVE_DEBUG="1").stderr


@pytest.mark.parametrize("arguments", [["--help"], ["inspect", "--help"], ["curve", "--help"]])
def test_light_verbs_import_no_torch(arguments: list[str]) -> None:
    program = (
        "import sys; from pipeline.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'lightning', 'pyarrow', 'matplotlib', 'dask', 'zarr'}\n"
        "sys.exit(repr(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_interrupt_exits_130_and_says_what_is_kept(monkeypatch, capsys) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt("All 3 episodes are kept.")

    monkeypatch.setattr("pipeline.inspect.main", interrupted)
    assert main(["inspect", "store"]) == 130
    assert "interrupted. All 3 episodes are kept." in capsys.readouterr().err


def test_nearest_finds_a_setting_by_its_last_part() -> None:
    names = ["loop.steps", "replay.window", "seed"]
    assert nearest("loop.step", names) == ", did you mean 'loop.steps'?"
    assert nearest("windw", names) == ", did you mean 'replay.window'?"
    assert nearest("zzz", names) == ""


def test_notes_follow_the_message_on_its_line(monkeypatch, capsys) -> None:
    def failing(_: object) -> int:
        error = ConfigError("no simulator")
        error.add_note("Kept: 3 steps.")
        raise error

    monkeypatch.setattr("pipeline.inspect.main", failing)
    assert main(["inspect", "store"]) == 2
    assert capsys.readouterr().err == "sharpwave: error: no simulator. Kept: 3 steps.\n"
