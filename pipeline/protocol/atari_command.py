"""`sharpwave protocol atari RUN`: scores of a checkpoint by the protocol of DQN's experiments."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.loaded_agent import LoadedAgent, add_checkpoint_options
from pipeline.parser import VerbParser, natural, positive, share
from pipeline.protocol.termination import Termination

if TYPE_CHECKING:
    from pipeline.protocol.atari_phase import AtariPhase

__all__ = ["main"]

_DESCRIPTION: Final = (
    "Plays whole Atari episodes, all but greedily, until the frames are spent, and says the mean "
    "raw score and what it is beside random play and humans. One row an episode goes into a "
    "Parquet file; `sharpwave protocol scores` makes a table of several games of such files."
)

_INT_END: Final = 2**63


def main(arguments: Sequence[str]) -> int:
    """Runs the protocol."""
    settings = _parser().parse(arguments)

    loaded = LoadedAgent.at(settings.run, settings.checkpoint, settings.trust)
    from pipeline.protocol.atari_phase import AtariPhase, departures, play_phase
    from pipeline.protocol.parquet_file import check_place, write_rows
    from pipeline.protocol.phase_file import check_replaceable
    from pipeline.protocol.played import phase_columns, played_rows, played_schema, played_text

    epsilon = settings.epsilon
    if epsilon is None:
        epsilon = getattr(loaded.agent.config.agent, "evaluation_epsilon", AtariPhase().epsilon)
    phase = AtariPhase(settings.frames, epsilon, settings.noop_max, settings.seed)
    for departure in departures(loaded.agent):
        warnings.warn(f"scores are not comparable: {departure}", stacklevel=2)
    folder = settings.run if settings.run.is_dir() else settings.run.parent
    output = settings.output or folder / "atari_protocol.parquet"
    check_place(output)
    check_replaceable(output, phase_columns(loaded, phase))
    with Termination() as termination:
        played = play_phase(loaded.agent, phase, _told(phase, quiet=settings.json))
    rows = played_rows(loaded, phase, played)
    if not played.complete:
        kept = _kept(rows, played.frames, phase, output)
        if termination.came:
            termination.end(kept)
        raise KeyboardInterrupt(kept)
    path = write_rows(rows, played_schema(), output)
    if settings.json:
        print(json.dumps(rows, indent=2))
        return 0
    print(played_text(rows, settings.video_pinball_random))
    print(f"table: {path}")
    return 0


def _kept(rows: Sequence[dict[str, Any]], frames: int, phase: AtariPhase, output: Path) -> str:
    """Writes the episodes of an interrupted phase, and says where they are."""
    from pipeline.protocol.phase_file import write_part

    if not rows:
        return "No episode had ended, and nothing was written."
    return (
        f"{len(rows)} episode{'s' * (len(rows) > 1)}, {frames:,} of {phase.frames:,} frames, are "
        f"in {write_part(rows, output)}, marked as incomplete."
    )


def _parser() -> VerbParser:
    from pipeline.protocol.scores_command import add_video_pinball

    parser = VerbParser("protocol atari", _DESCRIPTION)
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="a run's folder, as runs/pong, or a .ckpt file"
    )
    add_checkpoint_options(parser)

    def add(name: str, kind: Callable[[str], Any], default: Any, text: str) -> None:
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar="N", help=f"{text} (default {default})"
        )

    add("frames", _stored(positive), 500_000, "frames of the emulator, four a step, to be played")
    parser.add_argument(
        "--epsilon",
        type=share,
        metavar="N",
        help="probability of a random action (default: the run's agent.evaluation_epsilon, 0.001 "
        "unless set)",
    )
    add(
        "noop-max", _noops, 30, "most frames of doing nothing that an episode begins with, up to 60"
    )
    add("seed", _stored(natural), 0, "resets and random actions are derived from it")
    add_video_pinball(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PARQUET",
        help="where the episodes go (default: atari_protocol.parquet beside the checkpoint's run)",
    )
    parser.add_argument("--json", action="store_true", help="print the episodes as JSON instead")
    return parser


def _noops(text: str) -> int:
    from training.environments.atari_settings import MOST_NOOPS, noop_refusal

    number = natural(text)
    if number > MOST_NOOPS:
        raise argparse.ArgumentTypeError(f"{number} is too large; it must be {noop_refusal()}")
    return number


def _stored(kind: Callable[[str], int]) -> Callable[[str], int]:
    """A whole number that the table can hold, which is said before hours of playing."""

    def number(text: str) -> int:
        value = kind(text)
        if value >= _INT_END:
            raise argparse.ArgumentTypeError(f"{value} is too large, it must be below 2**63")
        return value

    return number


def _told(phase: AtariPhase, *, quiet: bool) -> Callable[[int], None]:
    """Says how far the phase is, every tenth."""
    tenths = 0

    def tell(frames: int) -> None:
        nonlocal tenths
        now = min(10, 10 * frames // phase.frames)
        if now > tenths and not quiet:
            print(f"{frames:,} of {phase.frames:,} frames", file=sys.stderr)
        tenths = max(tenths, now)

    return tell
