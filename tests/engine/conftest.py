"""One kernel compiled by a fresh interpreter, once for all tests of a process that look at what was kept."""

from pathlib import Path

import pytest
from tests.engine.processes import COMPILED, asked


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with a kernel in it, to be copied."""
    cache = tmp_path_factory.mktemp("kept") / "cache"
    assert asked(STAGEWISE_CACHE=str(cache)) == (COMPILED, "")
    return cache
