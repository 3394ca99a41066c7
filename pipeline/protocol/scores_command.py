"""`sharpwave protocol scores FILE ...`: scores beside humans' and beside a baseline's."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pipeline.parser import VerbParser
from storage.errors import ConfigError

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

    from pipeline.protocol.conditions import check_comparable
    from pipeline.protocol.parquet_file import read_rows, write_rows
    from pipeline.protocol.played import played_schema
    from pipeline.protocol.score_table import Played, results_of, results_text, score_schema

    named = dict.fromkeys([*settings.files, *(settings.baseline or [])])
    files = {path: read_rows(path, played_schema()) for path in named}
    check_comparable(files)
    checkpoints = {Path(row["checkpoint"]).name for rows in files.values() for row in rows}
    if {"best.ckpt", "last.ckpt"} <= checkpoints:
        warnings.warn(
            "some phases are of a run's best.ckpt, others of last.ckpt: choosing the best by its "
            "evaluations favours it",
            stacklevel=2,
        )

    def played(paths: Sequence[Path]) -> Played:
        rows = [row for path in dict.fromkeys(paths) for row in files[path]]
        return Played.of(rows, " and ".join(map(str, paths)))

    own = played(settings.files)
    baseline = played(settings.baseline) if settings.baseline else None
    results = results_of(own, baseline, settings.video_pinball_random)
    rows = [asdict(each) for each in results]
    output = settings.output or settings.files[0].parent / "atari_scores.parquet"
    path = write_rows(rows, score_schema(), output)
    if settings.json:
        print(json.dumps(rows, indent=2))
        return 0
    print(results_text(results, own.method, None if baseline is None else baseline.method))
    if any(each.game == "video_pinball" for each in results):
        print(_video_pinball(settings.video_pinball_random))
    print(f"\ntable: {path}")
    return 0


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
        "--baseline", metavar="FILE", type=Path, nargs="+", help="the same of another method"
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
