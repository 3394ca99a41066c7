"""Whole loops of DDPG and DQN beside stable-baselines3's at the same settings, where installed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from bench.effort import Effort
from bench.figure import Figure
from bench.timing import Work, alternate

__all__ = ["measure"]

_TARGET: Final = 1 / 1.5
_WARMUP: Final = 1_000
_BEFORE: Final = 400
"""Steps behind the warm-up that do not count: compiling, caches."""
_STEPS: Final = {"ddpg": 1_000, "dqn": 1_200}
_TITLES: Final = {
    "ddpg": "DDPG loop, HalfCheetah-v5, 2 x 256, B 256",
    "dqn": "DQN loop, Pong, Nature CNN, B 32, an update every 4 steps",
}


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """Environment steps a second; each sample is a process of its own, in turn."""
    if find_spec("stable_baselines3") is None:
        return []
    figures = []
    for agent, title in _TITLES.items():
        works = {side: _work(side, agent, folder) for side in ("own", "peer")}
        samples = alternate(works, effort.repeats(3, least=1), warm=0)
        rates = samples["own"], samples["peer"]
        figures.append(Figure.of(title, "steps/s", *rates, "stable-baselines3", target=_TARGET))
    return figures


def _work(side: str, agent: str, folder: Path) -> Work:
    """The rate of one side's loop, in a fresh process."""

    def rate() -> float:
        command = [sys.executable, "-m", "bench.peer_loops", side, agent]
        place = folder / f"{side}-{agent}-{time.monotonic_ns()}"
        done = subprocess.run([*command, str(place)], check=True, stdout=subprocess.PIPE, text=True)
        return float(json.loads(done.stdout.splitlines()[-1]))

    return rate


class _Watch:
    """Steps a second between two numbers of steps."""

    def __init__(self, first: int, steps: int) -> None:
        self._first, self._last = first, first + steps
        self._began: tuple[int, float] | None = None
        self.rate: float | None = None

    def at(self, steps: int) -> bool:
        """Looks at the clock; whether to go on."""
        if self._began is None and steps >= self._first:
            self._began = steps, time.perf_counter()
        elif self._began is not None and steps >= self._last:
            begun, clock = self._began
            self.rate = (steps - begun) / (time.perf_counter() - clock)
        return self.rate is None


def _own(agent: str, watch: _Watch, folder: Path) -> None:
    from lightning.pytorch.callbacks import Callback

    import training
    from training.config import RunConfig
    from training.config_file import from_mapping

    config = from_mapping(RunConfig, _settings(agent))
    module, data = training.build(config, folder)

    class Ends(Callback):
        def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            trainer.should_stop = not watch.at(pl_module.environment_steps)

    trainer = training.trainer(config, folder)
    trainer.callbacks.append(Ends())  # type: ignore[attr-defined]
    trainer.fit(module, data)


def _settings(agent: str) -> dict[str, Any]:
    loop: dict[str, Any] = {"steps": 10**6, "warmup": _WARMUP}
    run: dict[str, Any] = {
        "loop": loop,
        "logging": {"progress": False},
        "evaluation": {"episodes": 0},
        "replay": {"window": 100_000},
    }
    if agent == "ddpg":
        own = {"kind": "ddpg", "hidden": [256, 256], "batch_size": 256, "activation": "relu"}
        own |= {"residual": False, "learning_rate": 1e-3, "actor_learning_rate": 1e-3}
        own |= {"bounded_mean": True, "order": "sequential", "initialisation": "fan_in"}
        own |= {"critic_weight_decay": 0.0, "target_rate": 0.005, "discount": 0.99}
        own |= {"scale_observations": False, "scale_rewards": False, "refer": "ER"}
        return run | {"environment": {"id": "HalfCheetah-v5"}, "agent": own}
    own = {"kind": "dqn", "padding": "valid", "optimizer": "adam", "learning_rate": 1e-4}
    own |= {"target_interval": 250, "gradient_clip": 10.0, "clip_rewards": True}
    own |= {"exploration_steps": 1, "exploration_final": 0.1}
    loop |= {"updates_per_step": 0.25}
    return run | {"environment": {"id": "Atari/Pong"}, "agent": own}


def _peer(agent: str, watch: _Watch) -> None:
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    class Ends(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            return watch.at(self.num_timesteps)

    make: Callable[[Any], Any] = {"ddpg": _peer_ddpg, "dqn": _peer_dqn}[agent]
    model = make(stable_baselines3)
    torch.set_num_threads(1)
    model.learn(10**6, callback=Ends())


def _peer_ddpg(peer: Any) -> Any:
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    noise = NormalActionNoise(np.zeros(6), 0.2 * np.ones(6))
    layers = {"net_arch": [256, 256]}
    settings: Any = {"batch_size": 256, "learning_starts": _WARMUP, "action_noise": noise}
    settings |= {"train_freq": 1, "policy_kwargs": layers, "device": "cpu", "seed": 0}
    return peer.DDPG("MlpPolicy", "HalfCheetah-v5", **settings)


def _peer_dqn(peer: Any) -> Any:
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    from training.environments.atari import register_atari

    register_atari()
    game: Any = {"frameskip": 1, "repeat_action_probability": 0.0}
    env = VecFrameStack(make_atari_env("ALE/Pong-v5", n_envs=1, seed=0, env_kwargs=game), 4)
    settings: Any = {"batch_size": 32, "train_freq": 4, "learning_starts": _WARMUP}
    settings |= {"buffer_size": 100_000, "optimize_memory_usage": True, "device": "cpu", "seed": 0}
    settings |= {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
    settings |= {"target_update_interval": 1_000, "exploration_fraction": 1e-6}
    return peer.DQN("CnnPolicy", env, exploration_final_eps=0.1, **settings)


def _main(side: str, agent: str, folder: str) -> None:
    watch = _Watch(_WARMUP + _BEFORE, _STEPS[agent])
    if side == "own":
        _own(agent, watch, Path(folder))
    else:
        _peer(agent, watch)
    print(json.dumps(watch.rate))


if __name__ == "__main__":
    _main(*sys.argv[1:])
