"""Where a run's steps come from: the contract, and what both kinds share."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lightning.pytorch import LightningDataModule

from storage.errors import CheckpointError
from training.checkpoints.plain_state import as_arrays, as_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from storage import Store
    from storage.replay import ReplayView
    from training.agent import ReplayAgent
    from training.config import RunConfig

__all__ = ["Experience"]


class Experience(LightningDataModule):
    """What a replay agent plays its rounds with.

    Contract for subclasses. ``_open`` is called once when training starts, after every checkpoint
    was loaded; it sets ``view`` and registers in ``_resources`` whatever must be closed.
    ``_play`` is called once a Lightning training step: it takes the round's steps, admits the
    episodes that ended, calls ``agent.learn`` after each group of steps, and stops exactly at the
    budget. ``_live_state`` is asked for at round ends only.

    Args:
        config: The run's settings.
        run_dir: The run's directory.
    """

    view: ReplayView
    """The replay view, from ``begin`` on."""

    def __init__(self, config: RunConfig, run_dir: Path) -> None:
        super().__init__()
        self.config = config
        self.run_dir = run_dir
        self._resources = ExitStack()
        self._is_open = False
        self._between_rounds = True
        self._state: dict[str, Any] = {}

    @abstractmethod
    def _open(self, agent: ReplayAgent, state: dict[str, Any]) -> None:
        """Opens everything; ``state`` is a checkpoint's, or empty for a new run."""

    @abstractmethod
    def _play(self, agent: ReplayAgent) -> None:
        """Plays one round."""

    @abstractmethod
    def _live_state(self) -> dict[str, Any]:
        """State at a round's end: arrays and plain values."""

    def begin(self, agent: ReplayAgent) -> None:
        """Opens the experience, anew or where the loaded checkpoint left it.

        Raises:
            CheckpointError: the run cannot go on from the checkpoint; names it and its store.
        """
        try:
            self._open(agent, as_arrays(self._state))
        except CheckpointError as error:
            self._resources.close()
            raise CheckpointError(f"{agent.checkpoint_name}: {error}") from error
        except BaseException:
            self._resources.close()
            raise
        self._is_open = True

    def play_round(self, agent: ReplayAgent) -> None:
        """Plays one round of environment steps and updates."""
        self._between_rounds = False
        self._play(agent)
        self._between_rounds = True

    def train_dataloader(self) -> Any:
        """An endless, unsized, stateless loader whose every batch is this experience."""
        return _Rounds(self)

    def state_dict(self) -> dict[str, Any]:
        """State at a round's end: tensors and plain values.

        Raises:
            CheckpointError: within a round, where the state is not complete.
        """
        if not self._between_rounds:
            raise CheckpointError("a checkpoint can only be written between two rounds")
        return dict(as_tensors(self._live_state())) if self._is_open else self._state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keeps a checkpoint's state until training begins."""
        self._state = state_dict

    def teardown(self, stage: str | None = None) -> None:  # noqa: ARG002
        """Closes everything; the state of the last round's end stays for a late checkpoint."""
        if self._is_open:
            if self._between_rounds:
                self._state = self.state_dict()
            self._is_open = False
            self._resources.close()

    def on_exception(self, exception: BaseException) -> None:  # noqa: ARG002
        """Closes everything: what was committed stays, open episodes are cut."""
        self.teardown()

    def _open_view(self, store: Store, agent: ReplayAgent, **options: Any) -> ReplayView:
        replay = self.config.replay
        columns = {column.name for column in store.schema.columns}
        optional = tuple(name for name in agent.optional_fields if name in columns)
        view: ReplayView = store.replay(
            window=replay.window,
            scheme=replay.scheme,
            priorities=agent.priorities,
            sequences=replay.sequences,
            forget=replay.forget,
            overlay=replay.overlay,
            seed=self.config.seed,
            fields=agent.fields + optional,
            discount=agent.target_discount,
            page_limit=replay.page_limit,
            **options,
        )
        return self._resources.enter_context(view)

    def _round_end(self, steps: int) -> int:
        """Where the round that begins at ``steps`` ends."""
        size = self.config.loop.round_steps
        return min((steps // size + 1) * size, self.config.loop.steps)


class _Rounds:
    def __init__(self, experience: Experience) -> None:
        self._experience = experience

    def __iter__(self) -> Iterator[Experience]:
        return itertools.repeat(self._experience)


def check_store(store: Store, state: dict[str, Any]) -> None:
    """Refuses a checkpoint that was written beside another store.

    Raises:
        CheckpointError: naming both stores.
    """
    if state["store"] != store.uuid:
        raise CheckpointError(
            f"the checkpoint belongs to the store {state['store']}, but {store.path} is "
            f"{store.uuid}; put the run's own store back or start a new run"
        )
