"""The plan of runs: its description in results, its largest size, its warm start and the folder that keeps it."""

import ctypes
import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stagewise
from stagewise.agent.agent import Agent
from stagewise.files.paths import GIB, get_total_memory, write_text
from stagewise.policies.policy import BasePolicy, PolicyState
from stagewise.policies.problem import Problem
from stagewise.policies.saved_policies import encode_value, find_kind
from stagewise.problem.checks import check_integer, unwrap_scalar
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem
from stagewise.problem.formatting import format_count
from stagewise.reports.output_files import check_folder, make_folder
from stagewise.reports.result import Result, load_if_present

PLAN_KEYS = ("policy", "world", "rounds", "record_points", "seed", "audit", "warm_start")  # the same for all runs
MAX_COUNT = 2**32  # rounds, and runs: each is one word of the counter that random numbers are made from
BYTES_PER_RUN = 1000  # bytes of a run besides its curves: its task, its place in line, its totals


def describe_policy(policy: Any) -> dict[str, Any]:
    """Return a policy as plain JSON values: its kind and its settings, or its repr, without addresses."""
    try:
        if find_kind(type(policy).__name__) is not None:
            known: dict[str, Any] = encode_value(policy)
            return known
    except InvalidProblem:
        pass
    return {"kind": type(policy).__name__, "settings": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(policy))}


def get_versions() -> dict[str, str]:
    """Return what computed a result: arithmetic depends on each."""
    names = {"stagewise": stagewise.__version__, "python": platform.python_version()}
    try:
        numba = version("numba")
    except PackageNotFoundError:
        numba = "none"
    return {**names, "numpy": np.__version__, "numba": numba}


def describe_machine() -> str:
    """Return where a result was computed."""
    return f"{describe_platform()}, {os.cpu_count()} cores, {describe_linear_algebra()}"


def describe_platform() -> str:
    """Return the kind of processor and the operating system."""
    return f"{platform.machine()} {platform.system()}"


def describe_linear_algebra() -> str:
    """Return NumPy's linear algebra, and for OpenBLAS the processor whose routines it chose: they round differently."""
    name: str = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        try:
            get_core = ctypes.CDLL(str(path)).scipy_openblas_get_corename64_
        except (OSError, AttributeError):
            continue
        get_core.restype = ctypes.c_char_p
        return f"{name} {get_core().decode()}"
    return name


def check_count(value: Any, name: str) -> int:
    """Return a number of rounds or runs."""
    return check_integer(value, name, "from 1 to 2**32, which is how far the random numbers are counted", 1, MAX_COUNT)


def parse_run_numbers(runs: Any, points: int, costs: int) -> list[int]:
    """Return the run numbers, given as a count or as numbers, if memory holds them all."""
    asked = range(check_count(runs, "runs")) if isinstance(unwrap_scalar(runs), int | np.integer) else runs
    numbers: list[Any] = []
    try:
        check_memory(min(len(asked), MAX_COUNT) if hasattr(asked, "__len__") else 0, points, costs)
        numbers = list(asked) if isinstance(asked, Iterable) else []
    except OverflowError:  # a range of more than a machine can count
        check_memory(MAX_COUNT, points, costs)
    except InvalidProblem:
        raise
    except Exception:  # whatever the object's own code came to
        numbers = []
    is_valid = all(isinstance(run, int | np.integer) and 0 <= run < MAX_COUNT for run in numbers)
    if not numbers or not is_valid or len(set(numbers)) < len(numbers):
        rule = f"a number of runs, or different run numbers from 0 to {MAX_COUNT - 1}"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "runs", runs, rule)
    return [int(run) for run in numbers]


def check_memory(runs: int, points: int, costs: int) -> None:
    """Raise if the curves of the runs, and their merged copy, do not fit into memory."""
    needed, there = 2 * runs * (BYTES_PER_RUN + 8 * points * (3 + costs)), get_total_memory()
    if needed > there:
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "{runs} of {points} need about {needed:,.0f} GiB, and this machine has {there:,.0f}; "
            "play fewer runs at once, or record fewer points",
            runs=format_count(runs, "run"),
            points=format_count(points, "recorded point"),
            needed=needed / GIB,
            there=there / GIB,
        )


class WarmStart(NamedTuple):
    """The state that runs start with, and its description in results."""

    state: PolicyState
    description: dict[str, Any]


