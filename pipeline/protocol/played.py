"""Episodes that the Atari protocol has played: rows, their Parquet columns, and a summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.flat_settings import flat_settings
from pipeline.method_name import method_name
from pipeline.protocol.human_scores import HUMAN_SCORES, game_of, human_normalised, scores_of
from pipeline.protocol.method_settings import FREE

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.loaded_agent import LoadedAgent
    from pipeline.protocol.atari_phase import AtariPhase, PlayedPhase

__all__ = ["phase_columns", "played_rows", "played_schema", "played_text"]


def played_schema() -> pa.Schema:
    """Columns of the Parquet table: a row an episode."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    return pa.schema(
        [
            ("run", text),
            ("method", text),
            ("settings", text),
            ("game", text),
            ("environment", text),
            ("checkpoint", text),
            ("training_steps", whole),
            ("run_seed", whole),
            ("epsilon", number),
            ("noop_max", whole),
            ("frames_budget", whole),
            ("frame_skip", whole),
            ("max_frames", whole),
            ("sticky", number),
            ("full_actions", pa.bool_()),
            ("wrappers", text),
            ("phase_seed", whole),
            ("episode", whole),
            ("reset_seed", whole),
            ("score", number),
            ("steps", whole),
            ("complete", pa.bool_()),
        ]
    )


def phase_columns(loaded: LoadedAgent, phase: AtariPhase) -> dict[str, Any]:
    """What all rows of a phase share, known before it is played."""
    from training.config_file import to_mapping
    from training.environments.atari import stored_id
    from training.environments.atari_settings import atari_settings

    config = loaded.agent.config
    environment = stored_id(config.environment.id)
    shown = atari_settings(config.environment.kwargs)
    wrappers = [asdict(wrapper) for wrapper in config.environment.wrappers]
    kept = to_mapping(config)
    return {
        "run": config.name,
        "method": method_name(kept),
        "settings": _settings(kept, asdict(shown)),
        "game": game_of(environment),
        "environment": environment,
        "checkpoint": str(loaded.path),
        "training_steps": loaded.agent.environment_steps,
        "run_seed": config.seed,
        "epsilon": phase.epsilon,
        "noop_max": phase.noop_max,
        "frames_budget": phase.frames,
        "frame_skip": shown.frame_skip,
        "max_frames": shown.max_frames,
        "sticky": float(shown.sticky),
        "full_actions": shown.full_actions,
        "wrappers": json.dumps(wrappers, sort_keys=True, default=str) if wrappers else "",
        "phase_seed": phase.seed,
    }


def played_rows(
    loaded: LoadedAgent, phase: AtariPhase, played: PlayedPhase
) -> list[dict[str, Any]]:
    """Rows of `played_schema`."""
    same = phase_columns(loaded, phase)
    return [
        same
        | {
            "episode": number,
            "reset_seed": episode.seed,
            "score": episode.episode_return,
            "steps": episode.length,
            "complete": played.complete,
        }
        for number, episode in enumerate(played.episodes)
    ]


def played_text(rows: Sequence[dict[str, Any]], video_pinball_random: float | None = None) -> str:
    """What the episodes of one checkpoint came to, in a few lines."""
    first, scores = rows[0], np.array([row["score"] for row in rows])
    count, steps = len(rows), sum(row["steps"] for row in rows)
    beside = _beside_humans(first["game"], float(scores.mean()), video_pinball_random)
    return (
        f"{first['checkpoint']}: written after {first['training_steps']:,} steps\n"
        f"{first['environment']}, {count} episode{'s' * (count > 1)}, {steps:,} steps; "
        f"ε {first['epsilon']:g}, up to {first['noop_max']} no-ops\n"
        f"score {scores.mean():,.1f} ± {scores.std():,.1f}"
        f"  ({scores.min():,.1f} to {scores.max():,.1f})\n"
        f"{beside}"
    )


def _settings(kept: dict[str, Any], shown: dict[str, Any]) -> str:
    """What runs of a method are compared by, as JSON; the game has a column of its own."""
    environment = kept["environment"] | {"kwargs": shown}
    flat = flat_settings(kept | {"environment": environment})
    told = {name: value for name, value in flat if not name.startswith((*FREE, "environment.id"))}
    return json.dumps(told, default=str)


def _beside_humans(game: str, score: float, video_pinball_random: float | None) -> str:
    if game not in HUMAN_SCORES:
        return f"there is no human score of {game} to compare with"
    beside = scores_of(game, video_pinball_random=video_pinball_random)
    return (
        f"human-normalised {human_normalised(score, beside):,.1f} %  (random {beside.random:,.1f}, "
        f"human {beside.human:,.1f})"
    )
