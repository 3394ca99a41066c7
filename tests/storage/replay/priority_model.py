"""What the priorities of a view should be, by plain dictionaries, and what they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from storage.replay import Batch, ReplayView
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from storage.replay.schemes.sum_tree import SumTree

F4 = np.float32
LARGEST = float(np.finfo(F4).max)
Identity = tuple[int, int]


@dataclass
class Lived:
    """An episode: where its first row lies, and at which of its steps a life was lost."""

    segment: int
    start: int
    lost: list[bool]

    def __len__(self) -> int:
        return len(self.lost)

    @property
    def steps(self) -> list[Identity]:
        return [(self.segment, self.start + t) for t in range(len(self))]


@dataclass
class PriorityModel:
    """Priorities of every step that ever was, float32 by identity; the window's episodes."""

    settings: PrioritySettings
    sequences: SequenceSettings | None = None
    episodes: list[Lived] = field(default_factory=list)
    priority: dict[Identity, F4] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.largest = float(F4(self.settings.initial_constant))
        sequences = self.sequences
        self.factors: Any = ()
        if sequences is not None:  # one call, because numpy's powers of arrays round by themselves
            self.factors = sequences.decay ** np.arange(1.0, sequences.reach + 1)

    def new(self, error: float) -> F4:
        """PSER eq. 3, or the authors' root of a Huber loss."""
        size = abs(float(error))
        if self.settings.error == "huber":
            size = size * size / 2 if size <= 1 else size - 0.5
        base = size + self.settings.epsilon
        if self.settings.exponent == "priorities":
            base = raised(base, self.settings.alpha)
        return F4(min(base, LARGEST))

    def weight(self, priority: F4) -> float:
        """p^alpha, as the tree holds it."""
        own = self.settings.exponent == "draws"
        return raised(float(priority), self.settings.alpha if own else 1.0)

    def enter(self, episode: Lived, errors: Any = None) -> None:
        self.enter_all([episode], errors)

    def enter_all(self, arriving: list[Lived], errors: Any = None) -> None:
        """The initial priorities of episodes that arrive together; stored ones stand."""
        steps = [step for episode in arriving for step in episode.steps]
        known = [self.priority[step] for step in steps if step in self.priority]
        self.largest = max([self.largest, *map(float, known)])
        self.episodes += arriving
        start = self.initial()
        given = self.settings.initial == "current_td" and errors is not None
        fresh = [t for t, step in enumerate(steps) if step not in self.priority]
        for t in fresh:
            self.priority[steps[t]] = self.new(errors[t]) if given else F4(start)
            self.largest = max(self.largest, float(self.priority[steps[t]]))
        if self.sequences is not None and self.sequences.decay_on_insert:
            self.decay([steps[t] for t in fresh])

    def initial(self) -> float:
        if self.settings.initial == "constant":
            return self.settings.initial_constant
        if self.settings.initial == "max_current":
            here = [self.priority.get(step, F4(0)) for step in self.steps()]
            return float(max(here, default=F4(0))) or self.settings.initial_constant
        return self.largest

    def feed_back(self, steps: list[Identity], errors: Any) -> int:
        """Both phases of a batch; gives how many of its steps are in the window."""
        window = set(self.steps())
        there = [step in window for step in steps]
        before = dict(self.priority)
        eta = self.sequences.eta if self.sequences is not None else 0.0
        for step, error, inside in zip(steps, errors, there, strict=True):
            if inside:
                kept = eta * float(before[step])
                self.priority[step] = F4(max(float(self.new(error)), kept))
        drawn = [step for step, inside in zip(steps, there, strict=True) if inside]
        self.largest = max([self.largest, *(float(self.priority[step]) for step in drawn)])
        if self.sequences is not None:
            self.decay(drawn)
        return len(drawn)

    def decay(self, drawn: list[Identity]) -> None:
        """Phase two: what each source gives to the steps before it, from the stored values."""
        assert self.sequences is not None
        stored = dict(self.priority)
        given: dict[Identity, list[float]] = {}
        for segment, row in sorted(set(drawn)):
            for i, step in enumerate(self.reached(segment, row)):
                carried = float(stored[segment, row]) * float(self.factors[i])
                given.setdefault(step, []).append(carried)
        for step, parts in given.items():
            if self.sequences.mode == "max":
                self.priority[step] = max(stored[step], *map(F4, parts))
            else:
                total = 0.0
                for part in parts:  # nearest source first: sources were visited in their order
                    total += part
                self.priority[step] = F4(min(float(stored[step]) + total, self.largest))

    def reached(self, segment: int, row: int) -> list[Identity]:
        """The steps before one that its priority reaches, nearest first."""
        assert self.sequences is not None
        for episode in self.episodes:
            if episode.segment == segment and 0 <= row - episode.start < len(episode):
                break
        before = []
        for t in reversed(range(row - episode.start)):
            stops = self.sequences.stop_at_life_loss and episode.lost[t]
            if stops or len(before) == len(self.factors):
                break
            before.append((segment, episode.start + t))
        return before

    def steps(self) -> list[Identity]:
        """The window's steps, oldest first."""
        return [step for episode in self.episodes for step in episode.steps]


