"""What this process may take of the machine: memory, maps and descriptors."""

from __future__ import annotations

import resource
from pathlib import Path

__all__ = ["anonymous_memory", "available_memory", "descriptor_limit", "map_limit"]

_CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 2**60
"""What version 1 of control groups shows where nobody set a limit is larger."""


def available_memory() -> int | None:
    """Bytes that may still be taken without swapping: of the machine, or of a control group.

    Pages of files count as free, since the kernel reclaims them. None where nobody says.
    """
    known = [_of_machine(), *(_of_group(folder) for folder in _groups())]
    return min((each for each in known if each is not None), default=None)


def anonymous_memory() -> int:
    """Bytes of this process that belong to no file; 0 where the system does not tell."""
    return _kilobytes(Path("/proc/self/status"), "RssAnon:") or 0


def map_limit() -> int | None:
    """Memory maps that a process may have (vm.max_map_count); None where nobody says."""
    return _number(Path("/proc/sys/vm/max_map_count"))


def descriptor_limit() -> int:
    """Files that this process may have open at once."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _of_machine() -> int | None:
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable:")


def _of_group(folder: Path) -> int | None:
    """What a group's limit leaves, of either version; None without one."""
    limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
    if limit is None or limit > _UNLIMITED:
        return None
    facts = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
    taken = facts.get("anon") or facts.get("total_rss") or facts.get("rss") or 0
    return max(0, limit - int(taken))


def _groups() -> list[Path]:
    """The folders of this process's control groups and of all groups around them."""
    found: list[Path] = []
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = _CGROUPS / controllers
        inner = root / place.strip("/")
        found += [each for each in (inner, *inner.parents) if each.is_relative_to(root)]
    return found


def _kilobytes(file: Path, key: str) -> int | None:
    for line in _text(file).splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    return None


def _number(file: Path) -> int | None:
    """The number in a file; None where there is none, or a word such as max."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
