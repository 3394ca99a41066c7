"""Every scheme, rule set, engine and order of forgetting: stopped and resumed equals straight."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightning.pytorch.callbacks import Callback

import storage
from storage.replay import PrioritySettings, SequenceSettings
from tests.training.tiny import ROUND, differences, rows, tiny_config
from training.agents.vracer.config import VRacerConfig
from training.assembly import build, trainer
from training.checkpoints.checkpoint_file import read_checkpoint
from training.config import LoopConfig, RunConfig
from training.refer import PRESETS

SCHEMES: dict[str, dict[str, Any]] = {
    "uniform": {"scheme": "uniform"},
    "per": {"scheme": "per"},
    "pser-max": {"scheme": "pser"},
    "pser-add": {"scheme": "pser", "sequences": SequenceSettings(mode="add", window=3)},
    "per-store": {
        "scheme": "per",
        "priorities": PrioritySettings(
            initial="current_td", normalise="store", exponent="priorities", stratified=False
        ),
    },
}
ENGINES = ("eager", "fused")
FORGETS = ("oldest", "most_far", "largest_divergence")
QUICK = [
    ("uniform", "ER", "fused", "oldest"),
    ("uniform", "ReF-ER", "eager", "most_far"),
    ("per", "ReF-ER-1", "fused", "largest_divergence"),
    ("per", "ER", "eager", "oldest"),
    ("pser-max", "ReF-ER-2", "fused", "most_far"),
    ("pser-max", "ReF-ER", "eager", "oldest"),
    ("pser-add", "ReF-ER", "fused", "largest_divergence"),
    ("pser-add", "ReF-ER-1", "eager", "oldest"),
    ("per-store", "ReF-ER", "fused", "oldest"),
    ("uniform", "ReF-ER-2", "eager", "oldest"),
]
ALL = [
    case
    for case in itertools.product(SCHEMES, PRESETS, ENGINES, FORGETS)
    if case[3] == "oldest" or case[1] == "ReF-ER"
]
OFFLINE = [("uniform", "ReF-ER"), ("per", "ER"), ("pser-max", "ReF-ER"), ("pser-add", "ReF-ER-2")]
ROUNDS = 8


class Look(Callback):
    """What the live run would do next, seen when training ends."""

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        view = trainer.datamodule.view
        tree = getattr(view._scheme, "_tree", None)
        self.tree = None if tree is None else [tree.total, tree.weights.copy()]
        batch = view.sample(16).copy()
        names = ("segment", "row", "next_value_target", "reward")
        self.next_batch = [getattr(batch, name) for name in names if hasattr(batch, name)]
        self.weights = np.asarray(batch.sampling_weight)
        self.far = view.n_far


def _config(scheme: str, rules: str, engine: Any, forget: str, **more: Any) -> RunConfig:
    agent = VRacerConfig(
        hidden=[8, 8], batch_size=16, scaling_interval=20, engine=engine, refer=PRESETS[rules]
    )
    config = tiny_config(window=60, agent=agent, forget=forget, **SCHEMES[scheme], **more)
    loop = dataclasses.replace(
        config.loop, steps=(ROUNDS - 1) * ROUND + 5, warmup=2 * ROUND + 3, lanes=2
    )
    return dataclasses.replace(config, loop=loop)


def fit(config: RunConfig, folder: Path, checkpoint: str = "", **options: Any) -> Look:
    module, data = build(config, folder)
    made = trainer(config, folder, **options)
    look = Look()
    made.callbacks.append(look)
    path = folder / "checkpoints" / checkpoint if checkpoint else None
    made.fit(module, data, ckpt_path=path, weights_only=True)
    return look


def state_of(folder: Path) -> dict[str, Any]:
    """Parameters, optimizer, counters, overlay columns, random indices: all that is not a name."""
    content = read_checkpoint(folder / "checkpoints/last.ckpt")
    agent = content["sharpwave"]
    agent["counters"].pop("wall_time")
    experience = content.get("OnlineExperience") or content["OfflineExperience"]
    return {
        "parameters": content["state_dict"],
        "optimizer": content["optimizer_states"],
        "agent": {key: value for key, value in agent.items() if key != "config"},
        "view": experience["view"],
        "collector": experience.get("collector"),
    }


def assert_same(straight: Path, resumed: Path, looks: tuple[Look, Look]) -> None:
    assert differences(state_of(straight), state_of(resumed)) == []
    assert rows(straight) == rows(resumed)
    left, right = looks
    assert left.far == right.far
    for a, b in zip(left.next_batch, right.next_batch, strict=True):
        assert np.array_equal(a, b)
    assert left.weights.tobytes() == right.weights.tobytes()
    if left.tree is not None:
        assert left.tree[0] == right.tree[0]
        assert left.tree[1].tobytes() == right.tree[1].tobytes()


@pytest.mark.parametrize(
    ("scheme", "rules", "engine", "forget"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.soak) for case in ALL if case not in QUICK)],
)
def test_four_rounds_and_four_more_equal_eight(tmp_path, scheme, rules, engine, forget):
    """The eighth round is a partial one."""
    config = _config(scheme, rules, engine, forget)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    whole = fit(config, straight)
    assert state_of(straight)["agent"]["counters"]["updates"] > 60
    fit(config, resumed, max_steps=4)
    later = fit(config, resumed, "last.ckpt")
    assert_same(straight, resumed, (whole, later))
    hashes = {storage.content_hash(folder / "store") for folder in (straight, resumed)}
    assert len(hashes) == 1
    assert not list((resumed / "store/orphans").iterdir())


@pytest.mark.parametrize(("scheme", "rules"), OFFLINE)
def test_a_hundred_updates_and_a_hundred_more_equal_two_hundred(
    tmp_path, tmp_path_factory, scheme, rules
):
    source = _source(tmp_path_factory)
    base = _config(scheme, rules, "auto", "oldest", store=str(source), overlay="learner")
    loop = LoopConfig(steps=200, warmup=0, round_steps=20)
    config = dataclasses.replace(base, loop=loop)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    before = storage.content_hash(source)
    whole = fit(config, straight)
    fit(config, resumed, max_steps=5)
    later = fit(config, resumed, "last.ckpt")
    assert_same(straight, resumed, (whole, later))
    assert state_of(resumed)["agent"]["counters"]["updates"] == 200
    assert storage.content_hash(source) == before


_made: list[Path] = []


def _source(factory: pytest.TempPathFactory) -> Path:
    """A store that a run left."""
    if not _made:
        folder = factory.mktemp("source")
        fit(_config("uniform", "ReF-ER", "fused", "oldest"), folder)
        _made.append(folder / "store")
    return _made[0]


@pytest.mark.parametrize("round_", [4, 6])
def test_going_back_to_the_checkpoint_before_equals_straight(tmp_path, round_):
    """As when the last one is damaged: the store goes back further, and what it loses is kept."""
    config = _config("pser-max", "ReF-ER", "fused", "oldest", checkpoint_rounds=round_)
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    whole = fit(config, straight)
    shutil.copytree(straight, resumed)
    before = read_checkpoint(resumed / "checkpoints/previous.ckpt")
    assert before["global_step"] == round_
    later = fit(config, resumed, "previous.ckpt")
    assert_same(straight, resumed, (whole, later))
    hashes = {storage.content_hash(folder / "store") for folder in (straight, resumed)}
    assert len(hashes) == 1
    assert list((resumed / "store/orphans").iterdir())
