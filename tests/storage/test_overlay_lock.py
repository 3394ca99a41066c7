from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import storage
from storage.errors import CorruptStoreError, OverlayInUseError, SamplingError
from storage.overlay_lock import OverlayLock
from tests.storage.zoo import F4

HOLD = """
import sys, time
import storage
view = storage.open(sys.argv[1], mode="r+").replay(window=8)
print("held", flush=True)
time.sleep(60)
"""


def test_one_writing_view_an_overlay(f4: F4) -> None:
    store = f4.store
    view = store.replay(window=8)
    with pytest.raises(OverlayInUseError) as refused:
        store.replay(window=8)
    for words in ("'main'", f"this process, {os.getpid()}", "main.lock", "private=True", "another"):
        assert words in str(refused.value)
    with store.replay(window=8, overlay="other"), store.replay(window=8, private=True) as private:
        assert private.n_steps == view.n_steps == 9
    store.overlay().segment(0, 12)
    view.close()
    with store.replay(window=8) as again:
        view.close()  # the first one, once more: the second still holds the overlay
        with pytest.raises(OverlayInUseError):
            store.overlay(mode="r+")
        assert again.n_steps == 9


def test_a_view_that_could_not_be_made_holds_nothing(f4: F4) -> None:
    with pytest.raises(SamplingError) as kept:
        f4.store.replay(window=8, scheme="none such")
    with f4.store.replay(window=8) as view:
        assert view.n_steps == 9
    assert kept.value is not None  # the error, with its frames, was alive meanwhile


def test_a_view_that_nobody_refers_to_holds_nothing(f4: F4) -> None:
    gc.disable()
    try:
        view = f4.store.replay(window=8)
        del view
        f4.store.replay(window=8).close()
    finally:
        gc.enable()


def test_another_process_holds_it_until_it_dies(f4: F4) -> None:
    f4.writer.close()
    command = [sys.executable, "-c", HOLD, str(f4.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(OverlayInUseError, match=rf"process {child.pid} on host "):
            f4.store.replay(window=8)
        f4.store.replay(window=8, overlay="mine").close()
        child.send_signal(signal.SIGKILL)
        child.wait()
        f4.store.replay(window=8).close()


def test_a_forked_child_does_not_inherit_it(tmp_path: Path) -> None:
    lock = OverlayLock(tmp_path / "main.lock")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            OverlayLock(tmp_path / "main.lock")
            os.write(tell, b"taken")
        except OverlayInUseError as error:
            held = "held" if lock.held else "not held"
            os.write(tell, f"{held}, {error}".encode())
        lock.release()  # of the child's copy: the parent's lock stays
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(told, 4096).decode()
    assert said.startswith("not held, ")
    assert f"process {os.getpid()} on host" in said
    asked = [
        "import sys; from pathlib import Path; from storage.overlay_lock import OverlayLock",
        "OverlayLock(Path(sys.argv[1]))",
    ]
    command = [sys.executable, "-c", "\n".join(asked), str(tmp_path / "main.lock")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OverlayInUseError" in refused.stderr
    lock.release()
    assert subprocess.run(command, check=False).returncode == 0


def test_a_lock_file_that_is_a_link_is_not_written_through(f4: F4, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (f4.path / "overlays/main.lock").symlink_to(secret)
    with pytest.raises(CorruptStoreError, match=r"main\.lock is a symbolic link"):
        f4.store.replay(window=8)
    assert secret.read_text() == "mine"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"pid": "x", "host": 3}', b"\xff"])
def test_a_lock_file_of_any_content_is_none(f4: F4, content: bytes) -> None:
    (f4.path / "overlays/main.lock").write_bytes(content)
    with storage.open(f4.path, mode="r+").replay(window=8) as view:
        assert view.n_steps == 9
