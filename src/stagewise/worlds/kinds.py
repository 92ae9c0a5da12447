"""The kinds that files name: what stagewise exports, so that a new one is known from then on."""

from typing import Any

from stagewise import _exported
from stagewise.problem.action_set import ActionSet
from stagewise.worlds.answers import Answers


def action_sets() -> dict[str, Any]:
    """Return the kinds of action sets, by their names."""
    return kinds_of(ActionSet, "problem", "worlds")


def world_kind(name: Any) -> Any:
    """Return the kind of worlds that a file names; None: stagewise has none of that name."""
    return kinds_of(Answers, "worlds").get(name) if isinstance(name, str) else None


def kinds_of(parent: type, *rooms: str) -> dict[str, Any]:
    """Return the classes that these rooms export and that come from another."""
    return {name: kind for name, kind in _exported(*rooms).items() if issubclass(kind, parent)}
