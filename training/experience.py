"""Where a run's steps come from: acting in environments, or a store that exists already."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lightning.pytorch import LightningDataModule

import storage
from storage.errors import CheckpointError
from training.collector import Collector
from training.plain_state import as_arrays, as_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.replay import ReplayView
    from training.agent import ReplayAgent
    from training.config import RunConfig
    from training.lanes import Lanes

__all__ = ["Experience", "OfflineExperience", "OnlineExperience"]


class Experience(Protocol):
    """What a replay agent plays its rounds with.

    Contract: ``begin`` is called once when training starts, after every checkpoint was loaded;
    ``play_round`` once a Lightning training step. It takes the round's steps, admits the episodes
    that ended, and calls ``agent.learn`` after each group of steps. It stops exactly at the
    budget. State is complete at round ends only.
    """

    view: ReplayView

    def begin(self, agent: ReplayAgent) -> None: ...

    def play_round(self, agent: ReplayAgent) -> None: ...


class _Rounds:
    """An endless, unsized, stateless loader whose every batch is the experience itself."""

    def __init__(self, experience: Any) -> None:
        self._experience = experience

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(self._experience)


class _ReplayData(LightningDataModule):
    """What both kinds of experience share: settings, loader, view and its state."""

    view: ReplayView

    def __init__(self, config: RunConfig, run_dir: Path) -> None:
        super().__init__()
        self._config = config
        self._run_dir = run_dir
        self._open = False
        self._between_rounds = True
        self._state: dict[str, Any] = {}

    def train_dataloader(self) -> Any:
        """The endless loader of rounds."""
        return _Rounds(self)

    def state_dict(self) -> dict[str, Any]:
        """State at a round's end: tensors and plain values."""
        if not self._between_rounds:
            raise CheckpointError("a checkpoint can only be written between two rounds")
        return dict(as_tensors(self._live_state())) if self._open else self._state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keeps a checkpoint's state until training begins."""
        self._state = state_dict

    def teardown(self, stage: str | None = None) -> None:  # noqa: ARG002
        """Closes everything; the state of the last round's end stays for a late checkpoint."""
        if self._open:
            if self._between_rounds:
                self._state = self.state_dict()
            self._open = False
            self._close()

    def _live_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _open_view(self, store: storage.Store, **options: Any) -> ReplayView:
        replay = self._config.replay
        return store.replay(
            window=replay.window,
            scheme=replay.scheme,
            overlay=replay.overlay,
            seed=self._config.seed,
            discount=self._config.agent.discount,
            **options,
        )

    def _check_store(self, store: storage.Store, state: dict[str, Any]) -> None:
        if state["store"] != store.uuid:
            raise CheckpointError(
                f"the checkpoint belongs to the store {state['store']}, but {store.path} is "
                f"{store.uuid}; put the run's own store back or start a new run"
            )


class OnlineExperience(_ReplayData):
    """Acts in environments, writes every step to the run's store, and replays from it.

    Args:
        config: The run's settings.
        run_dir: The run's directory; its store is ``run_dir/store``.
        lanes: Makes the environment lanes when training begins.
    """

    def __init__(self, config: RunConfig, run_dir: Path, lanes: Any) -> None:
        super().__init__(config, run_dir)
        self._make_lanes = lanes

    @property
    def store_path(self) -> Path:
        """Where the run's store is."""
        return self._run_dir / "store"

    def begin(self, agent: ReplayAgent) -> None:
        """Creates the store, or rewinds it to the checkpoint, and opens writer, view and lanes."""
        state = as_arrays(self._state)
        config = self._config
        position = None
        if state:
            self.store = storage.open(self.store_path, mode="r+")
            self._check_store(self.store, state)
            position = storage.StorePosition.from_json(state["position"])
            storage.rewind(self.store, position, config.name)
        else:
            self.store = storage.create(self.store_path, agent.spec)
        self.writer = self.store.writer(
            lanes=config.loop.lanes,
            run=config.name,
            window=config.replay.window,
            nonfinite=config.loop.nonfinite,
            continue_from=position,
        )
        self._open = True
        self.view = self._open_view(self.store)
        self.lanes: Lanes = self._make_lanes()
        self.collector = Collector(self.lanes, self.writer, agent.policy, seed=config.seed)
        if state:
            self.view.load_state_dict(state["view"])
            self.collector.restore(state["collector"], self.store.schema.observation)

    def play_round(self, agent: ReplayAgent) -> None:
        """Takes the round's environment steps, learning after each group of lanes."""
        loop, collector = self._config.loop, self.collector
        end = min((collector.steps // loop.round_steps + 1) * loop.round_steps, loop.steps)
        self._between_rounds = False
        while collector.steps < end:
            collector.policy_update = agent.counters.updates
            for episode in collector.advance():
                self.view.admit(episode.record, episode.values)
                agent.episode_ended(episode.record)
            agent.learn(self.view, collector.steps)
        self._between_rounds = True

    def _live_state(self) -> dict[str, Any]:
        return {
            "store": self.store.uuid,
            "position": self.writer.position().to_json(),
            "collector": self.collector.state(),
            "view": self.view.state_dict(),
        }

    def _close(self) -> None:
        try:
            self.writer.close()
        finally:
            self.view.close()
            self.lanes.close()
            self.store.close()


class OfflineExperience(_ReplayData):
    """Replays a store that exists already; nothing is acted, a round is k updates.

    The store is opened for reading. Mutable columns live in the run's directory, so several runs
    may learn from one store at once.

    Args:
        config: The run's settings; ``replay.store`` names the store.
        run_dir: The run's directory.
    """

    def begin(self, agent: ReplayAgent) -> None:
        """Opens the view over the newest steps."""
        state = as_arrays(self._state)
        self.store = storage.open(Path(self._config.replay.store or ""), mode="r")
        self._run_dir.mkdir(parents=True, exist_ok=True)
        self._open = True
        self.view = self._open_view(self.store, overlay_root=self._run_dir)
        if state:
            self._check_store(self.store, state)
            self.view.load_state_dict(state["view"])
        self._steps = agent.environment_steps

    def play_round(self, agent: ReplayAgent) -> None:
        """Runs the round's updates; its steps are counted as if they had been acted."""
        loop = self._config.loop
        end = min((self._steps // loop.round_steps + 1) * loop.round_steps, loop.steps)
        self._between_rounds = False
        while self._steps < end:
            if agent.learning:
                self._steps += 1
            agent.learn(self.view, self._steps)
        self._between_rounds = True

    def _live_state(self) -> dict[str, Any]:
        return {"store": self.store.uuid, "view": self.view.state_dict()}

    def _close(self) -> None:
        self.view.close()
        self.store.close()
