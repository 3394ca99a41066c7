"""Where a step's time goes: `python -m bench.step_profile [--out PICTURE] [--rounds N]`.

Runs the real loop (Hopper-v5, fused, everything at its default settings) with a stopwatch around
each part; prints a table and draws a picture.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from lightning.pytorch.callbacks import Callback

from bench.arguments import Arguments
from bench.figure import Spread
from bench.inside import converter_of, engine_of, lanes_of, writer_of
from bench.loop_setup import LoopSetup, play
from bench.profile_plot import draw
from bench.results import FOLDER
from bench.stopwatches import Stopwatches

__all__ = ["PARTS", "REST", "main", "profile"]

PICTURE: Final = FOLDER / "plots" / "step.png"
PARTS: Final = (
    "environment",
    "act",
    "write",
    "collector",
    "admit",
    "draw",
    "convert",
    "engine",
    "feed-back",
    "forget",
    "other of the update",
)
REST: Final = "Lightning, logs, checkpoints"


class _Profile(Callback):
    """Puts stopwatches on the run's objects and keeps what each round took."""

    def __init__(self, setup: LoopSetup, rounds: int) -> None:
        self.rounds: list[dict[str, float]] = []
        self.watches = Stopwatches()
        self._setup = setup
        self._wanted = rounds
        self._before: tuple[int, dict[str, int], int] | None = None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        agent, data = pl_module, trainer.datamodule
        collector = data.collector
        owner, convert = converter_of(agent)
        for each, method, part in (
            (lanes_of(collector), "step", "environment"),
            (lanes_of(collector), "reset", "environment"),
            (agent.policy, "act", "act"),
            (agent.policy, "value", "act"),
            (writer_of(collector), "step", "write"),
            (writer_of(collector), "begin", "write"),
            (collector, "advance", "collector"),
            (data.view, "admit", "admit"),
            (data.view, "sample", "draw"),
            (owner, convert, "convert"),
            (engine_of(agent), "update", "engine"),
            (data.view, "feed_back", "feed-back"),
            (data.view, "forget", "forget"),
            (agent, "update", "other of the update"),
        ):
            self.watches.put_on(each, method, part)

    def __call__(self, agent: Any) -> bool:
        now = time.perf_counter_ns()
        if self._before is not None:
            steps, taken, clock = self._before
            done = agent.environment_steps - steps
            each = {p: (t - taken[p]) / done / 1e3 for p, t in self.watches.taken.items()}
            whole = (now - clock) / done / 1e3
            self.rounds.append(each | {REST: whole - sum(each.values())})
        if agent.counters.updates >= self._setup.updates_before:
            taken = dict(self.watches.taken)
            self._before = (agent.environment_steps, taken, time.perf_counter_ns())
        return len(self.rounds) < self._wanted


def profile(setup: LoopSetup, folder: Path, rounds: int) -> dict[str, Spread]:
    """Microseconds a step of every part, over that many rounds of 64 steps.

    Raises:
        RuntimeError: a part was never called, so the loop no longer goes through it.
    """
    watched = _Profile(setup, rounds)
    play(setup, folder, watched, watched)
    silent = [part for part, calls in watched.watches.calls.items() if not calls]
    if silent:
        raise RuntimeError(
            f"never called: {', '.join(silent)}; bench/inside.py must follow the loop"
        )
    return {part: Spread.of([taken[part] for taken in watched.rounds]) for part in (*PARTS, REST)}


def main(words: list[str]) -> int:
    parser = Arguments("bench.step_profile", __doc__)
    parser.add_argument("--out", type=Path, default=PICTURE, help="the picture to write")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of 64 steps")
    given = parser.parse_args(words)
    if given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}; give at least 1")
    with tempfile.TemporaryDirectory(prefix="sharpwave-profile-") as folder:
        parts = profile(LoopSetup("profile"), Path(folder), given.rounds)
    whole = sum(spread.median for spread in parts.values())
    print("| part | µs a step | share |\n|---|---|---|")
    for part, spread in sorted(parts.items(), key=lambda item: -item[1].median):
        print(f"| {part} | {spread.median:,.1f} | {100 * spread.median / whole:.1f} % |")
    print(f"| all | {whole:,.1f} | 100 % |\n")
    print(f"picture: {draw(parts, given.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
