from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline.demo import main
from pipeline.run_folder import RunFolder


def test_trains_shows_and_says_what_is_next(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["loop"]["steps"] = 300
    config["name"] = "demo"
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(yaml.safe_dump(config))
    Path("runs/demo").mkdir(parents=True)
    main(["demo.yaml"])
    out = capsys.readouterr().out
    assert "picture: runs/demo-2/curve.png" in out
    assert "300 steps in " in out
    assert "sharpwave evaluate runs/demo-2 --episodes 20" in out
    assert list(Path("runs/demo").iterdir()) == []


def test_title_of_the_picture(run: Path) -> None:
    assert RunFolder(run).title() == "InvertedPendulum-v5: V-RACER, ReF-ER (small)"
