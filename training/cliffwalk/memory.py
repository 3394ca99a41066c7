"""The replay memory of Blind Cliffwalk: every sequence of actions, each played once."""

from __future__ import annotations

import os
from itertools import product
from typing import Final

import numpy as np

import storage
from storage.errors import ConfigError
from storage.randomness import stream_key
from storage.writer import Writer
from training.cliffwalk.environment import ACTIONS, BlindCliffwalk, transitions
from training.environments.environment import describe_environment
from training.environments.environment_config import EnvironmentConfig

__all__ = ["MOST_STATES", "fill_store"]

MOST_STATES: Final = 20
"""Beyond it a memory would not fit into one segment."""


def fill_store(path: str | os.PathLike[str], n: int, seed: int = 0) -> None:
    """Makes a store at `path` of the 2^n action sequences, each played until its episode ends.

    The episodes come in an order that `seed` shuffles. They hold `transitions(n)` steps, one of
    which is rewarded: of state i, 2^(n - 1 - i) with the right action and as many with the wrong
    one.

    Raises:
        ConfigError: n is not between 2 and 20.
        StoreExistsError: something is at `path` already.
    """
    env = BlindCliffwalk(n)
    if n > MOST_STATES:
        raise ConfigError(
            f"n = {n}: the memory would hold {transitions(n):,} steps; choose n up to {MOST_STATES}"
        )
    identifier = f"{BlindCliffwalk.__module__.rpartition('.')[0]}:BlindCliffwalk-v0"
    spec = describe_environment(EnvironmentConfig(identifier, kwargs={"n": n}))
    rows = transitions(n) + 2**n
    budget = 1 << (rows - 1).bit_length()
    with (
        storage.create(path, spec, behaviour="unknown") as store,
        store.writer(run=f"cliffwalk-{seed}", row_budget=budget, seal=True) as writer,
    ):
        _play_all(env, writer, seed)


def _play_all(env: BlindCliffwalk, writer: Writer, seed: int) -> None:
    sequences = list(product(range(ACTIONS), repeat=env.n))
    generator = np.random.Generator(np.random.Philox(key=stream_key(seed, "cliffwalk episodes")))
    for chosen in generator.permutation(len(sequences)):
        observation, _ = env.reset()
        writer.begin(0, observation)
        for action in sequences[chosen]:
            observation, reward, terminated, truncated, _ = env.step(action)
            writer.step(
                0,
                action=action,
                reward=reward,
                observation=observation,
                terminated=terminated,
                truncated=truncated,
            )
            if terminated:
                break
