"""Every Python example of the documents runs, as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import storage
from pipeline.collect import main as collect

ROOT = Path(__file__).parents[2]


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples' `hopper.store`, and the configs."""
    path = tmp_path_factory.mktemp("docs")
    (path / "configs").symlink_to(ROOT / "configs")
    collect(["Hopper-v5", "--steps=700", f"--store={path / 'hopper.store'}"])
    return path


@pytest.mark.parametrize("number", range(len(blocks("README.md"))))
def test_readme(
    number: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    exec(compile(blocks("README.md")[number], f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out


def test_readme_has_its_examples() -> None:
    assert len(blocks("README.md")) == 6
    assert len(blocks("README.md")[0].strip().splitlines()) <= 10


def test_the_format_page_s_reader_reads_every_column(folder: Path) -> None:
    (program,) = blocks("docs/store-format.md")
    space: dict[str, object] = {}
    exec(compile(program, "docs/store-format.md", "exec"), space)
    with storage.open(folder / "hopper.store") as store:
        for column in store.schema.columns:
            read = space["read_column"](folder / "hopper.store", 0, column.name)
            assert read.dtype == column.dtype
            assert np.array_equal(read, store.columns[column.name][:], equal_nan=True)


def test_links_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_commands_of_the_documents_are_known() -> None:
    from pipeline.cli import VERBS

    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for verb in re.findall(r"^ {4}sharpwave (\w+)", text, flags=re.MULTILINE):
            assert verb in VERBS, f"{document.name}: {verb}"
        for config in re.findall(r"configs/[\w.]+\.yaml", text):
            assert (ROOT / config).is_file(), f"{document.name}: {config}"
