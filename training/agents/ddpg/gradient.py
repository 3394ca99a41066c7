"""DDPG's stages for the fused engine: `CriticStage`, `ActorStage` and `JointStage` by hand."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from training.agents.ddpg.passes import Arrays, Climbing, Judging, Reading
from training.engines.closed_form import ClosedForm
from training.engines.host_targets import HostTargets

if TYPE_CHECKING:
    from torch import Tensor

    from storage.kernel import Floats32
    from training.agents.ddpg.network import DdpgNetworks
    from training.batches.transition_batch import TransitionBatch
    from training.refer import ReferSettings
    from training.stage import Feedback, Schedule

__all__ = ["ActorGradient", "CriticGradient", "JointGradient"]

Gradients = dict["Tensor", "Floats32"]


class _DdpgGradient(ClosedForm):
    """Passes for each batch size, and the targets that follow at the end, if they do."""

    def __init__(
        self,
        networks: DdpgNetworks,
        names: tuple[str, ...],
        settings: ReferSettings,
        target_rate: float | None = None,
    ) -> None:
        self.parameters = networks.parameters_of(*names)
        self._networks = networks
        self._settings = settings
        pairs = networks.following
        self._targets = None if target_rate is None else HostTargets(pairs, target_rate)
        self._passes: dict[int, Any] = {}
        self._batch: TransitionBatch | None = None

    def bind(self) -> None:
        """Take hold of the present weights."""
        self._passes.clear()
        self._batch = None
        if self._targets is not None:
            self._targets.bind()

    def fill(
        self, gradients: Gradients, batch: TransitionBatch, schedule: Schedule
    ) -> tuple[float, Feedback]:
        """Gradients of one batch."""
        size = len(batch.observation)
        if batch is not self._batch:  # batches of one size share their memory
            self._arrays = Arrays.of(batch, self._networks.actor.action_size)
            self._batch = batch
        if size not in self._passes:
            self._passes[size] = self._make(size, gradients)
        return self._run(self._passes[size], self._arrays, schedule)

    def stepped(self) -> None:
        """The targets go a part of their way."""
        if self._targets is not None:
            self._targets.follow()

    @abstractmethod
    def _make(self, size: int, gradients: Gradients) -> Any:
        """Passes over batches of that size."""

    @abstractmethod
    def _run(self, passes: Any, arrays: Arrays, schedule: Schedule) -> tuple[float, Feedback]:
        """Run the passes; loss and feedback."""


class CriticGradient(_DdpgGradient):
    """The critic's stage; the targets wait."""

    def __init__(self, networks: DdpgNetworks, settings: ReferSettings, discount: float) -> None:
        super().__init__(networks, ("critic",), settings)
        self._discount = discount

    def _make(self, size: int, gradients: Gradients) -> tuple[Reading, Judging]:
        networks = self._networks
        reading = Reading(networks, size, self._settings)
        return reading, Judging(networks, size, gradients, self._discount)

    def _run(
        self, passes: tuple[Reading, Judging], arrays: Arrays, schedule: Schedule
    ) -> tuple[float, Feedback]:
        reading, judging = passes
        return judging.fill(arrays, reading.near(arrays, schedule), schedule)


class ActorGradient(_DdpgGradient):
    """The actor's stage, after which the targets follow."""

    def __init__(self, networks: DdpgNetworks, settings: ReferSettings, target_rate: float) -> None:
        super().__init__(networks, ("actor",), settings, target_rate)

    def _make(self, size: int, gradients: Gradients) -> Climbing:
        return Climbing(self._networks, size, gradients, self._settings)

    def _run(self, passes: Climbing, arrays: Arrays, schedule: Schedule) -> tuple[float, Feedback]:
        passes.act(arrays, schedule)
        return passes.fill(arrays, schedule)


class JointGradient(_DdpgGradient):
    """Both stages at the same weights, after which the targets follow."""

    def __init__(
        self,
        networks: DdpgNetworks,
        settings: ReferSettings,
        discount: float,
        target_rate: float,
    ) -> None:
        super().__init__(networks, ("actor", "critic"), settings, target_rate)
        self._discount = discount

    def _make(self, size: int, gradients: Gradients) -> tuple[Climbing, Judging]:
        climbing = Climbing(self._networks, size, gradients, self._settings)
        return climbing, Judging(self._networks, size, gradients, self._discount)

    def _run(
        self, passes: tuple[Climbing, Judging], arrays: Arrays, schedule: Schedule
    ) -> tuple[float, Feedback]:
        climbing, judging = passes
        climbing.act(arrays, schedule)
        judged = judging.fill(arrays, climbing.likeness.near, schedule)
        acted = climbing.fill(arrays, schedule)
        return judged[0] + acted[0], judged[1] | acted[1]
