"""The note about an open episode, once nobody writes it any more."""

from __future__ import annotations

from pathlib import Path

from storage.open_episode import _SIZE, read_note
from storage.verification.regular_files import read_file

__all__ = ["note_fault"]


def note_fault(path: Path) -> str:
    """What is wrong with the note; nothing where it is whole, blank as when made, or not there."""
    try:
        data = read_file(path, _SIZE)
        whole = not data.strip(b"\0") or read_note(path) is not None
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return "" if whole else "it fails its checksum"
