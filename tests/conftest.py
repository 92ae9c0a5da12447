"""The lanes: `compiled` needs Numba, `long` takes more than a moment; all but `compiled` run kernels as Python."""

import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# What a test calls is compiled at once, in its own process; `tests/kernels/test_interpreted.py` is about all else.
os.environ.setdefault("STAGEWISE_COMPILE", "always")

# A shell that runs the tests in the background has them ignore Ctrl+C, and so would every command that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files whose tests play the same loops, or look at one reproduction: one process compiles and makes that, once.
TOGETHER = {
    "tests/agreement/test_backends.py": "linear",
    "tests/agreement/test_eligible.py": "linear",
    "tests/agreement/test_first_round.py": "linear",
    "reproduction/tests/test_certificates.py": "linear",
    "tests/agreement/test_context.py": "context",
    "tests/agreement/test_context_caps.py": "context",
    "tests/statistics/test_context.py": "context",
    "tests/statistics/test_roving.py": "context",
    "reproduction/tests/test_page.py": "linear",
    "reproduction/tests/test_reproduce.py": "linear",
}

# Kept apart from the lane for every change: the desk, the commands, the paper, several processes, solvers at work.
PROGRAMS = (
    "tests/service/",
    "tests/cli/",
    "tests/examples/",
    "reproduction/tests/",
    "studies/",
    "tests/studies/",
    "tests/contracts/test_convex.py",
    "tests/contracts/test_opnlb.py",
    "tests/contracts/test_postgres.py",
    "tests/contracts/test_sqlite.py",
    "tests/simulation/test_executors.py",
    "tests/policies/test_agent_owner.py",
    "tests/test_pages.py",
    "tests/test_import.py",
)

# A file with tests for the lane that compiles says so; the lane looks at no others.
SPEAKS = "mark.compiled"


@cache
def speaks(path: Path) -> bool:
    """Say whether a file may have tests for the lane that compiles."""
    return SPEAKS in path.read_text(encoding="utf-8")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of certificates empty: to draw them takes longer than all else that is kept of one."""
    monkeypatch.setattr("stagewise.reports.style.embedded", lambda figure: "data:image/png;base64,")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave alone, in the lane that compiles, files without tests for it: to collect all takes seconds a process."""
    compiling = str(config.getoption("markexpr")).startswith("compiled ")
    return True if compiling and collection_path.match("test_*.py") and not speaks(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole programs as long; skip, where nothing is compiled, what proves nothing or takes hours there."""
    for item in items:
        compiled = item.get_closest_marker("compiled") and not item.get_closest_marker("slow")
        if compiled and not speaks(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} is for the lane that compiles, which finds it only where {SPEAKS} is"
            )
        if item.nodeid.startswith(PROGRAMS) and not item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.long)
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
