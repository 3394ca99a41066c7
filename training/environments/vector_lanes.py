"""Lanes over a gymnasium vector environment, in any of its autoreset modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from storage.errors import ConfigError, SchemaMismatchError
from training.environments.lane_processes import LaneProcesses
from training.environments.lanes import Transition, own_copy

__all__ = ["VectorLanes"]

VectorEnvironment = gymnasium.vector.VectorEnv[Any, Any, Any]

_FINAL_KEYS = ("final_obs", "final_observation")


class VectorLanes:
    """Lanes over one :class:`gymnasium.vector.VectorEnv`; all of them step together.

    After each ended episode the lane is reset by a masked reset with the collector's seed, which
    replaces whatever the automatic reset did or would do: no dummy transition of the next-step mode
    ever comes out, and the final observation is taken from the infos in the same-step mode.

    Args:
        env: The vector environment. Its ``reset`` must honour ``options={"reset_mask": …}``.

    Raises:
        ConfigError: the environment declares no autoreset mode.
    """

    def __init__(self, env: VectorEnvironment) -> None:
        self._env = env
        self._processes = LaneProcesses(env)
        self.n_lanes = env.num_envs
        self.stride = env.num_envs
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space
        self._mode = _autoreset_mode(env)
        self._observations: list[Any] | None = None
        self._seeds: list[int | None] = [None] * self.n_lanes

    def reset(self, lane: int, seed: int) -> tuple[Any, Mapping[str, Any]]:
        """Starts an episode in ``lane`` by a masked seeded reset.

        Raises:
            SchemaMismatchError: the reset changed another lane, so masks are not honoured.
        """
        self._start_all(seed)
        seeds: list[int | None] = [None] * self.n_lanes
        seeds[lane] = seed
        mask = np.zeros(self.n_lanes, np.bool_)
        mask[lane] = True
        options = {"reset_mask": mask}
        batch, infos = self._processes.ask(
            f"reset(seed={seed})",
            lane,
            lambda: self._env.reset(seed=seeds, options=options),  # type: ignore[arg-type]
        )
        observations = self._split(batch)
        self._check_others(lane, observations)
        self._observations = observations
        return observations[lane], _lane_info(infos, lane)

    def step(self, first: int, actions: Sequence[Any]) -> list[Transition]:
        """Steps all lanes together; ``first`` is always 0."""
        if first != 0 or len(actions) != self.n_lanes:
            raise ConfigError(
                f"a vector environment steps its {self.n_lanes} lanes together, "
                f"not {len(actions)} from lane {first}"
            )
        # A new array each time: an environment may keep its action until its next step.
        fresh: Any = create_empty_array(self.action_space, self.n_lanes)
        batched = concatenate(self.action_space, list(actions), fresh)
        batch, rewards, terminated, truncated, infos = self._processes.ask(
            "step", None, lambda: self._env.step(batched)
        )
        self._observations = self._split(batch)
        return [
            Transition(
                self._final(lane, infos)
                if terminated[lane] or truncated[lane]
                else self._observations[lane],
                float(rewards[lane]),
                bool(terminated[lane]),
                bool(truncated[lane]),
                _lane_info(infos, lane),
            )
            for lane in range(self.n_lanes)
        ]

    def close(self) -> None:
        """Closes the vector environment, and ends its processes even when they do not answer."""
        self._processes.close()

    def _start_all(self, seed: int) -> None:
        """Masked resets need environments that were reset once; the first reset takes them all."""
        if self._observations is None:
            batch, _ = self._processes.ask(
                f"reset(seed={seed})",
                None,
                lambda: self._env.reset(seed=[seed] * self.n_lanes),  # type: ignore[arg-type]
            )
            self._observations = self._split(batch)

    def _split(self, batch: Any) -> list[Any]:
        return [own_copy(each) for each in iterate(self._env.observation_space, batch)]

    def _final(self, lane: int, infos: Mapping[str, Any]) -> Any:
        """The true last observation of the episode that just ended in ``lane``."""
        if self._mode is not AutoresetMode.SAME_STEP:
            if self._observations is None:
                raise ConfigError("a vector environment was stepped before its first reset")
            return self._observations[lane]
        for key in _FINAL_KEYS:
            values = infos.get(key)
            if values is not None and values[lane] is not None:
                return own_copy(values[lane])
        raise SchemaMismatchError(
            f"lane {lane} ended and was reset in the same step, but info lacks the key "
            f"'final_obs', so the final observation is lost. Found keys: {sorted(infos)}. Make the "
            "vector environment report it, or use the next-step or disabled autoreset mode."
        )

    def _check_others(self, lane: int, observations: list[Any]) -> None:
        for other, observation in enumerate(observations):
            before = self._observations[other] if self._observations is not None else observation
            if other != lane and not _same(before, observation):
                raise SchemaMismatchError(
                    f"resetting lane {lane} of {type(self._env).__name__} also changed lane "
                    f"{other}: it ignores options['reset_mask'], so its episodes cannot be seeded "
                    "one by one. Use separate environments (lane_kind: serial)."
                )


def _autoreset_mode(env: VectorEnvironment) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    if mode is None:
        raise ConfigError(
            f"{type(env).__name__} declares no metadata['autoreset_mode']; set it to the mode that "
            "it implements (gymnasium.vector.AutoresetMode)"
        )
    return mode if isinstance(mode, AutoresetMode) else AutoresetMode(mode)


def _lane_info(infos: Mapping[str, Any], lane: int) -> dict[str, Any]:
    """The info of one lane, out of gymnasium's batched infos with their ``_key`` masks."""
    info = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_info", *_FINAL_KEYS) or mask is None:
            continue
        if mask[lane]:
            info[key] = _lane_info(values, lane) if isinstance(values, Mapping) else values[lane]
    ended = infos.get("_final_info")
    if ended is not None and ended[lane]:
        info = _lane_info(infos["final_info"], lane)
    return info


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, Mapping):
        return all(_same(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return all(_same(a, b) for a, b in zip(left, right, strict=True))
    return bool(np.array_equal(left, right, equal_nan=np.asarray(left).dtype.kind == "f"))