def build_warm_start(warm_start: Any, given: Any, player: Any, backend: str) -> WarmStart:
    """Return the warm start of `player`; `given` is the policy or the problem as given."""
    if given is None or not isinstance(player, BasePolicy):
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED,
            "warm_start needs one policy of stagewise, and here the policy is your own or differs by "
            "run; return the initial state from your policy's start()",
        )
    if backend == "cuda":
        text = "backend is 'cuda' and warm_start is given; use backend='cpu', since runs on a GPU start without data"
        raise InvalidProblem(ErrorCode.UNSUPPORTED_BACKEND, text)
    horizon = getattr(player, "horizon", None)
    if horizon is not None:
        fact = "warm_start used some of its rounds"
        raise InvalidProblem.conflict("horizon", horizon, fact, "leave horizon out, since radii hold only within it")
    kind, state = get_state(warm_start, given)
    memory = player.check_state(state).memory
    return WarmStart(PolicyState(memory), {"from": kind, "digest": sha256(memory.tobytes()).hexdigest()})


def unwrap_agent(policy: Any, warm_start: Any) -> tuple[Any, Any]:
    """Return the policy or problem of an agent, and the agent as the warm start where it has learned."""
    if not isinstance(policy, Agent):
        return policy, warm_start
    played = policy.policy
    if warm_start is None and isinstance(played, BasePolicy):
        warm_start = None if np.array_equal(policy.state.memory, played.start().memory) else policy
    return getattr(played, "problem", None) or played, warm_start


def get_state(warm_start: Any, given: Any) -> tuple[str, Any]:
    if isinstance(warm_start, PolicyState):
        return "a state", warm_start
    if isinstance(warm_start, Agent):
        own, played = warm_start.policy, given.policy() if isinstance(given, Problem) else given
        if type(own) is not type(played) or encode_value(own) != encode_value(played):
            template = (
                "warm_start is an agent of {own!r:.60}, and the policy or its settings differ; "
                "the state of one policy does not carry over to another"
            )
            raise InvalidProblem(ErrorCode.STATE_MISMATCH, template, own=own)
        return "an agent", warm_start.state
    if isinstance(given, Problem):
        agent = Agent(given)
        agent.learn_log_frame(warm_start)
        return "a log", agent.state
    rule = "an Agent, a PolicyState, or, for a Problem, a frame with columns by its names"
    raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "warm_start", warm_start, rule)


class Folder:
    """The folder of the runs of one plan; without a `path` nothing is saved, and a folder of another plan is rejected.

    `single`: all runs are one batch. `again` False: saved runs are not reused, because the plan does not describe the
    worlds.
    """

    def __init__(
        self,
        path: Path | None,
        plan: dict[str, Any],
        same: Sequence[str] = PLAN_KEYS,
        single: bool = False,
        again: bool = True,
    ) -> None:
        self.path = None if path is None else check_folder(path)  # before hours of play, not after
        self.plan, self.single, self.again = plan, single, again
        self.has_plan = self.path is not None and check_plan(self.path, plan, same)

    def get_part_path(self, runs: Sequence[int]) -> Path | None:
        if self.path is None or self.single:
            return self.path
        name = f"run-{runs[0]:06d}" if len(runs) == 1 else f"runs-{runs[0]:06d}-{runs[-1]:06d}"
        return self.path / "parts" / name

    def found(self, runs: Sequence[int]) -> Result | None:
        """Return saved runs, or None."""
        batch_path = self.get_part_path(runs) if self.has_plan and self.again else None
        result = None if batch_path is None else load_if_present(batch_path)
        return result if result is not None and np.array_equal(result.runs, runs) else None

    def keep(self, result: Result) -> None:
        """Save runs, unless they are saved together at the end."""
        batch_path = self.get_part_path(result.runs.tolist())
        if batch_path is not None and self.again and not self.single:
            self.begin()
            result.save(batch_path)

    def finish(self, result: Result) -> None:
        """Save all runs together, for `Result.load`."""
        if self.path is not None:
            self.begin()
            result.save(self.path)

    def begin(self) -> None:
        """Write the plan, so that the folder is used for nothing else."""
        if self.path is not None and not self.has_plan:
            write_text(make_folder(self.path) / "plan.json", json.dumps(self.plan, indent=1))
            self.has_plan = True


def check_plan(path: Path, plan: dict[str, Any], same: Sequence[str]) -> bool:
    """Return whether the folder has a plan; raise if it is another one."""
    plan_path = path / "plan.json"
    try:
        stored = json.loads(plan_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, path, "used as a folder", error) from None
    except ValueError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_CORRUPT, plan_path, "read", error) from None

    for key in same:
        if not isinstance(stored, dict) or stored.get(key) != plan.get(key):
            template = "{folder} holds runs of another plan, which has a different {key}; choose another folder"
            raise InvalidFile(ErrorCode.FILE_EXISTS, template, folder=path, key=key)
    return True
