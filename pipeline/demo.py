"""`sharpwave demo`: train, look at the curve and the store, and know what to try next."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.inspect import show_store
from pipeline.parser import VerbParser
from pipeline.quoting import quote
from pipeline.run_folder import RunFolder

if TYPE_CHECKING:
    from training.config import RunConfig

__all__ = ["main"]

_NEXT: Final = """\
What to try next:
{first}  sharpwave evaluate {run} --episodes 20
  sharpwave train --resume {run} --loop.steps={more}
  sharpwave train configs/hopper.yaml
  sharpwave train configs/hopper.yaml configs/er.yaml --name=hopper-er
  sharpwave collect Hopper-v5 --steps 20000 --store runs/hopper.store
  tensorboard --logdir runs
  python -c "import zarr; print(zarr.open_group('{plain}/store/steps.zarr', mode='r').tree())"
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    parser = VerbParser("demo", "Trains by a config file under a name that is not taken yet.")
    parser.add_argument(
        "config",
        metavar="CONFIG",
        type=Path,
        nargs="?",
        default=Path("configs/demo.yaml"),
        help="a YAML file of settings (default configs/demo.yaml)",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="the folder that holds the runs (default runs)",
    )
    settings = parser.parse(arguments)

    from pipeline.train import Run, read_config, train

    config = _with_free_name(read_config([settings.config]), settings.runs)
    folder = RunFolder(settings.runs / config.name)
    train(Run(config, folder))
    print()
    show_store(folder.store)
    print()
    more, path = 2 * config.loop.steps, folder.path
    print(_NEXT.format(run=quote(path), plain=path, more=more, first=_first()), end="")
    return 0


def _first() -> str:
    """How to make the commands work in a shell that does not know them yet."""
    return "" if shutil.which("sharpwave") else f"  source {Path(sys.prefix) / 'bin/activate'}\n"


def _with_free_name(config: RunConfig, runs: Path) -> RunConfig:
    name, number = config.name, 1
    while (runs / name).exists():
        number += 1
        name = f"{config.name}-{number}"
    return dataclasses.replace(config, name=name)
