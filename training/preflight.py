"""What can be refused before a run has a folder, without loading torch or Lightning."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import storage
from storage.errors import (
    ConfigError,
    EmptyViewError,
    EnvironmentNotFoundError,
    SchemaMismatchError,
)
from storage.replay.schemes.own_scheme import own_scheme
from storage.replay.schemes.scheme_names import SCHEMES
from storage.spaces import flatten_space
from training.config import RunConfig
from training.config_file import from_mapping
from training.engines.engine_choice import check_engine
from training.environments.atari import stored_id
from training.environments.environment import (
    check_same_spaces,
    describe_environment,
    describe_recorded,
)
from training.environments.environment_config import EnvironmentConfig
from training.environments.recording import Recording
from training.named_code import refuse_named_code
from training.placement import device_type

if TYPE_CHECKING:
    from storage import EnvironmentSpec

__all__ = ["CheckedRun", "check_run", "check_soon", "stored_environment"]


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run that nothing speaks against, with all that its environment was made for to find out."""

    config: RunConfig
    """The settings as they will be used."""
    spec: EnvironmentSpec
    """The environment that steps come from."""
    recording: Recording = field(default_factory=Recording)
    """How the run's own store keeps the steps; a run that acts nowhere has none."""


def check_run(config: RunConfig) -> CheckedRun:
    """Whatever can be refused before a run has a folder is; the environment is made once.

    It is made once more where evaluations have keyword arguments of their own.

    What cannot work at all is told first: an environment that is not there, or an agent that cannot
    act in it; then what the machine lacks, then budgets. A run that trains from a store takes the
    making of the store's environment (``kwargs`` and ``wrappers``) where its own settings say
    nothing of it.

    Raises:
        EnvironmentNotFoundError: no such environment; close names are listed.
        SchemaMismatchError: the environment has other spaces than the store, or evaluations other
            ones than the run.
        UnsupportedSpaceError: spaces that cannot be stored, or that the agent cannot act in.
        SamplingError: a replay scheme of the user's own that cannot be imported.
        ConfigError: more threads than the machine has cores, a GPU that is not there, an engine
            that cannot run here, another environment than the store's, or one that the store alone
            names by a module; a budget that ends before anything is learnt.
        EmptyViewError: the store holds fewer steps than a batch.
    """
    stored = None
    if config.replay.store is None:
        checked = CheckedRun(config, *describe_recorded(config.environment))
    else:
        checked, stored = _check_store(config, Path(config.replay.store))
    flatten_space(checked.spec.observation_space, "observation")
    checked.config.agent.check_spaces(checked.spec)
    _check_evaluation(checked)
    if config.replay.scheme not in SCHEMES:
        own_scheme(config.replay.scheme)
    _check_threads(config.loop.threads)
    check_engine(config.agent.engine, device_type(config.loop.accelerator))
    _check_budget(config)
    if stored is not None:
        _check_filled(config, stored)
    return checked


def check_soon(config: RunConfig) -> None:
    """Refuses a budget that will not do before anything slow is loaded.

    What cannot work at all is told in its place, as `check_run` has it; that is looked for only
    where the run is refused anyhow.
    """
    try:
        _check_budget(config)
    except ConfigError:
        check_run(config)
        raise


def stored_environment(path: Path | str) -> EnvironmentConfig:
    """How the environment of a store is made, as settings."""
    with storage.open(path) as store:
        refuse_named_code(store.env_spec, Path(path))
        return _making(store.env_spec)


def _check_threads(threads: int) -> None:
    cores = os.cpu_count() or threads
    if threads > cores:
        raise ConfigError(
            f"loop.threads is {threads:,}, but this machine has {cores} cores; more threads than "
            f"that only wait for each other, so give 1 to {cores}"
        )


