"""What a checkpoint's content must look like, so that nothing later stumbles over it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from storage import StorePosition
from storage.replay.tables import OVERLAY_DTYPES
from training.checkpoints.structure import (
    Check,
    StructureError,
    array,
    finite,
    listed,
    mapping,
    number,
    optional,
    record,
    text,
    whole,
)
from training.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_resumable", "check_structure"]


_AGENT_KEY: Final = "sharpwave"


def _anything(value: Any, place: str) -> None:
    """Left to others to check."""


_LARGEST: Final = 1.7976931348623157e308
_COUNTERS: Final = {
    "environment_steps": whole(0, 2**53),
    "updates": whole(0, 2**53),
    "wall_time": number(0.0, _LARGEST),
    "origin_steps": whole(-1, 2**53),
    "origin_updates": whole(0, 2**53),
    "ratio": number(0.0, _LARGEST),
}
_AGENT: Final = record(
    {
        "config": record({"agent": record({"kind": text})}),
        "environment": record({"id": text, "observation_space": _anything}),
        "counters": record({each.name: _COUNTERS[each.name] for each in fields(Counters)}),
        "recent_returns": record({"returns": listed(number()), "count": whole()}),
        "learning": record({"beta": number(0.0, 1.0), "engine": text}),
    }
)
_OPEN: Final = record(
    {
        "start": whole(),
        "steps": whole(),
        "seed": optional(whole()),
        "lane_episode": whole(),
        "begin_time": whole(),
        "checksum": whole(),
    }
)
_LANE: Final = record(
    {
        "segment": optional(whole()),
        "sequence": whole(),
        "rows": whole(),
        "next_episode": whole(),
        "open": optional(_OPEN),
    }
)
_POSITION: Final = record(
    {
        "store_uuid": text,
        "run": text,
        "lanes": listed(_LANE, 1),
        "segments": listed(listed(whole(), 3, 3)),
        "next_segment": whole(),
    }
)
_NATURAL: Final = ("priority", "importance_ratio", "last_drawn")
_OVERLAY: Final = record(
    {
        name: array(dtype.str, (None,), 0 if name in _NATURAL else None)
        for name, dtype in OVERLAY_DTYPES.items()
    }
)
_VIEW: Final = record(
    {
        "version": whole(),
        "scheme": text,
        "scheme_state": mapping(number(0.0)),
        "episodes": array("<i8", (None, 4), 0),
        "overlay": _OVERLAY,
        "draws": whole(),
        "settings": array("<f8", (3,)),
        "consumed": array("<i8", (None, 2), 0),
    },
    {"ring": array("<i8", (2,), 0)},
)
_COLLECTOR: Final = record(
    {
        "steps": whole(),
        "episodes": listed(whole()),
        "values": listed(array("<f4", (None,))),
    }
)
_OPTIMIZER: Final = record(
    {
        "state": mapping(mapping(finite)),
        "param_groups": listed(record({"params": listed(whole()), "lr": number(0.0)}), 1),
    }
)
_ONLINE: Final = {
    "store": text,
    "position": _POSITION,
    "collector": _COLLECTOR,
    "view": _VIEW,
}
_OFFLINE: Final = {"store": text, "view": _VIEW}


def _experience(parts: Mapping[str, Check]) -> Check:
    """A run's experience; empty where training had not begun."""
    whole_parts = record(parts)

    def check(value: Any, place: str) -> None:
        if value != {}:
            whole_parts(value, place)

    return check


_CONTENT: Final = record(
    {_AGENT_KEY: _AGENT, "state_dict": mapping(finite)},
    {
        "pytorch-lightning_version": text,
        "global_step": whole(),
        "epoch": whole(),
        "loops": record({"fit_loop": mapping(_anything)}),
        "callbacks": mapping(mapping(_anything)),
        "optimizer_states": listed(_OPTIMIZER, 1),
        "lr_schedulers": listed(_anything),
        "OnlineExperience": _experience(_ONLINE),
        "OfflineExperience": _experience(_OFFLINE),
    },
)
_NEEDED: Final = (
    "pytorch-lightning_version",
    "global_step",
    "epoch",
    "loops",
    "optimizer_states",
    "lr_schedulers",
)


def check_structure(content: Mapping[str, Any]) -> str | None:
    """What is wrong with a checkpoint's content; None where keys, types and ranges are right."""
    try:
        _CONTENT(content, "")
        counters = Counters(**content[_AGENT_KEY]["counters"])
        _check_counters(counters)
        _check_lanes(content.get("OnlineExperience") or None, counters.environment_steps)
    except StructureError as error:
        return str(error)
    return None


def check_resumable(content: Mapping[str, Any], experience: str) -> str | None:
    """What a checkpoint lacks for training to go on from it; None where it lacks nothing.

    Args:
        content: Of a checkpoint that was read; one of weights alone is enough to act by.
        experience: Name of the class that the run learns from.
    """
    lacking = [name for name in _NEEDED if name not in content]
    lacking += [] if content.get(experience) else [experience]
    return f"it lacks {', '.join(lacking)}" if lacking else None


def _check_counters(counters: Counters) -> None:
    """The updates are those that the steps have made due.

    Others would have a resumed run make up for them, or wait for its steps, without a word.
    """
    steps, since = counters.environment_steps, counters.origin_steps
    made = counters.updates - counters.origin_updates
    if since > steps:
        raise StructureError(f"counters.origin_steps is {since}, beyond environment_steps {steps}")
    due = 0.0 if since < 0 else (steps - since) * counters.ratio
    if made < 0 or abs(made - due) > 2 + 1e-9 * due:
        raise StructureError(
            f"counters.updates is {counters.updates}, {made} since origin_updates, where "
            f"{due:.0f} were due"
        )


def _check_lanes(state: Mapping[str, Any] | None, steps: int) -> None:
    """The position is one, the collector's lanes are its lanes, its steps the agent's."""
    if state is None:
        return
    if state["collector"]["steps"] != steps:
        raise StructureError(
            f"collector.steps is {state['collector']['steps']}, counters.environment_steps {steps}"
        )
    try:
        StorePosition.from_json(state["position"])
    except (KeyError, TypeError, ValueError) as error:
        raise StructureError(f"position is none: {error}") from error
    lanes, collector = state["position"]["lanes"], state["collector"]
    for name in ("episodes", "values"):
        if len(collector[name]) != len(lanes):
            raise StructureError(
                f"collector.{name} is of {len(collector[name])} lanes, position of {len(lanes)}"
            )
    for index, lane in enumerate(lanes):
        if lane["open"] is None:
            continue
        if lane["segment"] is None:
            raise StructureError(f"position.lanes[{index}].open is an episode without a segment")
        values, steps = len(collector["values"][index]["data"]), lane["open"]["steps"]
        if values not in (0, steps):
            raise StructureError(
                f"collector.values[{index}] has {values} values, the open episode {steps} steps"
            )
