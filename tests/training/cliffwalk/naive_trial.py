"""A trial of Blind Cliffwalk in plain Python: no store, no view, no tree, another generator."""

from __future__ import annotations

import itertools

import numpy as np

from training.cliffwalk.sampler import Sampler

STEP = 0.25


class NaiveTrial:
    """Every action sequence is a list of places in one flat memory; a draw looks at them all."""

    def __init__(self, n: int, sampler: Sampler, seed: int) -> None:
        self.n, self.sampler = n, sampler
        self.rng = np.random.default_rng(seed)
        self.transitions: list[tuple[int, int]] = []
        self.first: list[int] = []
        for actions in itertools.product((0, 1), repeat=n):
            begin = len(self.transitions)
            for state, action in enumerate(actions):
                self.transitions.append((state, action))
                self.first.append(begin)
                if action != state % 2:
                    break
        initial = 1.0 if sampler.initial == "max" else sampler.epsilon
        self.priorities = np.full(len(self.transitions), initial)
        self.largest = initial
        self.q = np.zeros((n, 2))
        self.truth = np.zeros((n, 2))
        for state in range(n):
            self.truth[state, state % 2] = (1 - 1 / n) ** (n - 1 - state)

    def updates_after_goal(self) -> int:
        goal = update = 0
        while ((self.q - self.truth) ** 2).mean() >= 1e-3:
            update += 1
            drawn = self.draw()
            if self.transitions[drawn] == (self.n - 1, (self.n - 1) % 2):
                goal = goal or update
            self.prioritize(drawn, abs(self.learn(drawn)))
        return update - goal

    def draw(self) -> int:
        shares = self.priorities**self.sampler.alpha
        if not self.sampler.prioritized:
            shares = np.ones_like(shares)
        return int(self.rng.choice(len(shares), p=shares / shares.sum()))

    def learn(self, drawn: int) -> float:
        state, action = self.transitions[drawn]
        target = 0.0
        if action == state % 2:
            last = state == self.n - 1
            target = 1.0 if last else (1 - 1 / self.n) * self.q[state + 1].max()
        error = target - self.q[state, action]
        self.q[state, action] += STEP * error
        return float(error)

    def prioritize(self, drawn: int, error: float) -> None:
        sampler, p = self.sampler, self.priorities
        new = error + sampler.epsilon
        if sampler.sequential:
            new = max(new, sampler.eta * p[drawn])
        p[drawn] = new
        self.largest = max(self.largest, new)
        if not sampler.sequential:
            return
        for back in range(1, sampler.window + 1):
            place = drawn - back
            if place < self.first[drawn]:
                break
            decayed = new * sampler.decay**back
            if sampler.name == "pser-max":
                p[place] = max(p[place], decayed)
            else:
                p[place] = min(p[place] + decayed, self.largest)
