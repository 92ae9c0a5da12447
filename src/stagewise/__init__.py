"""Learning by doing without breaking a limit: safe contextual bandits."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

# The stub names every export, once. Each is loaded on first use: importing stagewise compiles nothing and stays quick.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from stagewise\.(\S+) import (\w+)", _STUB, re.MULTILINE)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stagewise' has no attribute {name!r}")
    value = getattr(import_module(f"stagewise.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def _exported(*packages: str) -> dict[str, Any]:
    """Return what stagewise exports from these rooms, by name: what files may name, so that a new one is known."""
    return {name: __getattr__(name) for name, home in _HOMES.items() if home.split(".")[0] in packages}


def _find_exported(name: str, *packages: str) -> Any:
    """Return an export of these packages, without loading the others; None: there is none of this name."""
    return __getattr__(name) if name in _HOMES and _HOMES[name].split(".")[0] in packages else None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
