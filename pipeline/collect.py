"""`sharpwave collect ENV`: act without learning, into a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import storage
from pipeline.collectable import (
    check_environment,
    check_not_of_a_run,
    check_recording,
    check_seed,
)
from pipeline.forecast import SHORTEST, check, forecast_collection, free_disk
from pipeline.progress_bar import progress_bar
from pipeline.quoting import quote
from pipeline.seed_claim import claimed_seed
from pipeline.settings import SettingsParser, print_settings, split_words, without_printing
from pipeline.summary import disk_use
from pipeline.summary_table import byte_text
from storage.errors import (
    ConfigError,
    DiskFullError,
    NonFiniteError,
    SharpwaveError,
    StoreExistsError,
)
from storage.syncing import Durability
from storage.writer_settings import sync_rule
from training.environments.environment_config import EnvironmentConfig

if TYPE_CHECKING:
    from storage import EnvironmentSpec, Store
    from storage.segment import SegmentInfo
    from training.acting.policy import Policy
    from training.collector import Collector
    from training.environments.recording import Recording

__all__ = ["CollectConfig", "collect", "main"]

_SHOWN_EVERY: Final = 256
"""Steps."""
_USAGE: Final = "ENV --steps=N --store=PATH [--policy=CHECKPOINT] [--lanes=N] [--seed=N]"
_DESCRIPTION: Final = (
    "Acts in an environment and writes every step. An existing store grows by the new episodes; "
    "episodes that are open at the end are cut there, as truncated."
)


@dataclass(frozen=True, slots=True)
class CollectConfig:
    """What is to be collected.

    Args:
        environment: Where to act.
        steps: Environment steps, over all lanes.
        store: Path of the store; it is made unless it exists.
        policy: "random", or a checkpoint file or run folder whose policy acts with its noise.
        lanes: Environments side by side, each with segments of its own.
        seed: Resets and draws are derived from it; a store takes each seed once.
        run: Name that the store remembers this collection by; collect-SEED when left out.
        nonfinite: At NaN or infinity: "refuse", or "end_episode", which truncates before it.
        durability: What a finished episode survives: "process" the end of this process, however it
            comes; "fsync" a power cut, too.
        sync_episodes: With "fsync", episodes that may end before the disk is waited for.
        sync_seconds: With "fsync", seconds that an episode may wait for others to end.
    """

    environment: EnvironmentConfig
    steps: int
    store: str
    policy: str = "random"
    lanes: int = 1
    seed: int = 0
    run: str | None = None
    nonfinite: Literal["refuse", "end_episode"] = "refuse"
    durability: Durability = "process"
    sync_episodes: int = 1
    sync_seconds: float = 0.0

    def __post_init__(self) -> None:
        sync_rule(self.durability, self.sync_episodes, self.sync_seconds)
        for name in ("steps", "lanes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"--{name} is {getattr(self, name)}; it must be at least 1")
        if self.seed < 0:
            raise ConfigError(f"--seed is {self.seed}; it must be at least 0")


def main(arguments: Sequence[str]) -> int:
    """Runs the verb."""
    from training.config_file import from_mapping
    from training.environments.environment import describe_environment

    names, words = split_words(arguments)
    options, printed = without_printing(words)
    parser = SettingsParser("collect", _USAGE, _DESCRIPTION, CollectConfig)
    values = parser.parse([], options)
    if len(names) > 1:
        raise ConfigError(f"sharpwave collect takes one environment, not {', '.join(names)}")
    if names:
        values.setdefault("environment", {})["id"] = names[0]
    missing = [name for name in ("steps", "store") if name not in values]
    if missing or "id" not in values.get("environment", {}):
        raise ConfigError(f"something is missing; write `sharpwave collect {_USAGE}`")
    config = from_mapping(CollectConfig, values)
    if printed:
        _policy(config, describe_environment(config.environment))
        print_settings(config)
    else:
        collect(config)
    return 0


def collect(config: CollectConfig) -> None:
    """Collects, and prints what the store has grown by.

    Raises `KeyboardInterrupt` that says what is kept when the user stops it.
    """
    from storage.salvage import salvage
    from training.environments.environment import describe_recorded

    spec, recording = describe_recorded(config.environment)
    policy, update = _policy(config, spec)
    with _store(config, spec, recording) as store, claimed_seed(store, config.seed):
        salvage(store)
        check_seed(store, config.seed)
        before = {segment.id for segment in store.segments}
        _announce(config, store)
        try:
            interrupted = _act(config, store, policy, update)
        except DiskFullError as error:
            store.refresh()
            raise _stopped(error, _kept(config, store, before)) from error
        except SharpwaveError as error:
            store.refresh()
            error.add_note(f"Kept: {_kept(config, store, before)}.")
            raise
        store.refresh()
        kept = _kept(config, store, before)
        steps = sum(segment.steps for segment in _own(config, store, before))
    if interrupted:
        raise KeyboardInterrupt(f"{kept}. Collect more by the same command with another --seed.")
    if not steps:
        raise NonFiniteError(
            f"none of the {_counted(config.steps, 'step')} could be stored in {config.store}: "
            "every episode's first step was not finite (nan or inf); correct the environment"
        )
    print(f"{kept}\nsharpwave inspect {quote(config.store)}")


def _run_name(config: CollectConfig) -> str:
    return config.run or f"collect-{config.seed}"


def _own(config: CollectConfig, store: Store, before: set[int]) -> list[SegmentInfo]:
    """The segments that this collection wrote: neither what it salvaged nor other writers'."""
    name = _run_name(config)
    return [each for each in store.segments if each.id not in before and each.run == name]


