"""The kinds of faults that an examination knows: how grave each is, and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["BAD_ROWS", "FAULT_KINDS", "SHORT_CHUNK", "FaultKind", "Severity"]

Severity = Literal["error", "warning", "note"]

_REPAIR: Final = "`sharpwave repair` "
_TAKE_OUT: Final = (
    "restore the file from a copy, or let `sharpwave repair` take these episodes out; "
)
_VOID: Final = _TAKE_OUT + "all others stay readable"
_BLOCKED: Final = _TAKE_OUT + "until then nothing of the segment can be read"
SHORT_CHUNK: Final = _REPAIR + "makes it whole: only foreign readers need what is missing"
BAD_ROWS: Final = _TAKE_OUT + "until then SIGBUS ends whoever reads their rows"
_AGAIN: Final = _REPAIR + "derives it again; the old bytes go to quarantine/"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """How grave a fault is, and what to do about it."""

    severity: Severity
    remedy: str


def _error(remedy: str) -> FaultKind:
    return FaultKind("error", remedy)


def _warning(remedy: str) -> FaultKind:
    return FaultKind("warning", remedy)


def _note(remedy: str) -> FaultKind:
    return FaultKind("note", remedy)


FAULT_KINDS: Final[dict[str, FaultKind]] = {
    # what says nothing about the store, but hides it
    "not-readable": _error(
        "nobody knows whether it is damaged, and a repair refuses: verify as the owner of the "
        "files, or lift the limit that the message names"
    ),
    # the store
    "root-metadata": _error(_REPAIR + "writes it from its copy"),
    "root-copy": _warning(_REPAIR + "writes it from steps.zarr/zarr.json"),
    # the log
    "log-unreadable": _error(
        "restore the log from a copy, or let `sharpwave repair` move the segment to quarantine/"
    ),
    "log-foreign": _error("move the log and its segment out: they belong to another store"),
    "log-version": _error("install a newer Sharpwave"),
    "log-record": _error(
        "restore the log from a copy, or let `sharpwave repair` keep every other episode"
    ),
    "log-order": _error(
        "restore the log from a copy, or let `sharpwave repair` keep what comes before"
    ),
    "log-too-long": _error(
        "restore the log from a copy, or let `sharpwave repair` cut it; the long one goes to "
        "quarantine/"
    ),
    "lost-records": _error(
        "restore the log from a copy, or let `sharpwave repair` set the rows of these episodes "
        "aside; until then nobody writes into the segment"
    ),
    "torn-tail": _warning("nothing to do: the next writer cuts it, and so does `sharpwave repair`"),
    "log-without-segment": _error(
        "restore the folder from a copy, or let `sharpwave repair` move the log to quarantine/"
    ),
    "segment-without-log": _error(
        "restore the log from a copy, or let `sharpwave repair` move the folder to quarantine/"
    ),
    # the columns
    "missing-column": _error(_BLOCKED),
    "short-column": _error(_BLOCKED),
    "unreadable-column": _error(_BLOCKED),
    "checksum": _error(_VOID),
    "shard-index": _error(_AGAIN),
    "void-rows": _error(_REPAIR + "sets their kind to 0 again"),
    # impossible values
    "row-kinds": _error(_VOID),
    "flags": _error(_VOID),
    "behaviour-kind": _error(_VOID),
    "behaviour": _error(_VOID),
    "return": _error(_VOID),
    "policy-update": _error(_VOID),
    "not-finite": _error(_VOID),
    "closing-row": _error(_VOID),
    "action-bounds": _error(_VOID),
    "truth-value": _error(_VOID),
    # what the metadata claims of the data
    "probabilities": _warning("importance ratios of these episodes mean nothing"),
    "observation-bounds": _warning("the environment's observation space is not the true one"),
    "longer-than-declared": _warning("the environment's max_episode_steps is not the true one"),
    # derived files
    "group-metadata": _error(_AGAIN),
    "array-metadata": _error(_AGAIN),
    "episode-table": _error(_AGAIN),
    "open-note": _warning(_REPAIR + "makes a blank one; a salvage then does not know the seed"),
    "lock-file": _error(_REPAIR + "moves it to quarantine/; until then nobody can write there"),
    # caches
    "overlay-metadata": _warning(_AGAIN),
    "overlay-segment": _warning(
        "`sharpwave repair` moves it to quarantine/; an overlay is a cache, and is begun anew"
    ),
    # what lies about
    "open-episode": _note("the next writer salvages it as truncated"),
    "live-writer": _note("nothing to do: what it is writing now is left alone"),
    "overlay-unchecked": _note(
        "nothing to do: a view that lives or was killed leaves none, and the next one that is "
        "closed records it"
    ),
    "voided": _note("their old bytes are in quarantine/"),
    "staging": _note("a writer that died left it; the next writer of the store removes segments"),
    "orphans": _note("a rewind took it out; delete it when nobody needs it"),
    "quarantine": _note("a repair took it out; delete it when nobody needs it"),
    "stray": _note("nothing of Sharpwave's; readers ignore it"),
}
