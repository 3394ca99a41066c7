"""`sharpwave protocol refer RUN ...`: training returns in bins, as ReF-ER's paper shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipeline.parser import VerbParser, positive
from storage.errors import ConfigError

__all__ = ["main"]

_DESCRIPTION: Final = (
    "Mean return of training episodes, exploration on, as they enter the replay memory: in bins of "
    "steps, the mean over the runs' means and their 20-80 % band. Runs of one method (agent, rules "
    "and scheme) and environment must differ by their seed alone; those that differ in how steps "
    "are drawn are variants, which are told apart. Bins begin behind the warm-up, as in the paper; "
    "both counts of steps are shown. No environment is needed."
)


def main(arguments: Sequence[str]) -> int:
    """Runs the protocol."""
    parser = VerbParser("protocol refer", _DESCRIPTION)
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="a run's folder, as runs/hopper"
    )
    parser.add_argument(
        "--bin", type=positive, default=200_000, metavar="N", help="steps a bin (default 200000)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PARQUET",
        help="where the table goes (default: refer_protocol.parquet beside the first run)",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="PNG",
        help="where the picture goes (default: refer_protocol.png beside the first run)",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead")
    settings = parser.parse(arguments)

    from pipeline.protocol.bin_plot import save_bins
    from pipeline.protocol.bin_table import bin_rows, bin_schema, bins_text
    from pipeline.protocol.bins import binned
    from pipeline.protocol.method_settings import differing
    from pipeline.protocol.parquet_file import write_rows
    from pipeline.protocol.trained_run import TrainedRun, methods_of

    methods = methods_of(TrainedRun.at(path) for path in settings.runs)
    found = [
        (method, binned([run.returns() for run in method.runs], settings.bin)) for method in methods
    ]
    if not any(each.episodes for _, bins in found for each in bins):
        raise ConfigError("there is nothing to bin: no episode of these runs has ended yet")
    folder = settings.runs[0].parent
    rows = bin_rows(found)
    table = write_rows(rows, bin_schema(), settings.output or folder / "refer_protocol.parquet")
    picture = save_bins(found, settings.picture or folder / "refer_protocol.png")
    if settings.json:
        print(json.dumps(rows, indent=2))
        return 0
    for method, bins in found:
        print(f"{bins_text(method, bins)}\n")
    between = differing([run for method in methods for run in method.runs])
    if between:
        print(f"besides seeds, these runs differ in {', '.join(between)}\n")
    print(f"table: {table}    picture: {picture}")
    return 0
