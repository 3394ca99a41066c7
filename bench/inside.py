"""The few places where measuring reaches into a running agent; nothing else in bench/ does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.collector import Collector

__all__ = ["Tap", "converter_of", "engine_of", "lanes_of", "replace_method", "writer_of"]


def engine_of(agent: Any) -> Any:
    """The agent's update engine."""
    return agent._engine


def converter_of(agent: Any) -> tuple[Any, str]:
    """Owner and attribute of what turns replay batches into tensors."""
    return agent, "_convert"


def lanes_of(collector: Collector) -> Any:
    """The collector's environment lanes."""
    return collector._lanes


def writer_of(collector: Collector) -> Any:
    """The collector's writer."""
    return collector._writer


def replace_method(owner: Any, name: str, replacement: Any) -> None:
    """Puts a callable in the place of an instance's method."""
    object.__setattr__(owner, name, replacement)


class Tap:
    """Remembers the arguments of an instance's last call of one of its methods."""

    def __init__(self, owner: Any, name: str) -> None:
        self.call: Any = getattr(owner, name)
        """The method itself."""
        self.arguments: tuple[Any, ...] = ()
        self.keywords: dict[str, Any] = {}
        replace_method(owner, name, self._remember)

    def _remember(self, *arguments: Any, **keywords: Any) -> Any:
        self.arguments, self.keywords = arguments, keywords
        return self.call(*arguments, **keywords)