def raised(base: float, exponent: float) -> float:
    """Powers that keep 0 at 0."""
    if exponent == 0.5:
        return float(np.sqrt(base))
    return base if base == 0.0 else base**exponent


def batch_of(steps: Any) -> Batch:
    """A batch of given steps, made without a draw: its positions are no help."""
    batch = Batch()
    batch.segment, batch.row = np.array(steps, np.int64).reshape(-1, 2).T.copy()
    batch.position = np.zeros(batch.row.size, np.int64)
    return batch


def steps_of(record: Any) -> list[Identity]:
    """The identities of an episode's steps."""
    return [(record.segment, record.start + t) for t in range(record.length)]


def identities(batch: Batch) -> list[Identity]:
    return list(zip(batch.segment.tolist(), batch.row.tolist(), strict=True))


def view_steps(view: ReplayView) -> list[tuple[int, int]]:
    """The window's steps, oldest first."""
    rows = view._window.identities()
    return [(int(s), int(start) + t) for s, _, start, length in rows for t in range(length)]


def priorities(view: ReplayView, steps: Any) -> np.ndarray:
    """Stored priorities, float32 [k]."""
    segment, row = np.array(steps, np.int64).reshape(-1, 2).T
    return view.read("priority", segment, row)


def set_priorities(view: ReplayView, values: Any, largest: float | None = None) -> None:
    """Give the window's steps these priorities, oldest first, by way of a checkpoint."""
    state = view.state_dict()
    ends = np.cumsum(state["episodes"][:, 3] + 1) - 1
    inside = np.ones(len(state["overlay"]["priority"]), np.bool_)
    inside[ends] = False
    state["overlay"]["priority"][inside] = values
    if largest is not None:
        state["scheme_state"]["largest_ever"] = largest
    view.load_state_dict(state)


def tree_of(view: ReplayView) -> SumTree:
    return view._scheme._tree


def tree_weights(view: ReplayView) -> np.ndarray:
    """The tree's weights of the window's steps, oldest first."""
    head, tail = view._window.ends
    tree = tree_of(view)
    return tree.weights[np.arange(head, tail) & (tree.capacity - 1)]


def tree_bytes(tree: SumTree) -> bytes:
    return tree._nodes.tobytes() + tree._running.tobytes() + tree._minima.tobytes()


def assert_fresh(view: ReplayView) -> None:
    """The tree is what a new one of the same weights would be, and is empty off the window."""
    tree = tree_of(view)
    fresh = SumTree(tree.capacity, minimum=tree._minima.size > 0)
    fresh.weights[:] = tree.weights
    fresh.rebuild()
    assert tree_bytes(tree) == tree_bytes(fresh)
    assert np.count_nonzero(tree.weights) == np.count_nonzero(tree_weights(view))
