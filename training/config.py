"""Every setting of a run, typed and validated.

The classes are plain frozen dataclasses: ``training.config_file`` builds them from YAML, and the
command line parses the same fields. A budget in *steps* always means environment steps, warm-up
included; checkpoints and metrics fall on round ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
from storage.replay.schemes.scheme_names import refuse_scheme_name
from storage.retention import Retention
from training.agent_config import AgentConfig
from training.agents.vracer.config import VRacerConfig
from training.environments.environment_config import EnvironmentConfig, WrapperConfig
from training.setting_checks import check_fields, check_positive, require, shown

__all__ = [
    "AgentConfig",
    "CheckpointConfig",
    "EnvironmentConfig",
    "EvaluationConfig",
    "LoggingConfig",
    "LoopConfig",
    "PrioritySettings",
    "ReplayConfig",
    "RunConfig",
    "SequenceSettings",
    "VRacerConfig",
    "WrapperConfig",
]


Forget = Literal["oldest", "most_far", "largest_divergence"]


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """The replay memory.

    Args:
        window: Steps of the newest whole episodes that may be sampled: the papers' N.
        scheme: How steps are drawn: "uniform", all alike; "per", by priority (prioritized
            experience replay); "pser", by priorities that decay backwards along episodes
            (prioritized sequence experience replay); or the class path of a scheme of your own.
        priorities: How errors become priorities; plays no role for "uniform".
        sequences: How priorities decay along episodes; plays no role but for "pser".
        forget: Which episode leaves a full memory: the "oldest", the one with the largest fraction
            of far steps ("most_far"), or that of the "largest_divergence" on average.
        store: Path of an existing store to train from without acting; empty when the run collects.
        overlay: Name of the run's mutable columns; ``main`` belongs to the run that collects.
        retention: What becomes of segments that left the window: "keep" them, the store is a
            dataset; or "drop" them once no kept checkpoint names them, so that the disk use of a
            long run is bounded. Their episodes' returns and lengths stay known.
        page_limit: Bytes of the store's pages that draws may leave mapped in this process before
            they are let go; without one that is the kernel's business.
    """

    window: int = 2**18
    scheme: str = "uniform"
    priorities: PrioritySettings = field(default_factory=PrioritySettings)
    sequences: SequenceSettings = field(default_factory=SequenceSettings)
    forget: Forget = "oldest"
    store: str | None = None
    overlay: str = "main"
    retention: Retention = "keep"
    page_limit: int | None = None

    def __post_init__(self) -> None:
        check_fields("replay", self)
        require(self.window > 0, f"replay.window is {self.window}; it must be positive")
        refusal = refuse_scheme_name(self.scheme)
        require(not refusal, f"replay.scheme is {self.scheme!r}; {refusal}")
        require(
            self.overlay not in ("", ".", "..") and "/" not in self.overlay,
            f"replay.overlay is {self.overlay!r}; it becomes part of a directory name",
        )
        require(
            self.retention == "keep" or self.store is None,
            f"replay.retention is {self.retention!r}, but {self.store} is a fixed store, which "
            "nobody may drop anything of; leave it at keep",
        )
        if self.page_limit is not None:
            check_positive("replay.page_limit", self.page_limit)

    @property
    def prioritized(self) -> bool:
        """Whether steps are drawn by priorities, which updates feed back."""
        return self.scheme != "uniform"


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How acting and learning interleave.

    Args:
        steps: Environment steps of the whole run, warm-up included. From a fixed store nobody
            acts: there these, and all other steps that settings count, are updates.
        warmup: Steps taken by the initial stochastic policy before the first update.
        lanes: Environments side by side.
        lane_kind: ``serial`` steps environments one by one in this process; ``sync`` and ``async``
            step all of them together through gymnasium's vector environments.
        round_steps: Environment steps in a Lightning training step.
        updates_per_step: Gradient steps for each environment step after the warm-up; plays no
            role when training from a fixed store.
        nonfinite: What a NaN or infinity does: ``refuse`` stops with an error, ``end_episode``
            truncates the episode before it.
        durability: What a finished episode survives: "process" the end of this process, however it
            comes; "fsync" a power cut, too: it is on the device before the run goes on. The same
            for checkpoints.
        sync_episodes: With "fsync", so many finished episodes may wait for each other.
        sync_seconds: With "fsync", an episode that ends later than this after the oldest one that
            waits sends all of them to the device; with 0 only their number counts.
        threads: Threads of torch.
        accelerator: Where updates run: "cpu", which small networks are quickest on, "gpu" (CUDA),
            or "auto", a GPU where torch sees one.
    """

    steps: int = 100_000
    warmup: int = 10_000
    lanes: int = 1
    lane_kind: Literal["serial", "sync", "async"] = "serial"
    round_steps: int = 64
    updates_per_step: float = 1.0
    nonfinite: Literal["refuse", "end_episode"] = "refuse"
    durability: Literal["process", "fsync"] = "process"
    sync_episodes: int = 1
    sync_seconds: float = 0.0
    threads: int = 1
    accelerator: Literal["cpu", "gpu", "auto"] = "cpu"

    def __post_init__(self) -> None:
        check_fields("loop", self)
        for name in ("steps", "lanes", "round_steps", "threads"):
            value = getattr(self, name)
            require(value > 0, f"loop.{name} is {value}; it must be at least 1")
        require(self.warmup >= 0, f"loop.warmup is {self.warmup}; it cannot be negative")
        require(
            self.sync_episodes > 0,
            f"loop.sync_episodes is {self.sync_episodes}; it must be at least 1",
        )
        seconds = self.sync_seconds
        require(seconds >= 0, f"loop.sync_seconds is {seconds}; it cannot be negative")
        require(
            self.durability == "fsync" or (self.sync_episodes, seconds) == (1, 0.0),
            "loop.sync_episodes and loop.sync_seconds say how finished episodes wait for the "
            "device, which only loop.durability fsync does; set that, too, or leave them out",
        )
        ratio = self.updates_per_step
        require(ratio >= 0, f"loop.updates_per_step is {ratio}; it cannot be negative")
        require(
            max(self.steps - self.warmup, 0) * ratio < 2**63,
            f"loop.updates_per_step is {ratio}, which makes 2**63 updates or more of "
            f"{self.steps} steps; lower one of them",
        )
        if self.lane_kind != "serial":
            self._check_multiples()

    def _check_multiples(self) -> None:
        values = {name: getattr(self, name) for name in ("steps", "round_steps")}
        wrong = {name: value for name, value in values.items() if value % self.lanes}
        listed = " and ".join(
            f"loop.{name} {-(-value // self.lanes) * self.lanes} (it is {value})"
            for name, value in wrong.items()
        )
        require(
            not wrong,
            f"with lane_kind {self.lane_kind} all {self.lanes} lanes step together, so steps and "
            f"round_steps must be multiples of lanes: give {listed}",
        )

    @property
    def rounds(self) -> int:
        """Rounds of the whole run; the last may be partial."""
        return -(-self.steps // self.round_steps)


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """Greedy episodes played while training, on environments and seeds of their own.

    Args:
        every_steps: Environment steps between two evaluations.
        episodes: Episodes an evaluation; 0 switches evaluation off.
        max_steps: Steps after which a greedy episode is cut where its environment has no limit of
            steps, so that a policy that never ends one holds nothing up.
        environment_kwargs: Keyword arguments that evaluations give the environment; they win over
            ``environment.kwargs``. ``{noop_max: 30}`` shows a greedy policy other Atari games than
            the same one again and again.
    """

    every_steps: int = 10_000
    episodes: int = 5
    max_steps: int = 100_000
    environment_kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("evaluation", self)
        steps, episodes = self.every_steps, self.episodes
        require(steps > 0, f"evaluation.every_steps is {steps}; it must be positive")
        require(episodes >= 0, f"evaluation.episodes is {episodes}; it cannot be negative")
        most = self.max_steps
        require(most > 0, f"evaluation.max_steps is {most}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """Where metrics go.

    Args:
        every_steps: Environment steps between two rows, at least ten rounds.
        csv: Writes ``metrics.csv`` into the run directory.
        tensorboard: Writes ``tensorboard/`` into the run directory.
        loggers: More Lightning loggers, each ``{class_path: …, init_args: {…}}``.
        progress: Shows a progress bar, or plain lines where the output is no terminal.
    """

    every_steps: int = 1000
    csv: bool = True
    tensorboard: bool = True
    loggers: list[dict[str, Any]] = field(default_factory=list)
    progress: bool = True

    def __post_init__(self) -> None:
        check_fields("logging", self)
        steps = self.every_steps
        require(steps > 0, f"logging.every_steps is {steps}; it must be positive")


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """When checkpoints are written; each replaces ``checkpoints/last.ckpt``.

    The first one is written when training starts. One costs about 50 ms with a full window of
    2**18 steps.

    Args:
        every_steps: Environment steps between two checkpoints, rounded to whole rounds.
    """

    every_steps: int = 5_000

    def __post_init__(self) -> None:
        check_fields("checkpoint", self)
        steps = self.every_steps
        require(steps > 0, f"checkpoint.every_steps is {steps}; it must be positive")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A whole run.

    Args:
        environment: Where to act.
        name: Name of the run and of its directory.
        seed: Every random stream of the run is derived from it.
        agent: The agent and its learning rule.
        replay: The replay memory.
        loop: How acting and learning interleave.
        evaluation: Greedy episodes while training.
        logging: Where metrics go.
        checkpoint: When checkpoints are written.
    """

    environment: EnvironmentConfig
    name: str = "run"
    seed: int = 0
    agent: AgentConfig = field(default_factory=VRacerConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        require(
            self.name not in ("", ".", "..") and "/" not in self.name,
            f"name is {self.name!r}; it becomes a directory name",
        )
        require(
            0 <= self.seed < 2**63,
            f"seed is {shown(self.seed)}; it must lie between 0 and 2**63 - 1",
        )

    @property
    def evaluation_environment(self) -> EnvironmentConfig:
        """Where evaluations are played."""
        kwargs = self.environment.kwargs | self.evaluation.environment_kwargs
        return replace(self.environment, kwargs=kwargs)
