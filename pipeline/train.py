"""`sharpwave train`: a run by config files, or a run resumed."""

from __future__ import annotations

import math
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import storage
from pipeline.agent_choice import agent_kind
from pipeline.agent_settings import check_agent_settings
from pipeline.atari_hints import give_atari_hints
from pipeline.curve import show_curve
from pipeline.forecast import announce_run
from pipeline.nothing_learnt import nothing_learnt
from pipeline.own_code import own_faults, raised_by
from pipeline.quoting import quote
from pipeline.resumption import check_changes, check_settings, resumption
from pipeline.run_folder import RunFolder
from pipeline.settings import SettingsParser, print_settings, split_words, without_printing
from pipeline.streams import complain
from storage.errors import (
    CheckpointError,
    ConfigError,
    DivergenceError,
    NonFiniteError,
    SharpwaveError,
)

if TYPE_CHECKING:
    from pipeline.interruption import RoundEndStop
    from training.agent import ReplayAgent
    from training.config import RunConfig

__all__ = ["Run", "main", "read_config", "train"]

_USAGE: Final = (
    "CONFIG [CONFIG ...] [--SECTION.NAME=VALUE ...]\n"
    "       sharpwave train --resume RUN [--loop.steps=MORE ...]"
)
_DESCRIPTION: Final = (
    "Trains by the settings of config files, the later ones winning, and of the command line, "
    "which wins over them. A run is kept in runs/NAME."
)
_EXTRA: Final = {
    "resume": "a run's folder: go on where its last checkpoint was written",
    "offline": "train from this store, without acting (the same as --replay.store)",
    "runs": "the folder that holds the runs (default: runs)",
}


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be trained, and where; `checkpoint` where a run is resumed."""

    config: RunConfig
    folder: RunFolder
    checkpoint: Path | None = None
    damaged: tuple[Path, ...] = ()
    """Newer checkpoints that cannot be read."""
    finished: bool = False
    """Every step was taken, but the process ended before it had drawn the picture."""


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    files, words = split_words(arguments)
    options, printed = without_printing(words)
    if files and any(option.startswith("--resume=") for option in options):
        raise ConfigError(f"--resume takes the run's own settings; leave out {' '.join(files)}")
    with own_faults((agent_kind([Path(file) for file in files], options),)):
        values = _parsed([Path(file) for file in files], options)
        resume = values.pop("resume", None)
        if printed:
            _print_config(files, values, resume, options)
            return 0
        run = _new_run(files, values) if resume is None else _resumed_run(Path(resume), options)
    if run.finished:
        show_curve(run.folder)
    else:
        train(run)
    print(f"\nsharpwave evaluate {quote(run.folder.path)} --episodes 20")
    if run.folder.store.is_dir():
        print(f"sharpwave inspect {quote(run.folder.store)}")
    return 0


def read_config(files: Sequence[Path], options: Sequence[str] = ()) -> RunConfig:
    """The settings of `files` and options such as "--loop.steps=500"."""
    return _config(_parsed(files, options))


def train(run: Run) -> None:
    """Trains until the budget is spent, then prints how long it took and the curve.

    Raises `KeyboardInterrupt` that says what is kept when the user stops it.
    """
    from training.preflight import check_soon

    with own_faults(_named_code(run.config)):
        check_soon(run.config)
    from pipeline.interruption import RoundEndStop

    stop = RoundEndStop()
    with own_faults(_named_code(run.config)), stop.starting():
        _train(run, stop)


def _train(run: Run, stop: RoundEndStop) -> None:
    from training.preflight import check_run

    checked = check_run(run.config)
    config = checked.config
    from training.assembly import assemble
    from training.assembly import trainer as make_trainer

    module, data = assemble(checked, run.folder.path)
    trainer = make_trainer(config, run.folder.path)
    _add_lines(trainer, run)
    with run.folder.held():
        try:
            if run.checkpoint is None:
                run.folder.clear()
            for damaged in run.damaged:
                _set_aside(damaged)
            print(f"{run.folder.path}: {config.environment.id}, {_budget(config)}")
            give_atari_hints(config)
            announce_run(checked, module, run.folder.path)
            if stop.stop_asked:
                raise KeyboardInterrupt(_kept(run.folder, module, at_round_end=True))
            _fit(trainer, module, data, run, stop)
        finally:
            run.folder.discard_empty()
    _check_stored(config, run.folder)
    counters = module.counters
    print(f"\n{_done(module)} in {_duration(counters.wall_time)}\n")
    if run.folder.store.is_dir():
        show_curve(run.folder, asked=False)
    warning = nothing_learnt(module)
    if warning is not None:
        complain(f"sharpwave: warning: {warning}")


def _set_aside(damaged: Path) -> None:
    """Renames a damaged checkpoint, unless another process has put a whole one there since."""
    from training.checkpoints.checkpoint_file import read_checkpoint
    from training.setting_aside import set_aside

    try:
        read_checkpoint(damaged)
    except CheckpointError:
        set_aside(damaged)
        return
    raise ConfigError(
        f"another process has gone on with this run, and written {damaged} anew: give the same "
        "command once more"
    )


def _add_lines(trainer: Any, run: Run) -> None:
    """Has the trainer say where it goes on, and which engine was chosen."""
    from pipeline.engine_line import EngineLine
    from pipeline.going_on_line import GoingOnLine

    if run.checkpoint is not None:
        trainer.callbacks.append(GoingOnLine())
    if run.config.agent.engine == "auto":
        trainer.callbacks.append(EngineLine())


def _check_stored(config: RunConfig, folder: RunFolder) -> None:
    """Raises where a run acted and nothing of it could be stored, so that nothing was learnt."""
    if config.replay.store is not None:
        return
    with storage.open(folder.store) as store:
        if not store.n_steps:
            raise NonFiniteError(
                f"{folder.path} took {config.loop.steps:,} steps and none could be stored: every "
                "episode's first step was not finite (nan or inf); correct the environment"
            )


def _fit(trainer: Any, module: ReplayAgent, data: Any, run: Run, stop: RoundEndStop) -> None:
    """Trains; raises `KeyboardInterrupt` that says what is kept, and says so at errors.

    Raises `SystemExit` with 143 where the run was asked to terminate.
    """
    trainer.callbacks.insert(0, stop)
    try:
        trainer.fit(module, data, ckpt_path=run.checkpoint, weights_only=True)
    except SystemExit:
        if not trainer.interrupted:
            raise
    except Exception as error:
        if not stop.at_once:  # libraries make errors of their own of an interrupt
            _tell_kept(error, run, module)
            raise
    finally:
        stop.give_back()  # Lightning has set what it had found
    stopped = stop.stop_asked and not module.finished
    if not trainer.interrupted and not stopped:
        return
    kept = _kept(run.folder, module, at_round_end=not trainer.interrupted)
    if stop.signal != signal.SIGTERM:
        raise KeyboardInterrupt(kept)
    complain(f"\nsharpwave: terminated. {kept}")
    raise SystemExit(128 + signal.SIGTERM)


def _tell_kept(error: Exception, run: Run, module: ReplayAgent) -> None:
    """Says what is kept: before the line of an error of ours, behind the traceback of another.

    Of a run that diverged the episodes alone, because it would do so again.
    """
    if isinstance(error, DivergenceError):
        steps = f"{module.environment_steps:,} steps"
        print(f"sharpwave: the episodes of {steps} are kept in {run.folder.store}", file=sys.stderr)
        return
    later = module.steps > _resumed_steps(run.folder)
    kept = _kept(run.folder, module, at_round_end=not later)
    if not isinstance(error, SharpwaveError):
        raised = raised_by(error, _named_code(run.config))
        error.add_note(" ".join(filter(None, ["sharpwave:", raised, kept])))
    elif later:
        print(f"sharpwave: {kept}", file=sys.stderr)


def _named_code(config: RunConfig) -> tuple[str, ...]:
    """What may be class paths of the user's own."""
    return config.agent.kind, config.replay.scheme


