"""Random lives of a view, against a model that is nothing but lists and dictionaries."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.storage.replay.filler import Filler

SEEDS = st.integers(0, 2**32 - 1)
F4 = np.float32


@dataclass
class Remembered:
    """An episode of the model's window."""

    segment: int
    start: int
    rewards: list[float]
    terminated: bool
    value: list[F4]
    ratio: list[F4]
    far: list[bool]

    def identities(self) -> list[tuple[int, int]]:
        return [(self.segment, self.start + t) for t in range(len(self.rewards))]

    def targets(self, discount: float, scale: float) -> list[F4]:
        """The full recursion, rounded at each step as the column is."""
        following = F4(0) if self.terminated else self.value[-1]
        found = [following]
        for t in reversed(range(len(self.rewards))):
            clipped, value = min(1.0, float(self.ratio[t])), float(self.value[t])
            ahead = self.rewards[t] / scale - value
            following = F4((value + clipped * ahead) + (clipped * discount) * float(following))
            found.append(following)
        return found[::-1]


class ViewMachine(RuleBasedStateMachine):
    """Admits, forgets, draws, feeds back and restores; compares everything after each step."""

    @initialize(window=st.integers(1, 40), budget=st.integers(16, 100))
    def begin(self, window: int, budget: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.made = Filler(self.folder / "store", row_budget=budget)
        self.view = self.made.view(window=window)
        self.model: list[Remembered] = []
        self.pending: list[Remembered] = []
        self.batches: list = []
        self.discount, self.scale, self.bound = 0.9, 1.0, 5.0
        self.draws = 0

    def teardown(self) -> None:
        if hasattr(self, "view"):
            self.view.close()
            self.made.close()
            shutil.rmtree(self.folder)

    def write(self, seed: int, length: int) -> tuple:
        rng = np.random.default_rng(seed)
        terminated = bool(rng.integers(2))
        record = self.made.episode(length, terminated, rewards=None)
        steps = [(record.segment, record.start + t) for t in range(length)]
        rewards = [self.made.rewards[identity] for identity in steps]
        rows = length + 1
        return record, Remembered(
            record.segment, record.start, rewards, terminated, [F4(0)] * rows, [F4(1)] * rows,
            [False] * length,
        )  # fmt: skip

    @precondition(lambda self: not self.pending)
    @rule(seed=SEEDS, length=st.integers(1, 20))
    def admit(self, seed: int, length: int) -> None:
        record, episode = self.write(seed, length)
        values = np.random.default_rng(seed).normal(size=length + 1).astype(F4)
        self.view.admit(record, values)
        episode.value = list(values)
        self.model.append(episode)

    @rule(seed=SEEDS, length=st.integers(1, 20))
    def commit_elsewhere(self, seed: int, length: int) -> None:
        self.pending.append(self.write(seed, length)[1])

    @rule()
    def advance(self) -> None:
        arriving = self.pending
        while len(arriving) > 1 and steps_of(arriving[1:]) > self.view.window:
            arriving = arriving[1:]
        assert self.view.advance() == steps_of(arriving)
        self.pending = []
        self.model += arriving
        while len(self.model) > 1 and steps_of(self.model[1:]) > self.view.window:
            del self.model[0]

    @rule()
    def forget(self) -> None:
        gone = 0
        if self.model and steps_of(self.model[1:]) > self.view.window:
            gone = len(self.model.pop(0).rewards)
        assert self.view.forget() == gone

    @precondition(lambda self: self.model)
    @rule(share=st.floats(0, 1))
    def sample(self, share: float) -> None:
        size = 1 + int(share * (self.view.n_steps - 1))
        batch = self.view.sample(size)
        self.draws += 1
        found = list(zip(batch.segment.tolist(), batch.row.tolist(), strict=True))
        known = {identity: (e, t) for e in self.model for t, identity in enumerate(e.identities())}
        assert len(set(found)) == size
        for i, identity in enumerate(found):
            episode, t = known[identity]
            targets = episode.targets(self.discount, self.scale)
            assert batch.observation[i] == self.made.observations[identity]
            assert batch.next_observation[i] == self.made.observations[identity[0], identity[1] + 1]
            assert batch.reward[i] == episode.rewards[t]
            assert batch.value[i] == episode.value[t]
            assert batch.importance_ratio[i] == episode.ratio[t]
            assert batch.value_target[i] == targets[t]
            assert batch.next_value_target[i] == targets[t + 1]
        self.batches = [*self.batches[-2:], batch.copy()]

    @precondition(lambda self: self.batches)
    @rule(which=st.integers(0, 2), seed=SEEDS)
    def feed_back(self, which: int, seed: int) -> None:
        """Any of the last batches, so that some of their steps have left the window."""
        batch = self.batches[which % len(self.batches)]
        rng = np.random.default_rng(seed)
        value = rng.normal(size=len(batch)).astype(F4)
        ratio = np.exp(2 * rng.normal(size=len(batch))).astype(F4)
        result = self.view.feed_back(batch, value=value, importance_ratio=ratio)
        known = {identity: (e, t) for e in self.model for t, identity in enumerate(e.identities())}
        applied = 0
        for i in range(len(batch)):
            episode, t = known.get((int(batch.segment[i]), int(batch.row[i])), (None, 0))
            if episode is not None:
                episode.value[t], episode.ratio[t] = value[i], ratio[i]
                episode.far[t] = is_far(ratio[i], self.bound)
                applied += 1
        assert (result.applied, result.stale) == (applied, len(batch) - applied)

    @precondition(lambda self: self.batches)
    @rule(seed=SEEDS)
    def refresh_bootstrap(self, seed: int) -> None:
        batch = self.batches[-1]
        where = np.flatnonzero(batch.truncated)
        values = np.random.default_rng(seed).normal(size=where.size).astype(F4)
        self.view.refresh_bootstrap(batch, where, values)
        ends = {episode.identities()[-1]: episode for episode in self.model}
        for i, value in zip(where, values, strict=True):
            episode = ends.get((int(batch.segment[i]), int(batch.row[i])))
            if episode is not None:
                episode.value[-1] = value

    @rule(discount=st.sampled_from([0.0, 0.9, 1.0]), scale=st.sampled_from([0.5, 1.0, 3.0]))
    def set_targets(self, discount: float, scale: float) -> None:
        self.view.set_targets(discount, scale)
        self.discount, self.scale = discount, scale

    @rule(bound=st.sampled_from([1.5, 2.0, 5.0]))
    def recount(self, bound: float) -> None:
        self.bound = bound
        for episode in self.model:
            episode.far = [is_far(ratio, bound) for ratio in episode.ratio[:-1]]
        assert self.view.recount_far(bound) == sum(sum(e.far) for e in self.model)

    @rule()
    def save_and_restore(self) -> None:
        self.view.load_state_dict(self.view.state_dict())

    @invariant()
    def everything_agrees(self) -> None:
        if not hasattr(self, "view"):
            return
        assert self.view.n_steps == steps_of(self.model)
        assert self.view.n_episodes == len(self.model)
        assert self.view.draws == self.draws
        state = self.view.state_dict()
        wanted = [(e.segment, e.start, len(e.rewards)) for e in self.model]
        assert [tuple(row) for row in state["episodes"][:, [0, 2, 3]].tolist()] == wanted
        overlay = state["overlay"]
        targets = [t for e in self.model for t in e.targets(self.discount, self.scale)]
        assert overlay["value_target"].tobytes() == np.array(targets, F4).tobytes()
        assert overlay["value"].tolist() == [value for e in self.model for value in e.value]
        far = [flag for e in self.model for flag in (*e.far, False)]
        assert overlay["far"].tolist() == far
        assert self.view.n_far == sum(far) == self.view._window.count_far()


def steps_of(episodes: list[Remembered]) -> int:
    return sum(len(episode.rewards) for episode in episodes)


def is_far(ratio: F4, bound: float) -> bool:
    return bool(ratio > bound or float(ratio) < 1 / bound)


TestView = ViewMachine.TestCase
TestView.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
