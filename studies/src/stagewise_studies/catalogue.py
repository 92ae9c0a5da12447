"""Every study by name, found by listing the modules of `cases`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from stagewise_studies import cases
from stagewise_studies.study import Study


def list_names() -> list[str]:
    """Return the names of the studies."""
    return [module.name for module in iter_modules(cases.__path__)]


def load_study(name: str) -> Study:
    """Return a study."""
    return cast(Study, import_module(f"{cases.__name__}.{name}"))
