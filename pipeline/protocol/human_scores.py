"""Scores of random play and of humans in Atari games, and what agents' scores are beside them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

from storage.errors import ConfigError

__all__ = [
    "HUMAN_SCORES",
    "GameScores",
    "check_video_pinball_random",
    "game_of",
    "human_normalised",
    "improvement",
    "scores_of",
]

_VIDEO_PINBALL: Final = "video_pinball"


@dataclass(frozen=True, slots=True)
class GameScores:
    """Mean raw scores of an episode."""

    random: float
    human: float


def game_of(environment_id: str) -> str:
    """The game in words of lower case: "ms_pacman" of Atari/MsPacman, ALE/MsPacman-v5 and others.

    >>> game_of("Atari/MsPacman"), game_of("ALE/UpNDown-v5"), game_of("PongNoFrameskip-v4")
    ('ms_pacman', 'up_n_down', 'pong')
    """
    name = environment_id.rpartition("/")[2].partition("-")[0]
    name = re.sub(r"(NoFrameskip|Deterministic)$", "", name)
    return re.sub(r"(?<=[A-Za-z0-9])(?=[A-Z])", "_", name).lower()


def scores_of(game: str, *, video_pinball_random: float | None = None) -> GameScores:
    """Random and human scores of a game; `video_pinball_random` is used in place of the table's.

    Raises:
        ConfigError: the table does not have the game (close names are listed), or
            `video_pinball_random` is none (see `check_video_pinball_random`).
    """
    if game not in HUMAN_SCORES:
        close = difflib.get_close_matches(game, HUMAN_SCORES, n=3, cutoff=0.5)
        hint = f"close names: {', '.join(close)}" if close else "it has the 57 usual ones"
        raise ConfigError(f"there is no human score of the game {game!r}; {hint}")
    scores = HUMAN_SCORES[game]
    if game == _VIDEO_PINBALL and video_pinball_random is not None:
        return GameScores(check_video_pinball_random(video_pinball_random), scores.human)
    return scores


def check_video_pinball_random(score: float) -> float:
    """The score itself, if it can be that of random play in Video Pinball.

    The game takes no points, and `human_normalised` needs a human to be better than random play.

    Raises:
        ConfigError: it cannot.
    """
    human = HUMAN_SCORES[_VIDEO_PINBALL].human
    if not 0.0 <= score < human:
        raise ConfigError(
            f"random play cannot score {score:g} in Video Pinball; it must be at least 0 and below "
            f"a human's {human:,.1f}"
        )
    return score


def human_normalised(score: float, scores: GameScores) -> float:
    """100 (score - random) / |human - random|, in per cent: 0 is random play, 100 a human's.

    Schaul et al. 2016, "Prioritized experience replay", appendix.
    """
    return 100.0 * (score - scores.random) / abs(scores.human - scores.random)


def improvement(score: float, baseline: float, scores: GameScores) -> float:
    """100 (score - baseline) / (max(human, baseline) - random), in per cent.

    The measure of Wang et al. 2016, "Dueling network architectures", which we chose: PSER's paper
    speaks of relative improvement over PER without a formula. 0 is the baseline's score; a game
    in which baseline and human are near random play does not dominate.
    """
    return 100.0 * (score - baseline) / (max(scores.human, baseline) - scores.random)


HUMAN_SCORES: Final[dict[str, GameScores]] = {
    "alien": GameScores(227.8, 7127.7),
    "amidar": GameScores(5.8, 1719.5),
    "assault": GameScores(222.4, 742.0),
    "asterix": GameScores(210.0, 8503.3),
    "asteroids": GameScores(719.1, 47388.7),
    "atlantis": GameScores(12850.0, 29028.1),
    "bank_heist": GameScores(14.2, 753.1),
    "battle_zone": GameScores(2360.0, 37187.5),
    "beam_rider": GameScores(363.9, 16926.5),
    "berzerk": GameScores(123.7, 2630.4),
    "bowling": GameScores(23.1, 160.7),
    "boxing": GameScores(0.1, 12.1),
    "breakout": GameScores(1.7, 30.5),
    "centipede": GameScores(2090.9, 12017.0),
    "chopper_command": GameScores(811.0, 7387.8),
    "crazy_climber": GameScores(10780.5, 35829.4),
    "defender": GameScores(2874.5, 18688.9),
    "demon_attack": GameScores(152.1, 1971.0),
    "double_dunk": GameScores(-18.6, -16.4),
    "enduro": GameScores(0.0, 860.5),
    "fishing_derby": GameScores(-91.7, -38.7),
    "freeway": GameScores(0.0, 29.6),
    "frostbite": GameScores(65.2, 4334.7),
    "gopher": GameScores(257.6, 2412.5),
    "gravitar": GameScores(173.0, 3351.4),
    "hero": GameScores(1027.0, 30826.4),
    "ice_hockey": GameScores(-11.2, 0.9),
    "jamesbond": GameScores(29.0, 302.8),
    "kangaroo": GameScores(52.0, 3035.0),
    "krull": GameScores(1598.0, 2665.5),
    "kung_fu_master": GameScores(258.5, 22736.3),
    "montezuma_revenge": GameScores(0.0, 4753.3),
    "ms_pacman": GameScores(307.3, 6951.6),
    "name_this_game": GameScores(2292.3, 8049.0),
    "phoenix": GameScores(761.4, 7242.6),
    "pitfall": GameScores(-229.4, 6463.7),
    "pong": GameScores(-20.7, 14.6),
    "private_eye": GameScores(24.9, 69571.3),
    "qbert": GameScores(163.9, 13455.0),
    "riverraid": GameScores(1338.5, 17118.0),
    "road_runner": GameScores(11.5, 7845.0),
    "robotank": GameScores(2.2, 11.9),
    "seaquest": GameScores(68.4, 42054.7),
    "skiing": GameScores(-17098.1, -4336.9),
    "solaris": GameScores(1236.3, 12326.7),
    "space_invaders": GameScores(148.0, 1668.7),
    "star_gunner": GameScores(664.0, 10250.0),
    "surround": GameScores(-10.0, 6.5),
    "tennis": GameScores(-23.8, -8.3),
    "time_pilot": GameScores(3568.0, 5229.2),
    "tutankham": GameScores(11.4, 167.6),
    "up_n_down": GameScores(533.4, 11693.2),
    "venture": GameScores(0.0, 1187.5),
    "video_pinball": GameScores(16256.9, 17667.9),
    "wizard_of_wor": GameScores(563.5, 4756.5),
    "yars_revenge": GameScores(3092.9, 54576.9),
    "zaxxon": GameScores(32.5, 9173.3),
}
"""57 games, episodes begun by up to 30 no-ops: the table of Google DeepMind's dqn_zoo
(dqn_zoo/atari_data.py). Dopamine's table is the same but for Video Pinball, where random is 0."""
