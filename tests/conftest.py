"""The two lanes: tests marked `compiled` need Numba; all others also run on kernels as the Python they are."""

import os
from typing import Any

import pytest

# Files whose tests play the same loops, or look at one reproduction: one process compiles and makes that, once.
TOGETHER = {
    "tests/agreement/test_backends.py": "linear",
    "tests/agreement/test_eligible.py": "linear",
    "tests/agreement/test_first_round.py": "linear",
    "reproduction/tests/test_certificates.py": "linear",
    "tests/agreement/test_context.py": "context",
    "tests/agreement/test_context_caps.py": "context",
    "tests/agreement/test_start.py": "context",
    "tests/statistics/test_context.py": "context",
    "tests/statistics/test_roving.py": "context",
    "reproduction/tests/test_page.py": "linear",
    "reproduction/tests/test_reproduce.py": "linear",
}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of certificates empty: to draw them takes longer than all else that is kept of one."""
    monkeypatch.setattr("stagewise.reports.certificate_pictures.embedded", lambda figure: "data:image/png;base64,")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, where nothing is compiled, what proves nothing or takes hours there."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="needs compiled kernels: make test-compiled"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give files that belong together to one process, where files are given out whole (`--dist loadfile`)."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return Together(config, log)
