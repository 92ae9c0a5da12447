"""One small reproduction of everything, shared by the tests of a process."""

from pathlib import Path

import pytest

from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.claim import Claim
from stagewise_reproduction.run import reproduce


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Claim]]:
    """Return the folder of a report at the smallest size, all presets, and its claims."""
    out = tmp_path_factory.mktemp("reproduction")
    return out, reproduce(list(CATALOGUE), ["text", "authors", "ours"], "smoke", out, 1)
