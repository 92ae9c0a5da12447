"""Where the tests' processor time goes: by file, by test, by fixture, and by kernel that a test compiles.

Usage: python benchmarks/tests.py [--lane interpreted] [--jobs 2] [--top 40] [files...]

Runs a lane of the tests as the Makefile does, with an empty cache of kernels, and adds up the processor seconds of the
workers and of the processes that they started and waited for. A kernel is named if it was compiled in a test's process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core.event import Listener, register

OUT = "STAGEWISE_TEST_TIMES"
LANES = {
    "interpreted": ("not compiled and not slow and not gpu", "worksteal", ()),
    "compiled": ("compiled and not slow and not gpu", "loadfile", ("tests", "reproduction/tests")),
}


def used() -> float:
    """Return the processor seconds of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Times(Listener):  # type: ignore[misc]
    """Plugin of pytest that writes a line of JSON for each test, fixture, compiled kernel and failure."""

    def __init__(self, folder: Path) -> None:
        self.file = (folder / f"{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self.test, self.depth, self.began = "", 0, 0.0

    def write(self, kind: str, name: str, seconds: float) -> None:
        print(json.dumps([kind, name, seconds, self.test]), file=self.file, flush=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        began = used()
        result = yield
        self.write("process", "collection", used() - began)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began, self.test = used(), item.nodeid
        result = yield
        self.write("test", item.nodeid, used() - began)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        began = used()
        result = yield
        self.write("fixture", fixturedef.argname, used() - began)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.write("failure", f"{report.nodeid}\n{report.longreprtext[-2000:]}", 0.0)

    def pytest_sessionfinish(self) -> None:
        self.write("process", "all", used())

    def on_start(self, event: Any) -> None:
        """Note when Numba begins to compile, but not a kernel within a kernel."""
        self.depth += 1
        if self.depth == 1:
            self.began = time.process_time()

    def on_end(self, event: Any) -> None:
        """Write what was compiled."""
        self.depth -= 1
        if self.depth == 0:
            function = event.data["dispatcher"].py_func
            self.write("compiled", f"{function.__module__}.{function.__name__}", time.process_time() - self.began)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in every worker; listen to Numba."""
    if folder := os.environ.get(OUT):
        times = Times(Path(folder))
        config.pluginmanager.register(times)
        register("numba:compile", times)


def run(lane: str, jobs: int, files: list[str], folder: Path) -> int:
    """Run a lane with the plugin; return pytest's status."""
    marks, order, default = LANES[lane]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        OUT: str(folder),
        "STAGEWISE_CACHE": str(folder / "kernels"),
        "NUMBA_DISABLE_JIT": str(int(lane == "interpreted")),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.tests", "-n", str(jobs), "--dist", order]
    return subprocess.run([*command, "-m", marks, *(files or default)], env=environment, check=False).returncode


def show(title: str, lines: list[tuple[str, float]], top: int) -> None:
    """Print the largest sums by name."""
    sums, counts = Counter[str](), Counter(name for name, _ in lines)
    for name, seconds in lines:
        sums[name] += seconds
    print(f"\n{title}: {sums.total():.1f} s")
    for name, seconds in sums.most_common(top):
        print(f"{seconds:9.2f} {counts[name]:6d}  {name}")


def main() -> None:
    """Run a lane and print where its time went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lane", choices=LANES, default="interpreted")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("files", nargs="*")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        status = run(chosen.lane, chosen.jobs, chosen.files, Path(name))
        written = [json.loads(line) for path in Path(name).glob("*.jsonl") for line in path.open(encoding="utf-8")]
    tests = [(name, seconds) for kind, name, seconds, _ in written if kind == "test"]
    views: list[tuple[str, Callable[[str], str]]] = [
        ("folder", lambda test: "/".join(test.split("::")[0].split("/")[:2])),
        ("file", lambda test: test.split("::")[0]),
        ("test", lambda test: test.split("[")[0]),
    ]
    for title, key in views:
        show(title, [(key(test), seconds) for test, seconds in tests], chosen.top)
    show("process", [(name, seconds) for kind, name, seconds, _ in written if kind == "process"], chosen.top)
    show("fixture", [(name, seconds) for kind, name, seconds, _ in written if kind == "fixture"], chosen.top)
    show("kernel", [(name, seconds) for kind, name, seconds, _ in written if kind == "compiled"], chosen.top)
    by_file = [(test.split("::")[0], seconds) for kind, _, seconds, test in written if kind == "compiled"]
    show("compiled by", by_file, chosen.top)
    for kind, name, *_ in written:
        if kind == "failure":
            print(f"\nFAILED {name}")
    sys.exit(status)


if __name__ == "__main__":
    main()
