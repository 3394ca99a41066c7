"""Trains the runs behind docs/results.md that are not on record yet, and records them."""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any, Final

from bench.arguments import Arguments
from bench.circumstances import circumstances
from bench.learning.outcome import outcome
from bench.learning.picture import save_picture
from bench.learning.table import markdown
from bench.learning.trials import TRIALS, Trial
from pipeline.resumption import resumption
from pipeline.run_folder import RunFolder
from training import load_config

RECORD: Final = Path(__file__).with_name("results.jsonl")
_RECORDING: Final = Lock()


def main(words: Sequence[str]) -> int:
    """Trains, records and prints; the exit status."""
    parser = Arguments("bench.learning", f"{__doc__} Stopped runs go on where they were stopped.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of runs, with wildcards: *naf*")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default 2)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--record", type=Path, default=RECORD, help="file of what came of them")
    parser.add_argument("--table", action="store_true", help="print the record's table and stop")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw the record and stop")
    given = parser.parse_args(words)
    patterns = given.names or ["*"]
    chosen = [trial for trial in TRIALS if any(fnmatch.fnmatch(trial.name, p) for p in patterns)]
    if not chosen:
        parser.error(f"no run is called {' or '.join(patterns)}; there are {_names()}")
    looking = given.table or given.picture is not None
    known = [(line["name"], tuple(line["words"])) for line in recorded(given.record)]
    left = [] if looking else [each for each in chosen if (each.name, each.words) not in known]
    with ThreadPoolExecutor(given.jobs) as pool:
        waiting = [pool.submit(_train_and_record, trial, given) for trial in left]
        try:
            for done in as_completed(waiting):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    wanted = {trial.name for trial in chosen}
    lines = [line for line in recorded(given.record) if line["name"] in wanted]
    print(markdown(lines))
    if given.picture is not None:
        save_picture(lines, given.picture)
    return 0


def recorded(path: Path) -> list[dict[str, Any]]:
    """What came of the runs so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _names() -> str:
    return ", ".join(dict.fromkeys(trial.group for trial in TRIALS))


def _train_and_record(trial: Trial, given: argparse.Namespace) -> None:
    line = _trained(trial, given.runs)
    with _RECORDING, given.record.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(f"{trial.name}: done", file=sys.stderr)


def _trained(trial: Trial, runs: Path) -> dict[str, Any]:
    """Train one run to its end, or go on with it, and look at what came of it."""
    folder = runs / trial.name
    revision = str(circumstances()["revision"])
    print(f"{trial.name}: training", file=sys.stderr)
    runs.mkdir(parents=True, exist_ok=True)
    command = _command(trial, runs, folder)
    if command:
        with (runs / f"{trial.name}.txt").open("a") as said:
            subprocess.run(command, stdout=said, stderr=said, check=True)
    return outcome(trial, folder, revision)


def _command(trial: Trial, runs: Path, folder: Path) -> list[str]:
    """What trains the run; nothing where it has taken its steps."""
    train = [sys.executable, "-m", "pipeline.cli", "train"]
    if not (folder / "checkpoints" / "last.ckpt").exists():
        named = f"--seed={trial.seed}", f"--name={trial.name}", f"--runs={runs}"
        return [*train, *trial.words, *named]
    run = RunFolder.existing(folder)
    finished = resumption(run).steps >= load_config(run.config).loop.steps
    return [] if finished else [*train, f"--resume={folder}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
