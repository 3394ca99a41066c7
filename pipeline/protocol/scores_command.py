"""`sharpwave protocol scores FILE ...`: scores beside humans' and beside a baseline's."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.parser import VerbParser
from pipeline.streams import complain
from storage.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.protocol.score_table import Played
    from pipeline.protocol.scored_run import ScoredRun

__all__ = ["add_video_pinball", "main"]

_DESCRIPTION: Final = (
    "Makes a table of what `sharpwave protocol atari` has played, a line a game: the mean score, "
    "that beside random play (0 %) and a human's (100 %), and, with --baseline, the improvement "
    "over it, 100 (score - baseline) / (max(human, baseline) - random), which is Wang et al.'s "
    "measure and our choice: PSER's paper gives no formula. Medians over games come first, since a "
    "single game can make a mean."
)


def main(arguments: Sequence[str]) -> int:
    """Runs the protocol."""
    settings = _parser().parse(arguments)

    from pipeline.protocol.method_settings import differing
    from pipeline.protocol.parquet_file import write_rows
    from pipeline.protocol.score_table import one_sided, results_of, results_text, score_schema
    from pipeline.protocol.scored_run import methods_named, scored_runs

    files = _read([*settings.files, *settings.baseline])
    runs, others = (
        scored_runs({path: files[path] for path in paths})
        for paths in (settings.files, settings.baseline)
    )
    names = methods_named([*runs, *others])
    own = _played(runs, names[: len(runs)], settings.files)
    baseline = _played(others, names[len(runs) :], settings.baseline) if others else None
    results = results_of(own, baseline, settings.video_pinball_random)
    rows = [asdict(each) for each in results]
    output = settings.output or settings.files[0].parent / "atari_scores.parquet"
    path = write_rows(rows, score_schema(), output)
    if settings.json:
        for line in one_sided(own, baseline) if baseline else []:
            complain(f"sharpwave: note: {line}")
        print(json.dumps(rows, indent=2))
        return 0
    print(results_text(results, own, baseline))
    between = differing([*runs, *others], budget=True)
    if between:
        print(f"besides games and seeds, these runs differ in {', '.join(between)}")
    if any(each.game == "video_pinball" for each in results):
        print(_video_pinball(settings.video_pinball_random))
    print(f"\ntable: {path}")
    return 0


def _read(paths: Sequence[Path]) -> dict[Path, list[dict[str, Any]]]:
    """The rows of each file; all were played by one protocol, to the end."""
    from pipeline.protocol.conditions import check_comparable
    from pipeline.protocol.parquet_file import read_rows
    from pipeline.protocol.played import played_schema

    files = {path: read_rows(path, played_schema()) for path in dict.fromkeys(paths)}
    check_comparable(files)
    checkpoints = {Path(row["checkpoint"]).name for rows in files.values() for row in rows}
    if {"best.ckpt", "last.ckpt"} <= checkpoints:
        warnings.warn(
            "some phases are of a run's best.ckpt, others of last.ckpt: choosing the best by its "
            "evaluations favours it",
            stacklevel=3,
        )
    return files


def _played(runs: Sequence[ScoredRun], names: Sequence[str], paths: Sequence[Path]) -> Played:
    from pipeline.protocol.score_table import Played

    return Played.of(runs, names, " and ".join(map(str, paths)))


def add_video_pinball(parser: argparse.ArgumentParser) -> None:
    """Adds --video-pinball-random."""
    parser.add_argument(
        "--video-pinball-random",
        type=_pinball_random,
        metavar="SCORE",
        help="what random play scores in Video Pinball: the usual table's 16256.9 unless given; "
        "Dopamine has 0",
    )


def _pinball_random(text: str) -> float:
    from pipeline.protocol.human_scores import check_video_pinball_random

    try:
        return check_video_pinball_random(float(text))
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _parser() -> VerbParser:
    parser = VerbParser("protocol scores", _DESCRIPTION)
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="+", help="runs/NAME/atari_protocol.parquet"
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="the same of another method, or of another variant of it",
    )
    add_video_pinball(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PARQUET",
        help="where the table goes (default: atari_scores.parquet beside the first file)",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead")
    return parser


def _video_pinball(chosen: float | None) -> str:
    from pipeline.protocol.human_scores import scores_of

    used = scores_of("video_pinball", video_pinball_random=chosen).random
    return (
        f"Video Pinball is normalised by a random score of {used:,.1f}; tables differ (16,256.9 or "
        "0, see --video-pinball-random), and so does the mean, by hundreds of per cent"
    )