def _kept(config: CollectConfig, store: Store, before: set[int]) -> str:
    own = _own(config, store, before)
    steps, episodes = sum(each.steps for each in own), sum(each.episodes for each in own)
    taken = f"{_counted(steps, 'step')} in {_counted(episodes, 'episode')}"
    total = byte_text(disk_use(store.path)["total"])
    return f"{taken} {'is' if steps == 1 else 'are'} in {config.store} ({total} in all)"


def _stopped(error: DiskFullError, kept: str) -> DiskFullError:
    """The same error, of which only the first sentence holds for a process that ends by it."""
    what = str(error).partition(" Every committed")[0]
    return DiskFullError(
        f"{what} {kept}. Free some space, then collect the rest by the same command with another "
        "--seed."
    )


def _act(config: CollectConfig, store: Store, policy: Policy, update: int) -> bool:
    """Takes the steps; whether the user interrupted them."""
    from training.collector import Collector
    from training.environments.environment import make_environment
    from training.environments.lanes import EnvLanes

    lanes = EnvLanes([partial(make_environment, config.environment)] * config.lanes)
    try:
        with store.writer(
            lanes=config.lanes,
            run=_run_name(config),
            nonfinite=config.nonfinite,
            seal=True,
            durability=config.durability,
            sync_episodes=config.sync_episodes,
            sync_seconds=config.sync_seconds,
        ) as writer:
            collector = Collector(
                lanes,
                writer,
                policy,
                seed=config.seed,
                nonfinite=config.nonfinite,
                life_loss=store.schema.life_loss,
            )
            collector.policy_update = update
            _advance(collector, config.steps)
    except KeyboardInterrupt:
        return True
    finally:
        lanes.close()
    return False


def _advance(collector: Collector, steps: int) -> None:
    with progress_bar(steps, "steps") as show:
        shown = 0
        while collector.steps < steps:
            collector.advance()
            if collector.steps - shown >= _SHOWN_EVERY:
                shown = collector.steps
                show(shown)


def _policy(config: CollectConfig, spec: EnvironmentSpec) -> tuple[Policy, int]:
    """The policy that acts, and how many updates it has seen."""
    if config.policy == "random":
        from training.acting.policy import RandomPolicy

        return RandomPolicy(spec.action_space, seed=config.seed), 0
    import training
    from training.checkpoints.checkpoint_fit import check_environment

    agent = training.load(config.policy)
    check_environment(agent.spec.to_json(), spec, config.policy)
    return agent.policy, agent.counters.updates


@contextmanager
def _store(config: CollectConfig, spec: EnvironmentSpec, recording: Recording) -> Iterator[Store]:
    path = Path(config.store)
    store = _created(path, spec, recording) or storage.open(path, mode="r+")
    try:
        check_not_of_a_run(store)
        check_environment(store, spec)
        check_recording(store, recording)
        yield store
    finally:
        store.close()


def _created(path: Path, spec: EnvironmentSpec, recording: Recording) -> Store | None:
    """A new store; None where there is one, which another process may just have made."""
    if not (path / "steps.zarr").exists():
        try:
            return storage.create(path, spec, **dataclasses.asdict(recording))
        except StoreExistsError:
            if not (path / "steps.zarr").exists():
                raise
    return None


def _announce(config: CollectConfig, store: Store) -> None:
    """Says what the steps will need, and warns when the disk has less."""
    longest = store.env_spec.max_episode_steps
    forecast = forecast_collection(store.schema, config.steps, config.lanes, longest)
    one = config.steps == 1
    print(
        f"{store.env_spec.id}: {_counted(config.steps, 'step')} {'takes' if one else 'take'} up to "
        f"{byte_text(forecast.disk)} while {'it is' if one else 'they are'} written, if episodes "
        f"have {SHORTEST} steps or more on average; {byte_text(free_disk(store.path))} are free"
    )
    check(forecast, store.path)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
