"""What is likely to surprise in the settings of a run on an Atari game."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.streams import complain

if TYPE_CHECKING:
    from training.config import RunConfig

__all__ = ["give_atari_hints"]


def give_atari_hints(config: RunConfig) -> None:
    """Says where bare screens are learnt from, and where evaluations play one game again."""
    from training.environments.atari import screens_hint
    from training.environments.atari_settings import same_game_hint

    hint = screens_hint(config.environment)
    if hint is not None:
        complain(f"sharpwave: note: {hint}")
    hint = same_game_hint(config.evaluation_environment, config.evaluation.episodes)
    if hint is not None:
        complain(f'sharpwave: note: {hint}: --evaluation.environment_kwargs="{{noop_max: 30}}"')
