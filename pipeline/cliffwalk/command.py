"""`sharpwave cliffwalk`: what replay schemes are worth on Blind Cliffwalk, and Theorem 1."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pipeline.cliffwalk.lists import names, numbers, sizes
from pipeline.parser import VerbParser, positive
from storage.errors import ConfigError

__all__ = ["main"]

_DESCRIPTION: Final = (
    "Replays Blind Cliffwalk, where one of 2^(n+1) - 2 transitions is rewarded, by each sampler "
    "until the values are learnt. Tables (Parquet, CSV) and pictures go into a folder; what it "
    "holds already is not played again. Every combination of the LISTs is played: by default 1,200 "
    "trials, which take some 15 min of one free core; each state more doubles that, and --n=2-10 "
    "takes less than a minute."
)
_SAMPLERS: Final = ("uniform", "oracle", "per", "pser-max", "pser-add")
_TRIALS: Final = {
    "samplers": _SAMPLERS,
    "seeds": 10,
    "initial": ("epsilon", "max"),
    "eta": (0.7,),
    "decay": (0.4,),
    "alpha": (1.0,),
    "epsilon": 1e-6,
    "learner": "tabular",
    "start": "zero",
    "processes": None,
}
"""Options of trials and their defaults."""
_THEOREM: Final = {"decay": (0.4, 0.65, 0.8, 0.9), "repeats": 1000}
"""Options of --theorem and theirs."""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    settings = _parser().parse(arguments)
    if settings.theorem:
        from pipeline.cliffwalk.theorem import compare_theorem

        chosen = _chosen(settings, _THEOREM, _TRIALS, "is not for --theorem")
        compare_theorem(settings.folder, settings.n, chosen["decay"], chosen["repeats"])
    else:
        from pipeline.cliffwalk.trials import play_trials

        chosen = _chosen(settings, _TRIALS, _THEOREM, "is for --theorem alone")
        processes = chosen.pop("processes")
        play_trials(settings.folder, settings.n, chosen, processes)
    return 0


def _chosen(
    settings: argparse.Namespace,
    own: Mapping[str, Any],
    others: Mapping[str, Any],
    refusal: str,
) -> dict[str, Any]:
    """Values of the options in `own`, defaults filled in; those of `others` must not be given."""
    for name in others.keys() - own.keys():
        if getattr(settings, name) is not None:
            raise ConfigError(f"sharpwave cliffwalk: --{name} {refusal}; leave it out")
    given = {name: getattr(settings, name) for name in own}
    return {name: own[name] if value is None else value for name, value in given.items()}


def _parser() -> VerbParser:
    parser = VerbParser("cliffwalk", _DESCRIPTION)
    _add(parser, "n", sizes, "LIST", "states of the chain (2-16)", default=tuple(range(2, 17)))
    _add(parser, "folder", Path, "PATH", "(runs/cliffwalk)", default=Path("runs/cliffwalk"))
    _add(parser, "samplers", names(_SAMPLERS), "LIST", f"({','.join(_SAMPLERS)})")
    _add(parser, "seeds", positive, "N", "trials of each, with seeds 0 to N - 1 (10)")
    _add(
        parser,
        "initial",
        names(("epsilon", "max")),
        "LIST",
        "priority of what was never drawn: epsilon, or max, the largest ever (epsilon,max)",
    )
    share = "what PSER leaves a drawn step of its priority at least, eq. 9 (0.7)"
    _add(parser, "eta", numbers(0.0, 1.0), "LIST", share)
    decay = (
        "PSER's factor for a step back; its window follows by eq. 8, 5, 20 and 89 for 0.4, 0.8 "
        "and 0.95 (0.4, with --theorem 0.4,0.65,0.8,0.9)"
    )
    _add(parser, "decay", numbers(0.0, 1.0, open_ends=True), "LIST", decay)
    _add(parser, "alpha", numbers(0.0, 1.0), "LIST", "exponent of the priorities (1)")
    _add(parser, "epsilon", _positive_number, "X", "added to each error (1e-6)")
    parser.add_argument("--learner", choices=("tabular", "linear"), help="(tabular)")
    parser.add_argument(
        "--start", choices=("zero", "normal"), help="parameters at first: 0, or N(0, 0.1) (zero)"
    )
    _add(parser, "processes", positive, "N", "trials at the same time (one a core)")
    parser.add_argument(
        "--theorem",
        action="store_true",
        help="compare PSER's Theorem 1 with simulations of its processes instead",
    )
    _add(parser, "repeats", positive, "N", "with --theorem: simulations of each process (1000)")
    return parser


def _add(
    parser: VerbParser, name: str, kind: Any, metavar: str, text: str, default: Any = None
) -> None:
    parser.add_argument(f"--{name}", type=kind, metavar=metavar, help=text, default=default)


def _positive_number(text: str) -> float:
    (number,) = numbers(0.0, 1.0, open_ends=True)(text)
    return number
