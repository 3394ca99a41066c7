"""Schemes by class path, from a module of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.errors import SamplingError
from storage.replay import PrioritySettings
from storage.replay.schemes.scheme_names import refuse_scheme_name
from tests.storage.replay.filler import Filler

MODULE = """
from storage.replay.schemes.uniform import Uniform


class Oldest(Uniform):
    name = "oldest"

    def __init__(self, window, seed, priorities, sequences):
        super().__init__(window, seed)
        self.window, self.alpha, self.fed = window, priorities.alpha, []

    def draw(self, positions, weights, index):
        head, tail = self.window.ends
        positions[:] = [head + i % (tail - head) for i in range(positions.size)]
        weights.fill(0.5)

    def feed_back(self, keys, errors):
        self.fed.append(errors.tolist())


class Astray(Oldest):
    name = "astray"

    def draw(self, positions, weights, index):
        super().draw(positions, weights, index)
        positions[3] = self.window.ends[index % 2] - (index % 2 == 0)


class Weightless(Oldest):
    name = "weightless"

    def draw(self, positions, weights, index):
        super().draw(positions, weights, index)
        weights[2] = float("nan")


class Nameless(Oldest):
    name = "per"


class Bare:
    name = "bare"

    def __init__(self, **settings):
        pass


def wrong(window):
    return window


number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_schemes.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_schemes"
    sys.modules.pop("own_schemes", None)


@pytest.mark.parametrize("mark", [".", ":"])
def test_a_view_draws_by_it(four: Filler, module: str, mark: str) -> None:
    own = PrioritySettings(alpha=0.3)
    with four.view(scheme=f"{module}{mark}Oldest", priorities=own, private=True) as view:
        batch = view.sample(9).copy()
        assert batch.row.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 10]  # closing rows are no steps
        assert set(batch.sampling_weight.tolist()) == {0.5}
        view.feed_back(batch, priority_error=np.arange(9, dtype=np.float32))
        assert view._scheme.fed == [list(range(9))]
        assert view._scheme.alpha == 0.3
        state = view.state_dict()
        assert state["scheme"] == "oldest"
        view.load_state_dict(state)


def test_what_is_no_scheme(four: Filler, module: str) -> None:
    refused = {
        "perr": r"scheme 'perr' does not exist; did you mean per\? Choose one of uniform, per",
        "nowhere.Scheme": r"cannot be imported \(ModuleNotFoundError: .* its folder on PYTHONPATH",
        f"{module}.Missing": "cannot be imported .AttributeError",
        f"{module}.number": "is 3; name a class",
        f"{module}.wrong": "cannot be made .*keywords window, seed, priorities, sequences",
        f"{module}.Bare": "lacks wants_errors, nbytes, admitted, .*see storage.replay.Scheme",
        f"{module}.Nameless": "has the name 'per', which checkpoints would take for another's",
    }
    for name, message in refused.items():
        with pytest.raises(SamplingError, match=message.replace("another's", "another scheme's")):
            four.view(scheme=name, private=True)


def test_draws_outside_the_window_are_refused_before_rows_are_read(
    four: Filler, module: str
) -> None:
    with four.view(scheme=f"{module}.Astray", private=True) as view:
        head, tail = (int(end) for end in view._window.ends)
        for outside in (tail, head - 1):
            with pytest.raises(
                SamplingError,
                match=rf"Astray' drew position {outside}, outside the .* {head} to {tail - 1}",
            ):
                view.sample(9)
            view.draws += 1
    with (
        four.view(scheme=f"{module}.Weightless", private=True) as view,
        pytest.raises(SamplingError, match="Weightless' gave a step the sampling weight nan"),
    ):
        view.sample(9)


def test_names_are_judged_without_importing(module: str) -> None:
    assert refuse_scheme_name(f"{module}.Oldest") == refuse_scheme_name("pser") == ""
    assert module not in sys.modules
    assert refuse_scheme_name("prioritised").startswith("Choose one of")
