"""The `sharpwave` command: finds the verb, imports only that verb, and words what went wrong.

Exit codes: 0 done, 2 a request that cannot be met (one line on stderr), 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from pipeline.plain_output import forgive_encodings

__all__ = ["VERBS", "main"]

VERBS: Final[dict[str, str]] = {
    "collect": "act in an environment and write its episodes into a store",
    "train": "train an agent by a config file, or resume a run",
    "evaluate": "play episodes greedily with a checkpoint's policy",
    "inspect": "say what a store holds",
    "curve": "draw the learning curve of a run",
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
    forgive_encodings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _take_debug(words)
    verb = words[0] if words else "--help"
    try:
        return _dispatch(verb, words[1:])
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`); the interpreter must not flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (Exception, KeyboardInterrupt) as error:
        code = None if debug else _explain(error)
        if code is None:
            raise
        return code


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
    code = importlib.import_module(f"pipeline.{verb}").main(rest)
    sys.stdout.flush()
    return int(code)


def _unknown(verb: str) -> int:
    from pipeline.nearest import nearest
    from storage.errors import ConfigError

    kind = "option" if verb.startswith("-") else "verb"
    hint = nearest(verb, VERBS)
    raise ConfigError(f"there is no {kind} {verb!r}{hint}; `sharpwave --help` lists the verbs")


def _explain(error: BaseException) -> int | None:
    """Prints what a user needs to know and gives the exit code; None for a fault of ours."""
    from storage.errors import SharpwaveError

    if isinstance(error, SharpwaveError):
        print(f"sharpwave: error: {_one_line(error)}", file=sys.stderr)
        return 2
    # Libraries turn an interrupt while they are imported into errors of their own.
    root = _root(error)
    if isinstance(root, KeyboardInterrupt):
        print(f"\nsharpwave: interrupted. {_one_line(root)}".rstrip(), file=sys.stderr)
        return 130
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
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
