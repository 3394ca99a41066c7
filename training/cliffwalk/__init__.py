"""Blind Cliffwalk: what replay schemes are worth where one transition of 2^(n+1) is rewarded.

Importing the package registers the environment, so that `training.cliffwalk:BlindCliffwalk-v0`
names it wherever an environment is asked for.
"""

from __future__ import annotations

import gymnasium

from training.cliffwalk.environment import BlindCliffwalk, true_values

__all__ = ["BlindCliffwalk", "true_values"]

gymnasium.register("BlindCliffwalk-v0", entry_point="training.cliffwalk.environment:BlindCliffwalk")
