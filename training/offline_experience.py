"""Experience from a store that exists already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import storage
from storage.errors import SchemaMismatchError
from training.experience import Experience, check_store

if TYPE_CHECKING:
    from training.agent import ReplayAgent

__all__ = ["OfflineExperience"]


class OfflineExperience(Experience):
    """Replays a fixed store; nothing is acted, and a round is k updates.

    The store is opened for reading. Mutable columns live in the run's directory, so that several
    runs may learn from one store at once. ``loop.steps`` and every other number of steps in the
    settings counts updates; that the store holds a batch was checked before.

    Args:
        config: The run's settings; ``replay.store`` names the store.
        run_dir: The run's directory.
    """

    store: storage.Store

    def _open(self, agent: ReplayAgent, state: dict[str, Any]) -> None:
        """Opens the view over the newest steps, and sets scales and targets of a new run."""
        path = Path(self.config.replay.store or "")
        self.store = self._resources.enter_context(storage.open(path))
        if "behaviour" in agent.fields and not self.store.schema.behaviour_size:
            raise SchemaMismatchError(
                f"{path} keeps no behaviour of its steps (it was created with behaviour="
                "'unknown'), which importance ratios need; collect steps with `sharpwave collect`, "
                "or import them with the distribution that drew each action"
            )
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.view = self._open_view(self.store, agent, overlay_root=self.run_dir)
        self._steps = agent.steps
        if state:
            check_store(self.store, state)
            self.view.load_state_dict(state["view"])
            return
        agent.begin_learning(self.view)

    def _play(self, agent: ReplayAgent) -> None:
        """Runs the round's updates."""
        end = self._round_end(self._steps)
        while self._steps < end:
            self._steps += 1
            agent.learn(self.view, self._steps)

    def _live_state(self) -> dict[str, Any]:
        return {"store": self.store.uuid, "view": self.view.state_dict()}
