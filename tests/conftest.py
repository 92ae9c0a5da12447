"""The lanes: `compiled` needs Numba, `long` takes more than a second; all but `compiled` run kernels as Python."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem
from hypothesis import HealthCheck, settings
from tests.rewording import draw_word, reword

# A kernel is compiled at its first call, in the test's process; `tests/engine/test_interpreted.py` is the exception.
os.environ.setdefault("STAGEWISE_COMPILE", "always")

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A shell that runs the tests in the background makes them, and every command that they start, ignore Ctrl+C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files whose tests share loops: one process compiles them once.
TOGETHER = {
    "tests/agreement/test_backends.py": "linear",
    "tests/agreement/test_eligible.py": "linear",
    "tests/agreement/test_first_round.py": "linear",
    "tests/agreement/test_context.py": "context",
    "tests/agreement/test_context_caps.py": "context",
    "tests/statistics/test_context.py": "context",
    "tests/statistics/test_roving.py": "context",
}

# Not in the plain lane: the server, the commands, the paper, several processes, solvers.
PROGRAMS = (
    "tests/server/",
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

DEVICE = Path(__file__).parent / "gpu"  # tests that need one

# The compiled lane collects only files that contain one of these.
COMPILED_MARKS = ("mark.compiled", "in_lanes")


@cache
def may_be_compiled(path: Path) -> bool:
    """Say whether a file may have tests of the compiled lane."""
    text = path.read_text(encoding="utf-8")
    return any(mark in text for mark in COMPILED_MARKS)


WORD = draw_word()


@pytest.fixture(autouse=True)
def reworded(request: pytest.FixtureRequest) -> None:
    """Reword every sentence, except in tests of the wording."""
    if not isinstance(request.node, DoctestItem) and request.node.get_closest_marker("wording") is None:
        reword(request.getfixturevalue("monkeypatch"), WORD)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not draw the pictures of certificates: they take most of the time."""
    monkeypatch.setattr("stagewise.reports.style.to_data_uri", lambda figure: "data:image/png;base64,")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without compiled tests in the compiled lane, and a device's: collecting takes seconds per process."""
    marks = str(config.getoption("markexpr"))
    if "not gpu" in marks and collection_path == DEVICE:
        return True
    compiling = marks.startswith("compiled ")
    return True if compiling and collection_path.match("test_*.py") and not may_be_compiled(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while tests are collected, nor among what was collected later: nearly all of it stays."""
    gc.disable()
    result = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return result


def pytest_unconfigure() -> None:
    """Let the end of the process find everything: extensions report what is left as leaked."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark programs as long; skip compiled tests if nothing is compiled."""
    for item in items:
        compiled = item.get_closest_marker("compiled") and not item.get_closest_marker("slow")
        if compiled and not may_be_compiled(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} is a compiled test in a file without {COMPILED_MARKS}, which its lane does not collect"
            )
        if item.nodeid.startswith(PROGRAMS) and not item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.long)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="needs compiled kernels: make test-compiled"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run files that belong together in one process, with `--dist loadfile`."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return Together(config, log)