def _budget(config: RunConfig) -> str:
    if config.replay.store is None:
        return f"{config.loop.steps:,} steps"
    return f"{config.loop.steps:,} updates on {config.replay.store}"


def _done(module: ReplayAgent) -> str:
    updates = f"{module.counters.updates:,} updates"
    return f"{module.environment_steps:,} steps and {updates}" if module.acting else updates


def _parsed(files: Sequence[Path], options: Sequence[str]) -> dict[str, Any]:
    """The merged settings as nested dictionaries, checked by the agent that they name."""
    from training.agent_config import AgentConfig
    from training.agents.registry import config_class
    from training.config import RunConfig

    kind = agent_kind(files, options)
    chosen = {AgentConfig: config_class(kind)}
    check_agent_settings(files, options, kind)
    parser = SettingsParser("train", _USAGE, _DESCRIPTION, RunConfig, _EXTRA, chosen)
    return parser.parse(files, options)


def _config(values: dict[str, Any]) -> RunConfig:
    from training.config import RunConfig
    from training.config_file import from_mapping, to_mapping
    from training.preflight import stored_environment

    offline = values.pop("offline", None)
    if offline is not None:
        values.setdefault("replay", {})["store"] = offline
    store = values.get("replay", {}).get("store")
    if store is not None:
        values.setdefault("loop", {})["warmup"] = 0
        if not values.get("environment", {}).get("id"):
            values["environment"] = to_mapping(stored_environment(store))
    for name in _EXTRA:
        values.pop(name, None)
    return from_mapping(RunConfig, values)


