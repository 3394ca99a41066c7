from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.agent_choice import agent_kind
from pipeline.parser import positive
from pipeline.settings import SettingsParser, split_words
from pipeline.train import read_config
from storage.errors import ConfigError
from storage.replay.schemes.priority_settings import PRIORITY_PRESETS, SequenceSettings
from training.agent_config import AgentConfig
from training.agents.vracer.config import VRacerConfig
from training.config import RunConfig
from training.config_file import from_mapping, to_mapping
from training.refer import ReferSettings

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def parser() -> SettingsParser:
    chosen = {AgentConfig: VRacerConfig}
    return SettingsParser("train", "CONFIG", "Trains.", RunConfig, {"resume": "a run"}, chosen)


def config(parser: SettingsParser, files: list[Path], *options: str) -> RunConfig:
    return from_mapping(RunConfig, parser.parse(files, options))


def test_later_files_and_the_command_line_win(parser: SettingsParser, tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("environment: {id: Hopper-v5}\nseed: 1\nloop: {steps: 10, lanes: 2}\n")
    second.write_text("seed: 2\nloop: {steps: 20}\n")
    run = config(parser, [first, second], "--loop.steps=30", "--agent.refer.rule_1=false")
    assert (run.environment.id, run.seed, run.loop.steps, run.loop.lanes) == ("Hopper-v5", 2, 30, 2)
    assert run.agent.refer.rule_1 is False
    assert run.agent.refer.rule_2 is True


def test_files_may_include_others(parser: SettingsParser, tmp_path: Path) -> None:
    (tmp_path / "pieces").mkdir()
    task, rules, mine = (tmp_path / name for name in ("task.yaml", "pieces/er.yaml", "mine.yaml"))
    task.write_text("environment: {id: Hopper-v5, kwargs: {a: 1, b: 1}}\nloop: {steps: 10}\n")
    rules.write_text("agent: {kind: vracer, refer: {rule_1: false}}\nloop: {steps: 20}\n")
    mine.write_text("include: [pieces/er.yaml]\nenvironment: {kwargs: {b: 2}}\n")
    run = config(parser, [task, mine], "--loop.warmup=4")
    assert run.environment.kwargs == {"a": 1, "b": 2}
    assert (run.loop.steps, run.loop.warmup, run.agent.refer.rule_1) == (20, 4, False)
    assert read_config([task, mine], ["--loop.warmup=4"]) == run


def test_an_unknown_setting_is_looked_for_in_the_file_that_has_it(
    parser: SettingsParser, tmp_path: Path
) -> None:
    (tmp_path / "piece.yaml").write_text("loop: {stps: 3}")
    (tmp_path / "run.yaml").write_text("include: [piece.yaml]\nseed: 1\n")
    message = r"piece\.yaml \(included: .*run\.yaml → .*\): there is no setting 'loop\.stps'"
    with pytest.raises(ConfigError, match=message):
        parser.parse([tmp_path / "run.yaml"], [])


def test_the_agent_may_be_chosen_by_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("agent: {kind: mine}")
    (tmp_path / "run.yaml").write_text("include: [own.yaml]")
    assert agent_kind([tmp_path / "run.yaml"], []) == "mine"


@dataclasses.dataclass(frozen=True)
class PlainConfig(VRacerConfig):
    """An agent whose rules are off by default."""

    kind: str = "plain"  # type: ignore[assignment]
    refer: ReferSettings = dataclasses.field(default_factory=lambda: ReferSettings(False, False))


def test_a_section_s_defaults_are_those_of_the_agent() -> None:
    parser = SettingsParser("train", "CONFIG", "", RunConfig, chosen={AgentConfig: PlainConfig})
    refer = parser.parse([], ["--agent.refer.c=2"])["agent"]["refer"]
    assert (refer["rule_1"], refer["rule_2"], refer["c"]) == (False, False, 2)


def test_lists_and_dictionaries(parser: SettingsParser) -> None:
    run = config(
        parser,
        [],
        "--environment.id=Hopper-v5",
        '--environment.kwargs={"frame_skip": 2}',
        '--environment.wrappers=[{"class_path": "TimeLimit", "kwargs": {"max_episode_steps": 9}}]',
        "--agent.hidden=[8, 8]",
    )
    assert run.environment.kwargs == {"frame_skip": 2}
    assert run.environment.wrappers[0].kwargs == {"max_episode_steps": 9}
    assert run.agent.hidden == [8, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loop: {stps: 3}", "no setting 'loop.stps', did you mean 'loop.steps'?"),
        ("agnt: {}", "no setting 'agnt'"),
        ("steps: 3", "no setting 'steps', did you mean 'loop.steps'?"),
        ("- 1", "holds a list; it must hold a mapping"),
        ("loop: [", "is no YAML"),
        ("loop: 3", "'loop' is a section of settings, not 3"),
        ("environment: {id: A}\nloop: {steps: many}", "loop.steps"),
        ("environment: {id: A}\nloop: {steps: 0}", "loop.steps is 0"),
        ("seed: 1", "environment lacks id"),
    ],
)
def test_bad_files_are_named(
    parser: SettingsParser, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        config(parser, [file])


def test_missing_file_gets_the_nearest_name(parser: SettingsParser, tmp_path: Path) -> None:
    (tmp_path / "hopper.yaml").write_text("seed: 1")
    with pytest.raises(ConfigError, match=r"did you mean '.*hopper.yaml'"):
        parser.parse([tmp_path / "hoper.yaml"], [])


def test_unknown_option_gets_the_nearest_name(parser: SettingsParser) -> None:
    with pytest.raises(ConfigError, match=r"no option --loop\.step, did you mean '--loop\.steps'"):
        parser.parse([], ["--loop.step=3"])


@pytest.mark.parametrize("second", ["200", "100"])
def test_an_option_given_twice(parser: SettingsParser, second: str) -> None:
    _, options = split_words(["--loop.steps", "100", "--seed=1", f"--loop.steps={second}"])
    with pytest.raises(ConfigError) as caught:
        parser.parse([], options)
    assert str(caught.value) == (
        f"sharpwave train: --loop.steps is given twice, as '100' and as '{second}'; leave one out"
    )


def test_a_list_is_appended_to_twice(parser: SettingsParser) -> None:
    wrappers = "--environment.wrappers+="
    run = config(parser, [], "--environment.id=A", f"{wrappers}ClipAction", f"{wrappers}TimeLimit")
    assert [each.class_path for each in run.environment.wrappers] == ["ClipAction", "TimeLimit"]


def test_own_options_come_back_as_text(parser: SettingsParser) -> None:
    assert parser.parse([], ["--resume=runs/7"])["resume"] == "runs/7"


def test_split_words_joins_values_with_their_options() -> None:
    words = ["a.yaml", "--seed", "3", "b.yaml", "--name=x", "--loop.steps", "-1", "--help"]
    assert split_words(words) == (
        ["a.yaml", "b.yaml"],
        ["--seed=3", "--name=x", "--loop.steps=-1", "--help"],
    )
    with pytest.raises(ConfigError, match="--seed has no value"):
        split_words(["--seed"])


@pytest.mark.parametrize("text", ["1e4", "10_000", "10000", "10000.0"])
def test_whole_numbers_in_every_notation(parser: SettingsParser, tmp_path: Path, text: str) -> None:
    environment = "--environment.id=Hopper-v5"
    steps = config(parser, [], environment, f"--loop.steps={text}").loop.steps
    file = tmp_path / "a.yaml"
    file.write_text(f"environment: {{id: Hopper-v5}}\nloop: {{steps: {text}}}\n")
    assert steps == config(parser, [file]).loop.steps == 10_000
    assert isinstance(steps, int)
    assert positive(text) == 10_000


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--loop.steps=many", "loop.steps is 'many'; it must be a whole number"),
        ("--loop.steps=1.5", "loop.steps is 1.5; it must be a whole number"),
        ("--loop.steps=null", "loop.steps is null; leave it out for its default, 100000"),
        ("--agent.hidden=64", "agent.hidden is 64; it must be a list, as [64]"),
        ("--agent.hidden=[a]", "agent.hidden[0] is 'a'; it must be a whole number"),
        ("--agent.residual=maybe", "agent.residual is 'maybe'; it must be true or false"),
        ("--agent.learning_rate=fast", "agent.learning_rate is 'fast'; it must be a number"),
        ("--environment.kwargs=3", "environment.kwargs is 3; it must be settings by name"),
    ],
)
def test_wrong_types_are_told_plainly(parser: SettingsParser, option: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        config(parser, [], "--environment.id=Hopper-v5", option)
    assert "<class" not in str(caught.value)


@pytest.mark.parametrize("verb", ["train", "collect"])
def test_help_is_free_of_python(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"pipeline.{verb}")
    with pytest.raises(SystemExit):
        module.main(["--help"])
    text = capsys.readouterr().out
    for notation in ("``", "type:", "Literal", "null", "list[", "True", "False", "None"):
        assert notation not in text, notation
    word = {"train": "CONFIG", "collect": "ENV"}[verb]
    assert re.search(rf"^  {word} +\w", text, flags=re.MULTILINE)


def leaves(values: dict[str, Any], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for key, value in values.items():
        nested = isinstance(value, dict) and value
        found |= leaves(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}"}
    return found


def test_vracer_yaml_shows_every_setting_at_its_default(parser: SettingsParser) -> None:
    file = CONFIGS / "vracer.yaml"
    run = config(parser, [file])
    defaults = to_mapping(RunConfig(run.environment))
    assert to_mapping(run) == defaults
    assert leaves(yaml.safe_load(file.read_text())) == leaves(defaults)


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_config_is_valid_and_commented(file: Path) -> None:
    base = [CONFIGS / "hopper.yaml"] if "environment:" not in file.read_text() else []
    run = read_config([*base, file])
    assert dataclasses.is_dataclass(run)
    assert file.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("file", "scheme", "preset"),
    [("per", "per", "paper"), ("pser", "pser", "paper"), ("pser_dopamine", "pser", "dopamine")],
)
def test_prioritized_schemes_have_the_presets_values(
    parser: SettingsParser, file: str, scheme: str, preset: str
) -> None:
    run = config(parser, [CONFIGS / "hopper.yaml", CONFIGS / f"{file}.yaml"])
    assert run.replay.scheme == scheme
    assert run.replay.priorities == PRIORITY_PRESETS[preset]
    assert run.replay.sequences.reach == 5
    assert dataclasses.replace(run.replay.sequences, window=None) == SequenceSettings()


def test_er_switches_both_rules_off(parser: SettingsParser) -> None:
    run = config(parser, [CONFIGS / "hopper.yaml", CONFIGS / "er.yaml"])
    assert (run.agent.refer.rule_1, run.agent.refer.rule_2) == (False, False)
