"""Random lives of prioritized views, against dictionaries of what every step's priority is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage.errors import SamplingError
from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from tests.storage.replay.lives import Lives
from tests.storage.replay.priority_model import (
    Identity,
    Lived,
    PriorityModel,
    assert_fresh,
    batch_of,
    identities,
    priorities,
    tree_weights,
    view_steps,
)

F4 = np.float32
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.integers(1, 20)
CHOICES = {
    "scheme": ["per", "pser", "pser"],
    "forget": ["oldest", "most_far", "largest_divergence"],
}
PRIORITIES = {
    "epsilon": [0.0, 1e-5],
    "exponent": ["draws", "priorities"],
    "error": ["absolute", "huber"],
    "initial": ["max_ever", "max_current", "current_td", "constant"],
    "initial_constant": [0.3, 1.0],
    "normalise": ["batch", "store"],
    "stratified": [True, False],
}
SEQUENCES = {
    "decay": [0.4, 0.8],
    "window": [None, 2, 100],
    "mode": ["max", "add"],
    "eta": [0.0, 0.7],
    "decay_on_insert": [False, True],
    "stop_at_life_loss": [True, False],
}


def one_of_each(choices: dict[str, list]) -> st.SearchStrategy:
    return st.fixed_dictionaries({name: st.sampled_from(some) for name, some in choices.items()})


class PriorityMachine(RuleBasedStateMachine):
    """Writer, view and eviction under PER and PSER; everything is compared after each step."""

    @initialize(
        window=st.integers(1, 60),
        budget=st.integers(22, 100),
        choices=one_of_each(CHOICES),
        rules=one_of_each(PRIORITIES),
        sequences=one_of_each(SEQUENCES),
    )
    def begin(self, window: int, budget: int, choices, rules, sequences) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.made = Lives(self.folder / "store", row_budget=budget)
        self.settings = PrioritySettings(**rules)
        self.sequences = SequenceSettings(**sequences)
        self.forget_by = choices["forget"]
        self.options = {
            "window": window,
            **choices,
            "priorities": self.settings,
            "sequences": self.sequences,
        }
        self.ratio: dict[Identity, F4] = {}
        self.divergence: dict[Identity, F4] = {}
        self.everything: list[Lived] = []
        self.pending: list[Lived] = []
        self.batches: list[list[Identity]] = []
        self.model = self.new_model({})
        self.view = self.made.view(**self.options)
        self.draws = 0

    def new_model(self, known: dict[Identity, F4]) -> PriorityModel:
        sequences = self.sequences if self.options["scheme"] == "pser" else None
        return PriorityModel(self.settings, sequences, priority=known)

    def teardown(self) -> None:
        if hasattr(self, "view"):
            self.view.close()
            self.made.close()
            shutil.rmtree(self.folder)

    def write(self, rng: np.random.Generator, length: int) -> tuple:
        record, episode = self.made.episode(rng.random(length) < 0.1)
        self.everything.append(episode)
        return record, episode

    @precondition(lambda self: not self.pending)
    @rule(seed=SEEDS, length=LENGTHS, known=st.booleans())
    def admit(self, seed: int, length: int, known: bool) -> None:
        """With errors of acting, or with values alone, of which V and all rewards are 0."""
        rng = np.random.default_rng(seed)
        record, episode = self.write(rng, length)
        errors = errors_of(rng, length) if known else None
        self.view.admit(record, np.zeros(length + 1, F4), priority_error=errors)
        self.model.enter(episode, np.zeros(length) if errors is None else errors)

    @rule(seed=SEEDS, length=LENGTHS)
    def commit_elsewhere(self, seed: int, length: int) -> None:
        self.pending.append(self.write(np.random.default_rng(seed), length)[1])

    @rule()
    def advance(self) -> None:
        arriving = newest(self.pending, self.view.window)
        self.pending = []
        assert self.view.advance() == sum(map(len, arriving))
        if arriving:
            self.model.enter_all(arriving)
        while self.forget_in_model():
            pass

    @rule()
    def forget(self) -> None:
        assert self.view.forget() == self.forget_in_model()

    def forget_in_model(self) -> int:
        episodes = self.model.episodes
        if not episodes:
            return 0
        chosen = episodes[0]
        highest = -1.0
        for episode in episodes[:-1]:
            share = self.share(episode)
            if share > highest:
                chosen, highest = episode, share
        if sum(map(len, episodes)) - len(chosen) <= self.view.window:
            return 0
        episodes.remove(chosen)
        return len(chosen)

    def share(self, episode: Lived) -> float:
        if self.forget_by == "oldest":
            return 0.0
        if self.forget_by == "most_far":
            ratios = [float(self.ratio.get(step, F4(1))) for step in episode.steps]
            return sum(ratio > 5 or ratio < 0.2 for ratio in ratios) / len(episode)
        parts = [float(self.divergence.get(step, F4(0))) for step in episode.steps]
        return sum(int(part * 2**20) for part in parts) / len(episode)

    @precondition(lambda self: self.model.episodes)
    @rule(share=st.floats(0, 1))
    def sample(self, share: float) -> None:
        window = self.model.steps()
        weights = {step: self.model.weight(self.model.priority[step]) for step in window}
        size = 1 + int(share * (len(window) - 1))
        if not any(weights.values()):
            with pytest.raises(SamplingError, match="priority 0"):
                self.view.sample(size)
            return
        batch = self.view.sample(size)
        self.draws += 1
        drawn = identities(batch)
        chosen = np.array([weights[step] for step in drawn])
        assert np.all(chosen > 0)
        whole = [weight for weight in weights.values() if weight > 0]
        smallest = min(whole) if self.settings.normalise == "store" else chosen.min()
        np.testing.assert_allclose(batch.sampling_weight, (smallest / chosen) ** 0.4, rtol=1e-6)
        self.batches = [*self.batches[-2:], drawn]

    @precondition(lambda self: self.batches)
    @rule(which=st.integers(0, 2), seed=SEEDS)
    def feed_back(self, which: int, seed: int) -> None:
        """Any of the last batches, some of whose steps have left the window, some twice in it."""
        steps = self.batches[which % len(self.batches)]
        rng = np.random.default_rng(seed)
        errors = errors_of(rng, len(steps))
        ratio = np.exp(2 * rng.normal(size=len(steps))).astype(F4)
        divergence = rng.integers(0, 4, len(steps)).astype(F4) / 8
        result = self.view.feed_back(
            batch_of(steps),
            priority_error=errors,
            importance_ratio=ratio,
            divergence=divergence,
        )
        inside = set(self.model.steps())
        for i, step in enumerate(steps):
            if step in inside:
                self.ratio[step], self.divergence[step] = ratio[i], divergence[i]
        applied = self.model.feed_back(steps, errors)
        assert (result.applied, result.stale) == (applied, len(steps) - applied)

    @rule()
    def save_and_restore(self) -> None:
        self.view.load_state_dict(self.view.state_dict())

    @rule()
    def open_again(self) -> None:
        """The newest episodes, forgotten ones among them, with the priorities that they had."""
        self.view.close()
        self.view = self.made.view(**self.options)
        self.view.draws = self.draws
        self.model = self.new_model(self.model.priority)
        self.model.enter_all(newest(self.everything, self.view.window))
        self.pending = []
        while self.forget_in_model():
            pass

    @invariant()
    def everything_agrees(self) -> None:
        if not hasattr(self, "view"):
            return
        window = self.model.steps()
        assert view_steps(self.view) == window
        wanted = [self.model.priority[step] for step in window]
        assert priorities(self.view, window).tolist() == wanted
        weights = [self.model.weight(priority) for priority in wanted]
        np.testing.assert_allclose(tree_weights(self.view), weights, rtol=1e-13)
        assert_fresh(self.view)
        state = self.view.state_dict()
        assert state["scheme_state"]["largest_ever"] == self.model.largest
        assert self.view.draws == self.draws


def errors_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """A tenth of them 0."""
    return (rng.exponential(size=count) * (rng.random(count) < 0.9)).astype(F4)


def newest(episodes: list[Lived], window: int) -> list[Lived]:
    """Without the oldest ones while the others hold more than the window."""
    while len(episodes) > 1 and sum(map(len, episodes[1:])) > window:
        episodes = episodes[1:]
    return list(episodes)


TestPriorities = PriorityMachine.TestCase
TestPriorities.settings = settings(
    max_examples=25,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
