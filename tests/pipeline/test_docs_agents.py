"""The agent and the scheme of docs/agents.md: extracted, trained, resumed and evaluated."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import storage
import training
from pipeline.evaluate import main as evaluate
from pipeline.train import main as train
from storage.errors import ConfigError
from tests.pipeline.conftest import small

PAGE = Path(__file__).parents[2] / "docs/agents.md"
QUICK = ("--loop.steps=320", "--agent.engine=eager", "--evaluation.every_steps=320")


def modules() -> dict[str, str]:
    """The page's programs by the file that the text says to put them into."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = r"into `(\w+)\.py`:\n\n```python\n(.*?)^```"
    return dict(re.findall(pattern, text, flags=re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own with the page's modules, as the working directory."""
    for name, text in modules().items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in modules():
        sys.modules.pop(name, None)


def weights(name: str) -> dict[str, torch.Tensor]:
    return training.load(f"runs/{name}/checkpoints/last.ckpt", ["my_agents.Curious"]).state_dict()


def test_the_page_s_agent_is_short() -> None:
    assert set(modules()) == {"my_agents", "my_schemes"}
    lines = modules()["my_agents"].splitlines()
    assert len([line for line in lines if line.strip()]) <= 60


def test_an_agent_of_one_s_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curious = "--agent.kind=my_agents.Curious"
    train(small("--name=plain", *QUICK))
    train(small("--name=without", *QUICK, curious, "--agent.bonus=0"))
    train(small("--name=wide", *QUICK, curious, "--agent.bonus=10"))
    assert "V-RACER" not in capsys.readouterr().out.split("runs/without")[1]
    plain, without, wide = weights("plain"), weights("without"), weights("wide")
    assert all(torch.equal(plain[name], without[name]) for name in plain)
    assert (wide["network.raw_stdev"] > plain["network.raw_stdev"] + 1e-3).all()

    train(["--resume=runs/wide", "--loop.steps=352"])
    evaluate(["runs/wide", "--episodes=1"])
    assert "written after" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"agent\.bonus is -1\.0; it cannot be negative"):
        train(small("--name=none", *QUICK, curious, "--agent.bonus=-1"))


def test_its_settings_are_in_the_help(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train(["--agent.kind=my_agents.Curious", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "--agent.bonus X Weight of the policy's entropy, which is taken from the loss." in out


def test_a_scheme_of_one_s_own(folder: Path) -> None:
    train(small("--name=recent", *QUICK, "--replay.scheme=my_schemes.Recent"))
    train(["--resume=runs/recent", "--loop.steps=352"])
    with (
        storage.open("runs/recent/store") as store,
        store.replay(window=400, scheme="my_schemes.Recent", private=True) as view,
    ):
        view.sample(16)
        position: Any = view.sample(16).position
        first, end = view._window.ends
        newest = end - (end - first) // 10
        assert (position[:8] >= newest).all()
        assert len(set(position[:8].tolist())) == 8
        draws = np.concatenate([view.sample(16).position[8:].copy() for _ in range(50)])
        assert (draws < newest).mean() > 0.8
    with pytest.raises(storage.errors.SamplingError, match=r"scheme 'my_schemes\.Resent' cannot"):
        train(small("--name=none", *QUICK, "--replay.scheme=my_schemes.Resent"))
    assert not (folder / "runs/none").exists()
