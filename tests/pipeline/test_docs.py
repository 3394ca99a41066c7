"""Every Python example of the documents runs, as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
import training
from pipeline.collect import main as collect
from pipeline.curve import main as curve
from storage.orphans import rewind
from storage.writer_settings import default_row_budget
from tests.storage.zoo import play, tiny_spec

ROOT = Path(__file__).parents[2]
PAGES = ("docs/python.md", "docs/replay.md")


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run_block(document: str, number: int) -> None:
    exec(compile(blocks(document)[number], f"{document}, example {number}", "exec"), {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples' `hopper.store`, of two segments, and nothing else."""
    path = tmp_path_factory.mktemp("docs")
    collect(["Hopper-v5", "--steps=700", "--lanes=2", f"--store={path / 'hopper.store'}"])
    return path


@pytest.fixture(scope="module")
def example(folder: Path) -> Path:
    """`runs/example` in that folder, trained by the README's first example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_block("README.md", 0)
    return folder / "runs/example"


@pytest.mark.parametrize("number", range(len(blocks("README.md"))))
def test_readme(
    number: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    run_block("README.md", number)
    assert capsys.readouterr().out


def test_readme_has_its_examples() -> None:
    assert len(blocks("README.md")) == 6
    assert len([line for line in blocks("README.md")[0].splitlines() if line]) <= 12


def test_the_first_example_is_a_run_and_can_be_repeated(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(example.parents[1])
    run_block("README.md", 0)
    assert "steps: push with" in capsys.readouterr().out
    curve(["runs/example"])
    assert "picture: runs/example/curve.png" in capsys.readouterr().out
    assert training.load(example).act(np.zeros(4)).shape == (1,)


def test_foreign_readers_see_all_segments(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    with storage.open("hopper.store") as store:
        assert len(store.segments) == 2
        reward = store.columns["reward"][:].sum()
        steps = store.n_steps
    printed = []
    for number in (1, 2, 3):
        run_block("README.md", number)
        printed.append(capsys.readouterr().out)
    assert [line[:6] for line in printed[0].splitlines() if line[:2] == "00"] == [
        "000000",
        "000001",
    ]
    assert float(printed[1].split()[-1]) == pytest.approx(reward / steps)
    assert float(printed[2]) == pytest.approx(reward)


EXAMPLES = [(page, n) for page in PAGES for n in range(len(blocks(page)))]


@pytest.mark.parametrize(("page", "number"), EXAMPLES)
def test_the_pages_of_examples(
    page: str,
    number: int,
    example: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(example.parents[1])
    makes = re.search(r"storage\.create|training\.build", blocks(page)[number])
    for _ in range(2 if makes else 1):  # what makes a store or a run can be run again
        run_block(page, number)
        assert capsys.readouterr().out


def test_what_was_set_aside_is_read_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = storage.create(tmp_path / "hopper.store", tiny_spec())
    with made.writer(run="own", row_budget=10, capacity=256) as writer:
        play(writer, 0, 0)
        play(writer, 0, 1)
        position = writer.position()
        later = [play(writer, 0, episode).episode_return for episode in range(2, 6)]
    made.refresh()
    rewind(made, position, "own")
    made.close()
    monkeypatch.chdir(tmp_path)
    run_block("docs/durability.md", 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("000000.000 rows from 9")
    assert any(" episodes " in line for line in lines)
    assert sum(float(line.split()[-1]) for line in lines) == pytest.approx(sum(later))


def test_the_format_page_s_reader_reads_every_column(folder: Path) -> None:
    (program,) = blocks("docs/store-format.md")
    space: dict[str, Any] = {}
    exec(compile(program, "docs/store-format.md", "exec"), space)
    with storage.open(folder / "hopper.store") as store:
        for column in store.schema.columns:
            read = np.concatenate(
                [
                    space["read_column"](folder / "hopper.store", segment.id, column.name)
                    for segment in store.segments
                ]
            )
            assert read.dtype == column.dtype
            assert np.array_equal(read, store.columns[column.name][:], equal_nan=True)


def test_the_metrics_page_explains_every_column(run: Path) -> None:
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`(\w+)`", text))
    header = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert "effective_sample_fraction" in header
    assert set(header) <= explained


@pytest.mark.parametrize(
    ("window", "lanes", "rows"),
    [(262_144, 1, 32_768), (100_000, 1, 16_384), (1, 1, 1_024), (2**22, 1, 65_536)],
)
def test_the_format_page_s_rule_of_sealing(window: int, lanes: int, rows: int) -> None:
    text = " ".join((ROOT / "docs/store-format.md").read_text(encoding="utf-8").split())
    assert "at least 1,024, at most 65,536 rows: 32,768 for one lane" in text
    assert default_row_budget(window, lanes) == rows


def test_the_word_list_has_the_words() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = " ".join(re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE))
    for word in ("ρ", "β", "C,", "D", "far step", "lane", "overlay", "cut", "kind"):
        assert word in rows, word


def test_links_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_commands_of_the_documents_are_known() -> None:
    from pipeline.cli import VERBS

    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text(encoding="utf-8")
        for verb in re.findall(r"^ {4}sharpwave (\w+)", text, flags=re.MULTILINE):
            assert verb in VERBS, f"{document.name}: {verb}"
        for config in re.findall(r"configs/[\w./]+\.yaml", text):
            assert (ROOT / config).is_file(), f"{document.name}: {config}"
