"""Export a class as stagewise would if its file stood in one of its packages: what an addition costs is its file."""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import stagewise as sw


@contextmanager
def exported(kind: type, home: str) -> Iterator[Any]:
    """Export a class from a module of stagewise that holds only it."""
    name = kind.__name__
    module = types.ModuleType(f"stagewise.{home}")
    vars(module)[name] = kind
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "__module__", module.__name__)
        patch.setitem(sys.modules, module.__name__, module)
        patch.setitem(sw._HOMES, name, home)  # type: ignore[attr-defined]
        yield kind
    vars(sw).pop(name, None)
