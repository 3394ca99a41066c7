"""How the transitions of one trial are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from storage.errors import ConfigError
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings

if TYPE_CHECKING:
    from storage import Store
    from storage.replay import ReplayView

__all__ = ["SAMPLERS", "Initial", "Sampler"]

SAMPLERS: Final = ("uniform", "oracle", "per", "pser-max", "pser-add")
Initial = Literal["epsilon", "max"]
EPSILON: Final = 1e-6
FIELDS: Final = ("observation", "action", "reward", "next_observation", "terminated")


@dataclass(frozen=True, slots=True)
class Sampler:
    """A scheme with its settings; those that a scheme does not have are left as they are.

    Args:
        name: "uniform", "oracle", "per", "pser-max" or "pser-add".
        initial: Priority of what was never drawn: "epsilon", or "max", the largest one ever set,
            which begins at 1.
        epsilon: Added to each error.
        alpha: Exponent of the draws.
        decay: PSER's factor for each step back; its window W follows by eq. 8.
        eta: PSER's floor, eq. 9.

    Raises:
        ConfigError: an unknown name, or a value outside its range.
    """

    name: str
    initial: Initial = "epsilon"
    epsilon: float = EPSILON
    alpha: float = 1.0
    decay: float = 0.4
    eta: float = 0.7

    def __post_init__(self) -> None:
        if self.name not in SAMPLERS:
            raise ConfigError(
                f"there is no sampler {self.name!r}; choose from {', '.join(SAMPLERS)}"
            )
        if self.initial not in ("epsilon", "max"):
            raise ConfigError(f"initial = {self.initial!r} must be one of epsilon, max")
        self.priorities()
        self.sequences()

    @property
    def prioritized(self) -> bool:
        """Whether errors are fed back."""
        return self.name.startswith("p")

    @property
    def sequential(self) -> bool:
        """Whether priorities decay along episodes."""
        return self.name.startswith("pser")

    @property
    def window(self) -> int:
        """W of eq. 8."""
        return self.sequences().reach

    @property
    def label(self) -> str:
        """Name and settings, as a table shows them; no other sampler has the same."""
        parts = [self.name.upper().replace("-", " ") if self.prioritized else self.name]
        if self.sequential:
            parts.append(f"ρ {self.decay:g}, W {self.window}, η {self.eta:g}")
        if self.prioritized:
            parts += [f"α {self.alpha:g}"] if self.alpha != 1.0 else []
            parts.append("from max" if self.initial == "max" else f"from {self.epsilon:g}")
            unusual = self.initial == "max" and self.epsilon != EPSILON
            parts += [f"ε {self.epsilon:g}"] if unusual else []
        return ", ".join(parts)

    def priorities(self) -> PrioritySettings:
        """Of PER and PSER: β plays no part, since learners here ignore sampling weights."""
        return PrioritySettings(
            alpha=self.alpha,
            epsilon=self.epsilon,
            initial="max_ever" if self.initial == "max" else "constant",
            initial_constant=1.0 if self.initial == "max" else self.epsilon,
        )

    def sequences(self) -> SequenceSettings:
        """Of PSER."""
        mode: Literal["max", "add"] = "add" if self.name == "pser-add" else "max"
        return SequenceSettings(decay=self.decay, mode=mode, eta=self.eta)

    def view(self, store: Store, seed: int) -> ReplayView:
        """A private view of the whole store, which draws by this sampler.

        All trials of one n may share one store: a draw's probabilities depend on priorities
        alone, and these on episodes, not on the order in which episodes lie there.
        """
        if not self.prioritized:
            return store.replay(store.n_steps, private=True, seed=seed, fields=FIELDS)
        return store.replay(
            store.n_steps,
            scheme=self.name.partition("-")[0],
            private=True,
            seed=seed,
            fields=FIELDS,
            priorities=self.priorities(),
            sequences=self.sequences(),
        )
