"""The classes that files can name: those that stagewise exports."""

from typing import Any

from stagewise import _exported
from stagewise.problem.actions import ActionSet
from stagewise.worlds.base_world import BaseWorld


def get_action_set_kinds() -> dict[str, Any]:
    """Return the classes of action sets by name."""
    return get_exported_kinds(ActionSet, "problem", "worlds")


def get_world_kind(name: Any) -> Any:
    """Return the class of worlds with this name; None if stagewise has none."""
    return get_exported_kinds(BaseWorld, "worlds").get(name) if isinstance(name, str) else None


def get_exported_kinds(parent: type, *packages: str) -> dict[str, Any]:
    """Return the exported classes of these packages that extend `parent`."""
    return {name: kind for name, kind in _exported(*packages).items() if issubclass(kind, parent)}