def _check_budget(config: RunConfig) -> None:
    """Refuses a budget that ends before anything is learnt; needs nothing slow.

    Raises:
        ConfigError: naming the settings.
    """
    loop, batch, window = config.loop, config.agent.batch_size, config.replay.window
    if window < batch:
        raise ConfigError(
            f"replay.window is {window}, smaller than agent.batch_size {batch}; a batch holds "
            "distinct steps of the window, so raise the window or lower the batch size"
        )
    if config.replay.store is not None:
        return
    if loop.warmup >= loop.steps:
        raise ConfigError(
            f"loop.warmup is {loop.warmup:,} of loop.steps {loop.steps:,}: the run would end "
            "before it learns anything; lower loop.warmup or raise loop.steps"
        )
    if batch >= loop.steps:
        raise ConfigError(
            f"agent.batch_size is {batch:,} of loop.steps {loop.steps:,}: the run would end before "
            "it learns anything; lower agent.batch_size or raise loop.steps"
        )


def _check_evaluation(checked: CheckedRun) -> None:
    """Refuses an evaluation where the agent could not act.

    Raises:
        EnvironmentNotFoundError, ConfigError: as `describe_environment`.
        SchemaMismatchError: it has other spaces than the run's own environment.
    """
    evaluation = checked.config.evaluation
    kwargs = evaluation.environment_kwargs
    if not evaluation.episodes or not kwargs:
        return
    try:
        played = describe_environment(checked.config.evaluation_environment)
    except ConfigError as error:
        raise ConfigError(f"with evaluation.environment_kwargs {kwargs}: {error}") from error
    check_same_spaces(kwargs, played, checked.spec)


def _check_filled(config: RunConfig, stored: int) -> None:
    batch = config.agent.batch_size
    if stored < batch:
        raise EmptyViewError(
            f"{config.replay.store} holds {stored:,} steps, fewer than a batch of {batch:,}; "
            "collect more, or lower agent.batch_size"
        )


def _check_store(config: RunConfig, path: Path) -> tuple[CheckedRun, int]:
    """The run, and how many steps its store holds."""
    with storage.open(path) as store:
        kept, steps = store.env_spec, store.n_steps
    config = dataclasses.replace(config, environment=_completed(config.environment, kept, path))
    try:
        own = describe_environment(config.environment)
    except EnvironmentNotFoundError:
        if config.evaluation.episodes or config.environment.id != kept.id:
            raise
        own = kept
    _check_same(own, kept, path)
    return CheckedRun(config, kept), steps


def _completed(own: EnvironmentConfig, kept: EnvironmentSpec, path: Path) -> EnvironmentConfig:
    """The settings, with the store's kwargs and wrappers where they have none of their own."""
    if own.kwargs or own.wrappers or not kept.id.startswith(stored_id(own.id)):
        return own
    refuse_named_code(kept, path, own.id)
    making = _making(kept)
    return dataclasses.replace(own, kwargs=making.kwargs, wrappers=making.wrappers)


def _making(kept: EnvironmentSpec) -> EnvironmentConfig:
    wrappers = [each for each in kept.wrappers if _is_ours(each)]
    values = {"id": kept.id, "kwargs": kept.kwargs, "wrappers": wrappers}
    return from_mapping(EnvironmentConfig, values, "environment")


def _is_ours(wrapper: Any) -> bool:
    """Whether settings can name the wrapper; gymnasium describes its own in another way."""
    return isinstance(wrapper, dict) and wrapper.keys() == {"class_path", "kwargs"}


def _check_same(own: EnvironmentSpec, kept: EnvironmentSpec, path: Path) -> None:
    remedy = f"train by a config of {kept.id}, or from a store of {own.id}"
    for name in ("observation_space", "action_space"):
        here, there = getattr(own, name), getattr(kept, name)
        if here != there:
            raise SchemaMismatchError(
                f"{path} holds steps of {kept.id} with {name} {there}, but environment.id is "
                f"{own.id}, which has {here}; {remedy}"
            )
    # An environment without a registered id is stored by its class, settings have its path.
    if own.id != kept.id and not own.id.replace(":", ".").endswith(f".{kept.id}"):
        raise ConfigError(
            f"{path} holds steps of {kept.id}, but environment.id is {own.id}; {remedy}"
        )
