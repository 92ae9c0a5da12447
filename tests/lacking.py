"""What a test needs and a machine may lack: such a test is skipped, but never where everything is to be tested (CI)."""

import importlib
import os
from typing import Any, NoReturn

import pytest


def may_lack(excused: bool = False) -> bool:
    """Say whether a test may go without what it needs."""
    return excused or os.environ.get("CI") != "true"


def lacking(what: str, excused: bool = False) -> NoReturn:
    """Skip this test, or fail it where everything is to be tested; `excused`: somebody said that it cannot be had."""
    if not may_lack(excused):
        pytest.fail(what)
    pytest.skip(what)


def needed(package: str, why: str) -> Any:
    """Return a package that is installed with the project, or skip this test."""
    try:
        return importlib.import_module(package)
    except ImportError:
        lacking(f"{package} is not installed: {why}")