def _print_config(
    files: Sequence[str], values: dict[str, Any], resume: str | None, options: Sequence[str]
) -> None:
    """Prints the settings that a run would have; what it would be refused for is refused."""
    from training.preflight import check_run

    if resume is None:
        config = _new_config(files, values)
    else:
        config = _resumed_run(Path(resume), options).config
    print_settings(check_run(config).config)


def _new_run(files: Sequence[str], values: dict[str, Any]) -> Run:
    runs = Path(values.get("runs") or "runs")
    config = _new_config(files, values)
    return Run(config, RunFolder.unused(runs / config.name))


def _new_config(files: Sequence[str], values: dict[str, Any]) -> RunConfig:
    stored = "offline" in values or "store" in values.get("replay", {})
    if not files and not stored and "id" not in values.get("environment", {}):
        raise ConfigError(
            "nothing to train: name a config file, as `sharpwave train configs/hopper.yaml`, "
            "or a run to go on with by --resume RUN"
        )
    return _config(values)


def _resumed_run(path: Path, options: Sequence[str]) -> Run:
    folder = RunFolder.existing(path)
    own = [option for option in options if not option.startswith(("--resume", "--runs"))]
    before, config = read_config([folder.config]), read_config([folder.config], own)
    check_changes(before, config)
    found = resumption(folder)
    check_settings(folder, before, found)
    done, planned = found.steps, before.loop.steps
    if done >= config.loop.steps < planned:
        also = f", or leave it out to go on to {planned:,}" if done < planned else ""
        raise ConfigError(
            f"{path} has {_verb(config)} {done:,} of the {planned:,} {_unit(config)} that its "
            f"{folder.config.name} plans; --loop.steps={config.loop.steps} is not above that: give "
            f"a number above {done}{also}"
        )
    if done >= config.loop.steps and _lacks_picture(folder):
        return Run(config, folder, found.checkpoint, finished=True)
    if done >= config.loop.steps:
        raise ConfigError(
            f"{path} has {_verb(config)} its {done:,} "
            f"{_unit(config)}; go on by --loop.steps={2 * done} or another number above that"
        )
    return Run(config, folder, found.checkpoint, found.damaged)


def _lacks_picture(folder: RunFolder) -> bool:
    """Whether the run's picture is missing and can be drawn."""
    if folder.curve.exists() or not folder.store.is_dir():
        return False
    from pipeline.learning_curve import read_learning_curve

    return not read_learning_curve(folder.path).missing


def _verb(config: RunConfig) -> str:
    return "taken" if config.replay.store is None else "done"


def _unit(config: RunConfig) -> str:
    return "steps" if config.replay.store is None else "updates"


def _kept(folder: RunFolder, module: ReplayAgent, *, at_round_end: bool) -> str:
    """What a run that was stopped has kept, and how to go on."""
    steps = _resumed_steps(folder)
    if math.isinf(steps):
        return "Nothing was learnt yet; start again by the same command."
    kept = (
        f"The episodes of {module.environment_steps:,} steps are kept in {folder.store}; "
        "resuming sets aside those after its checkpoint (store/orphans) and plays on from there. "
        if module.acting and not at_round_end
        else ""
    )
    unit = _unit(module.config).removesuffix("s")
    return f"{kept}Go on from {unit} {steps:,} by `sharpwave train --resume {quote(folder.path)}`."


def _resumed_steps(folder: RunFolder) -> float:
    """Where the run would go on; infinite where it cannot."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return resumption(folder).steps
    except CheckpointError:
        return math.inf


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
