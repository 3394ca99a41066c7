"""Scores of several games: beside humans, and beside a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.protocol.human_scores import human_normalised, improvement, scores_of
from pipeline.protocol.scored_run import ScoredRun, by_game
from pipeline.text_table import text_table
from storage.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GameResult", "Played", "one_sided", "results_of", "results_text", "score_schema"]


@dataclass(frozen=True, slots=True)
class Played:
    """Mean scores of one method's runs."""

    method: str
    """With the variant where there are several."""
    games: Mapping[str, float]
    """Mean over the runs of each run's mean score."""
    runs: Mapping[str, int]

    @classmethod
    def of(cls, runs: Iterable[ScoredRun], names: Iterable[str], where: str) -> Played:
        """The scores of runs of one method, whose name `names` has for each.

        Raises:
            ConfigError: they are of several methods, or two in a game have one training seed.
        """
        methods = list(dict.fromkeys(names))
        if len(methods) > 1:
            raise ConfigError(
                f"{where} are of {' and '.join(methods)}; name files of one method at a time, and "
                "those to compare with behind --baseline"
            )
        (method,) = methods
        games = by_game(runs, method)
        return cls(
            method,
            {game: float(np.mean([run.score for run in own])) for game, own in games.items()},
            {game: len(own) for game, own in games.items()},
        )


@dataclass(frozen=True, slots=True)
class GameResult:
    """One game; percentages are None where there is nothing to compare with."""

    game: str
    runs: int
    score: float
    human_normalised: float
    baseline_runs: int | None = None
    baseline_score: float | None = None
    baseline_human_normalised: float | None = None
    improvement: float | None = None


def results_of(
    played: Played, baseline: Played | None, video_pinball_random: float | None
) -> list[GameResult]:
    """A result a game, by name.

    Raises:
        ConfigError: there is no human score of a game; close names are listed.
    """
    return [_result(game, played, baseline, video_pinball_random) for game in sorted(played.games)]


def score_schema() -> pa.Schema:
    """Columns of the Parquet table: a row a game."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    return pa.schema(
        [
            ("game", text),
            ("runs", whole),
            ("score", number),
            ("human_normalised", number),
            ("baseline_runs", whole),
            ("baseline_score", number),
            ("baseline_human_normalised", number),
            ("improvement", number),
        ]
    )


def results_text(results: Sequence[GameResult], played: Played, baseline: Played | None) -> str:
    """A table with a line a game, and medians and means below it, medians first.

    With a baseline they are over the games that both have.
    """
    heads = ["game", "runs", "score", "human-normalised"]
    if baseline is None:
        summary = [_summary(played.method, [each.human_normalised for each in results])]
    else:
        heads += ["runs of baseline", "its score", "its human-normalised", "improvement"]
        summary = _beside_baseline(results, played, baseline)
    rows = [_cells(each)[: len(heads)] for each in results]
    return "\n".join([text_table(heads, rows, numbers_from=1), "", *summary])


def one_sided(played: Played, baseline: Played) -> list[str]:
    """A line a method with games that the other lacks, which are in no comparison."""
    other = _other_name(played, baseline)
    sides = ((played.method, played, baseline), (other, baseline, played))
    return [
        f"only {name} has {', '.join(alone)}"
        for name, own, others in sides
        if (alone := sorted(set(own.games) - set(others.games)))
    ]


def _beside_baseline(results: Sequence[GameResult], played: Played, baseline: Played) -> list[str]:
    shared = [each for each in results if each.baseline_score is not None]
    other = _other_name(played, baseline)
    return [
        _summary(played.method, [each.human_normalised for each in shared]),
        _summary(other, [each.baseline_human_normalised for each in shared]),
        _summary(
            f"improvement of {played.method} over {other}", [each.improvement for each in shared]
        ),
        *one_sided(played, baseline),
    ]


def _other_name(played: Played, baseline: Played) -> str:
    """The baseline's method; best and last checkpoints of one method can be compared, too."""
    same = baseline.method == played.method
    return f"{baseline.method} (baseline)" if same else baseline.method


def _result(
    game: str, played: Played, baseline: Played | None, video_pinball_random: float | None
) -> GameResult:
    beside = scores_of(game, video_pinball_random=video_pinball_random)
    score = played.games[game]
    own = GameResult(game, played.runs[game], score, human_normalised(score, beside))
    if baseline is None or game not in baseline.games:
        return own
    other = baseline.games[game]
    return GameResult(
        *(own.game, own.runs, own.score, own.human_normalised, baseline.runs[game], other),
        human_normalised(other, beside),
        improvement(score, other, beside),
    )


def _cells(each: GameResult) -> list[str]:
    return [
        *(each.game, str(each.runs), _number(each.score), _percent(each.human_normalised)),
        "–" if each.baseline_runs is None else str(each.baseline_runs),
        *(_number(each.baseline_score), _percent(each.baseline_human_normalised)),
        _percent(each.improvement),
    ]


def _summary(what: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return f"{what}: no game that both have"
    count = f"{len(known)} game{'s' * (len(known) > 1)}"
    return f"{what}: median {np.median(known):,.1f} %, mean {np.mean(known):,.1f} % over {count}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f} %"
