"""Experience from acting in environments."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

import storage
from storage.episode import read_episode
from storage.errors import StoreExistsError
from training.collector import Collector
from training.experience import Experience, check_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from training.agent import ReplayAgent
    from training.collector import FinishedEpisode
    from training.config import RunConfig
    from training.environments.lanes import Lanes
    from training.environments.recording import Recording

__all__ = ["OnlineExperience"]


class OnlineExperience(Experience):
    """Acts in environments, writes every step to the run's store, and replays from it.

    Args:
        config: The run's settings.
        run_dir: The run's directory; its store is ``run_dir/store``.
        make_lanes: Makes the environment lanes when training begins.
        recording: How a new store keeps what the environment shows.
    """

    store: storage.Store
    collector: Collector
    steps_set_aside: int = 0
    """Steps of finished episodes after the checkpoint, which going on took out of the store."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        make_lanes: Callable[[], Lanes],
        recording: Recording,
    ) -> None:
        super().__init__(config, run_dir)
        self._make_lanes = make_lanes
        self._recording = recording

    @property
    def store_path(self) -> Path:
        """Where the run's store is."""
        return self.run_dir / "store"

    def _open(self, agent: ReplayAgent, state: dict[str, Any]) -> None:
        """Creates the store, or rewinds it to the checkpoint, and opens writer, view and lanes."""
        config, enter = self.config, self._resources.enter_context
        position = None
        lanes = self._make_lanes()
        self._resources.callback(lanes.close)
        if state:
            self.store = enter(storage.open(self.store_path, mode="r+"))
            check_store(self.store, state)
            position = storage.StorePosition.from_json(state["position"])
            before = self.store.n_steps
            storage.rewind(self.store, position, config.name)
            opened = sum(lane.open.steps for lane in position.lanes if lane.open is not None)
            self.steps_set_aside = max(0, before - self.store.n_steps - opened)
        else:
            self.store = enter(self._new_store(agent))
        self._writer = enter(
            self.store.writer(
                lanes=config.loop.lanes,
                run=config.name,
                window=config.replay.window,
                nonfinite=config.loop.nonfinite,
                durability=config.loop.durability,
                sync_episodes=config.loop.sync_episodes,
                sync_seconds=config.loop.sync_seconds,
                continue_from=position,
            )
        )
        self.view = self._open_view(self.store, agent)
        self.collector = Collector(
            lanes,
            self._writer,
            agent.policy,
            seed=config.seed,
            nonfinite=config.loop.nonfinite,
            life_loss=self.store.schema.life_loss,
        )
        if state:
            self.view.load_state_dict(state["view"])
            self.collector.restore(state["collector"], self.store.schema.observation)

    def retire(self) -> None:
        """Leaves segments that nothing of the window is in out of the positions to come."""
        self._writer.retain(self.view.needed_segments())

    def _new_store(self, agent: ReplayAgent) -> storage.Store:
        recording = dataclasses.asdict(self._recording)
        try:
            return storage.create(self.store_path, agent.spec, **recording)
        except StoreExistsError as error:
            raise StoreExistsError(
                f"{self.store_path} is there already, from an earlier run: give training.build "
                "another run_dir, or go on with that run by trainer.fit(module, data, "
                f"ckpt_path={str(self.run_dir / 'checkpoints' / 'last.ckpt')!r}, weights_only=True)"
            ) from error

    def _play(self, agent: ReplayAgent) -> None:
        """Takes the round's environment steps, learning after each group of lanes."""
        collector = self.collector
        end = self._round_end(collector.steps)
        while collector.steps < end:
            collector.policy_update = agent.acting_update
            for episode in collector.advance():
                errors = self._initial_errors(agent, episode)
                self.view.admit(episode.record, _first_values(episode), priority_error=errors)
                agent.episode_ended(episode.record)
            agent.learn(self.view, collector.steps)

    def _initial_errors(
        self, agent: ReplayAgent, episode: FinishedEpisode
    ) -> NDArray[np.float32] | None:
        """Errors of an episode's steps under the present network, where priorities begin by them.

        Those of an agent with a state value follow from what it gave while acting.
        """
        replay = self.config.replay
        wanted = replay.prioritized and replay.priorities.initial == "current_td"
        if not wanted or episode.values is not None:
            return None
        store, record = self.store, episode.record
        store.refresh()
        segment = store.segment(record.segment)
        return agent.initial_errors(read_episode(record, segment, store.schema, store.env_spec))

    def _live_state(self) -> dict[str, Any]:
        return {
            "store": self.store.uuid,
            "position": self._writer.position().to_json(),
            "collector": self.collector.state(),
            "view": self.view.state_dict(),
        }


def _first_values(episode: FinishedEpisode) -> NDArray[np.float32]:
    """V of every row as acting gave it; zeros of agents without one.

    Never None, which would leave what the overlay holds: its rows may be those of an episode that
    going back to a checkpoint has set aside.
    """
    if episode.values is not None:
        return episode.values
    return np.zeros(episode.record.length + 1, np.float32)
