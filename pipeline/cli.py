"""The `sharpwave` command: finds the verb, imports only that verb, and words what went wrong.

Exit codes: 0 done, 1 `verify` found damage, or code raised what nobody expected (a traceback), 2 a
request that cannot be met (one line on stderr), 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Final

from pipeline.plain_output import forgive_encodings
from pipeline.streams import complain, leave_at_next_interrupt, lost_output, open_streams

__all__ = ["VERBS", "main"]

VERBS: Final[dict[str, str]] = {
    "collect": "act in an environment and write its episodes into a store",
    "train": "train an agent by a config file, or resume a run",
    "evaluate": "play episodes greedily with a checkpoint's policy",
    "protocol": "evaluate runs as the papers do: binned returns, Atari scores",
    "inspect": "say what a store holds",
    "verify": "read all of a store and say what is damaged",
    "repair": "move what is damaged in a store aside, so that the rest reads on",
    "migrate": "bring a store of an older format version up to date",
    "curve": "draw the learning curve of a run",
    "cliffwalk": "compare replay schemes on Blind Cliffwalk, and check PSER's Theorem 1",
    "demo": "train on a small task, then show the curve, the store and what to try next",
}

_HELP: Final = """\
usage: sharpwave VERB ...

Collects episodes into open Zarr/Arrow stores and trains agents that replay them.

verbs:
{verbs}

options:
  -h, --help   this text; `sharpwave VERB --help` for one verb
  --version    the installed version
  --debug      show the traceback of an error (or set SHARPWAVE_DEBUG=1)"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and gives the exit code; `arguments` defaults to the command line's."""
    command = arguments is None
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _take_debug(words)
    verb = words[0] if words else "--help"
    if command:
        warnings.formatwarning = _warning_line
        if not open_streams():
            return 2
    forgive_encodings()
    try:
        code = _code(verb, words[1:])
    except (Exception, KeyboardInterrupt) as error:
        if command and isinstance(_root(error), KeyboardInterrupt):
            leave_at_next_interrupt()
        lost = lost_output() if isinstance(error, OSError) else None
        explained = lost if debug or lost is not None else _explain(error)
        if explained is None:
            raise
        return explained
    lost = lost_output()
    return code if lost is None else lost


def _code(verb: str, rest: list[str]) -> int:
    """The verb's exit code, also where argparse ends the program, as after --help."""
    try:
        return _dispatch(verb, rest)
    except SystemExit as stop:
        if not isinstance(stop.code, int | None):
            raise
        return stop.code or 0


def _dispatch(verb: str, rest: list[str]) -> int:
    if verb in {"-h", "--help", "help"}:
        print(_HELP.format(verbs="\n".join(f"  {name:<10} {text}" for name, text in VERBS.items())))
        return 0
    if verb == "--version":
        from importlib.metadata import version

        print(f"sharpwave {version('sharpwave')}")
        return 0
    if verb not in VERBS:
        return _unknown(verb)
    return int(importlib.import_module(f"pipeline.{verb}").main(rest))


def _unknown(verb: str) -> int:
    from pipeline.nearest import nearest
    from storage.errors import ConfigError

    kind = "option" if verb.startswith("-") else "verb"
    hint = nearest(verb, VERBS)
    raise ConfigError(f"there is no {kind} {verb!r}{hint}; `sharpwave --help` lists the verbs")


def _explain(error: BaseException) -> int | None:
    """Prints what a user needs to know and gives the exit code; None for a fault of ours."""
    from pipeline.own_code import OwnCodeError
    from storage.errors import SharpwaveError

    if isinstance(error, OwnCodeError):
        complain(str(error))
        return 1
    if isinstance(error, SharpwaveError):
        complain(f"sharpwave: error: {_one_line(error)}")
        return 2
    # Libraries turn an interrupt while they are imported into errors of their own.
    root = _root(error)
    if isinstance(root, KeyboardInterrupt):
        complain(f"\nsharpwave: interrupted. {_one_line(root)}".rstrip())
        return 130
    if isinstance(error, OSError) and error.errno is not None:
        where = "" if error.filename is None else f"{error.filename}: "
        complain(f"sharpwave: error: {where}{error.strerror} (--debug shows where)")
        return 2
    if isinstance(error, MemoryError):
        complain(f"sharpwave: error: not enough memory. {_one_line(error)}".rstrip(". "))
        return 2
    return None


def _root(error: BaseException) -> BaseException:
    """The error that the others were raised from."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return error


def _take_debug(words: list[str]) -> bool:
    asked = "--debug" in words
    words[:] = [word for word in words if word != "--debug"]
    return asked or os.environ.get("SHARPWAVE_DEBUG", "") not in {"", "0"}


def _one_line(error: BaseException) -> str:
    """The message and the notes that were added to it."""
    text = " ".join(str(error).split())
    for note in getattr(error, "__notes__", ()):
        text = f"{text.rstrip('.')}. {' '.join(note.split())}"
    return text


def _warning_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"sharpwave: warning: {' '.join(str(message).split())}\n"


if __name__ == "__main__":
    sys.exit(main())
