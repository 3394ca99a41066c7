"""`sharpwave protocol`: evaluates runs as the papers evaluate theirs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Final

from pipeline.nearest import nearest
from storage.errors import ConfigError

__all__ = ["PROTOCOLS", "main"]

PROTOCOLS: Final = {
    "refer": "returns of training episodes in bins of steps, over several seeds",
    "atari": "play Atari episodes with a checkpoint's policy until a budget of frames is spent",
    "scores": "human-normalised scores of what `atari` has played, and how they compare",
}
_HELP: Final = """\
usage: sharpwave protocol {choices} ...

Evaluates runs as the papers evaluate theirs, into a Parquet file and a table.

protocols:
{protocols}

options:
  -h, --help   this text; `sharpwave protocol NAME --help` for one protocol"""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    name, *rest = arguments or ["--help"]
    if name in {"-h", "--help"}:
        listed = "\n".join(f"  {each:<10} {text}" for each, text in PROTOCOLS.items())
        print(_HELP.format(choices="|".join(PROTOCOLS), protocols=listed))
        return 0
    if name not in PROTOCOLS:
        raise ConfigError(
            f"there is no protocol {name!r}{nearest(name, PROTOCOLS)}; choose one of "
            f"{', '.join(PROTOCOLS)}"
        )
    return int(importlib.import_module(f"pipeline.protocol.{name}_command").main(rest))
