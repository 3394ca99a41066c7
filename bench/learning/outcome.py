"""What came of a training run: returns while training, and greedy ones on fresh seeds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from bench.learning.trials import Trial
from pipeline.protocol.bins import binned
from pipeline.protocol.trained_run import TrainedRun

__all__ = ["outcome"]

_EPISODES: Final = 20
_SEED: Final = 1_000
"""Of the greedy episodes: while training, others were played to choose the best checkpoint."""


def outcome(trial: Trial, folder: Path, revision: str) -> dict[str, Any]:
    """One line of the record; ``bins`` are mean returns of training episodes, the warm-up first."""
    run = TrainedRun.at(folder)
    bins = binned([run.returns()], trial.bin_steps)
    return {
        "name": trial.name,
        "words": list(trial.words),
        "revision": revision,
        "environment": run.environment,
        "method": run.method,
        "steps": run.settings["loop.steps"],
        "warmup": run.settings["loop.warmup"],
        "bin_steps": trial.bin_steps,
        "bins": [round(each.mean, 2) for each in bins],
        "best": _greedy(folder, "best"),
        "last": _greedy(folder, "last"),
    }


def _greedy(run: Path, which: str) -> dict[str, Any]:
    """Step and returns of a checkpoint, by `sharpwave evaluate`."""
    words = ["evaluate", str(run), f"--checkpoint={which}", f"--episodes={_EPISODES}"]
    command = [sys.executable, "-m", "pipeline.cli", *words, f"--seed={_SEED}", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    returns = [round(each, 2) for each in found["returns"]]
    return {"step": found["training_steps"], "returns": returns}
