"""Machine code on disk must not outlive a source that went into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CALLEE = "from storage.kernel import kernel\n\n@kernel\ndef number() -> int:\n    return {}\n"
_CALLER = (
    "from storage.kernel import kernel\nfrom pack.callee import number\n\n"
    "@kernel\ndef ask() -> int:\n    return number()\n"
)


def _ask(folder: Path) -> int:
    command = [sys.executable, "-c", "from pack.caller import ask; print(ask())"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_changed_callee_in_another_file_is_compiled_anew(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "caller.py").write_text(_CALLER)
    (package / "callee.py").write_text(_CALLEE.format(1))
    assert _ask(tmp_path) == 1
    (package / "callee.py").write_text(_CALLEE.format(2))
    assert _ask(tmp_path) == 2


def test_the_second_process_finds_the_code(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "caller.py").write_text(_CALLER)
    (package / "callee.py").write_text(_CALLEE.format(1))
    _ask(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in package.rglob("*.nbc")}
    assert before
    assert _ask(tmp_path) == 1
    assert {path: path.stat().st_mtime_ns for path in package.rglob("*.nbc")} == before
