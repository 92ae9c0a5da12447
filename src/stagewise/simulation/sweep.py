"""Sweeps: every policy in every world, under every limit, from every seed."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from stagewise.files.paths import parse_path
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_mapping, check_number, check_seed, copy_value, is_listing
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.thresholds import AtLeast, list_thresholds, parse_threshold
from stagewise.reports.result import Result
from stagewise.simulation.executors import Workers
from stagewise.simulation.jobs import Backend, resolve_cuda
from stagewise.simulation.oracle import Family
from stagewise.simulation.plan import check_count, check_memory
from stagewise.simulation.simulate import build_simulation, run_simulations

NamedLimits = tuple[tuple[str, Any], ...]  # limits by name
MAX_CELLS = 100_000
RESERVED_NAMES = ("comparison.md", "comparison.png", "sweep.md")


class Cell(NamedTuple):
    """One simulation of a sweep.

    Attributes:
        policy: The name of the policy.
        world: The name of the world.
        seed: The seed.
        limits: Limits by name; empty for the policy's own.
    """

    policy: str
    world: str
    seed: int
    limits: NamedLimits = ()  # by name; none: the policy's own

    @property
    def folder(self) -> Path:
        """The folder of its result, relative to the sweep's."""
        limits = ",".join(f"{quote(name, safe=' ')}-{value!r}" for name, value in self.limits)
        return Path(self.policy) / self.world / (limits or "own-limits") / f"seed-{self.seed}"

    def __str__(self) -> str:
        limits = [f"{name} {value}" for name, value in self.limits]
        return ", ".join([self.policy, self.world, *limits, f"seed {self.seed}"])


def sweep(
    *,
    policies: Mapping[str, Any],
    worlds: Mapping[str, Family],
    limits: Mapping[str, Iterable[float]] | None = None,
    seeds: Iterable[int] = (0,),
    rounds: int,
    runs: int | Iterable[int] = 1,
    record_points: int = 1000,
    backend: Backend = "auto",
    audit: bool = False,
    executor: Workers = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> dict[Cell, Result]:
    """Simulate policies × worlds (or families) × limits × seeds.

    Every run is what `simulate` would play, to the bit.

    Args:
        policies: Policies by name.
        worlds: Worlds or families by name.
        limits: Lists of values by the name of a limit; all combinations are played: {"opt_out": [0.01, 0.02]}. Other
            limits and all directions stay. The only limit of a policy without names is "cost".
        seeds: The seeds.
        rounds: As for `simulate`.
        runs: As for `simulate`.
        record_points: As for `simulate`.
        backend: As for `simulate`.
        audit: As for `simulate`.
        executor: As for `simulate`.
        out: A folder for the results. Every finished run is saved at once, and the same call continues where it was
            interrupted.
        progress: As for `simulate`.

    Returns:
        The results by `Cell`.

    Raises:
        InvalidProblem: An argument is invalid, or the sweep is too large.
        InvalidFile: A folder holds runs of another plan.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
        >>> results = sweep(policies={"opb": policy}, worlds={"arms": world}, limits={"cost": [0.1, 0.2]}, rounds=100)
        >>> [str(cell) for cell in results]
        ['opb, arms, cost 0.1, seed 0', 'opb, arms, cost 0.2, seed 0']
    """
    backend, executor = resolve_cuda(backend, executor)
    numbers = list(runs) if isinstance(runs, Iterator) else runs  # every cell asks for them anew
    folder = None if out is None else parse_path(out, "out")
    named = {} if limits is None else parse_limit_lists(limits)
    players, families = check_names(policies, "policies"), check_names(worlds, "worlds")
    origins = [check_seed(seed) for seed in list_entries(seeds, "seeds")]
    parts = {"policies": len(players), "worlds": len(families)}
    counts = {**parts, **{f"of {name}": len(values) for name, values in named.items()}, "seeds": len(origins)}
    cell_count = prod(counts.values())
    if cell_count > MAX_CELLS:
        each = " × ".join(f"{number:,} {word}" for word, number in counts.items() if number > 1)
        subject, rule = "the number of cells of the sweep", f"at most {MAX_CELLS:,}: {each}"
        raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, subject, cell_count, rule)
    if isinstance(numbers, int):
        check_memory(cell_count * check_count(numbers, "runs"), 1, 0)
    combined = product(*([(name, value) for value in values] for name, values in named.items()))
    cells = [
        Cell(policy, world, seed, own) for policy, world, own, seed in product(players, families, combined, origins)
    ]
    if not cells or len(set(cells)) < len(cells):
        raise InvalidProblem(
            ErrorCode.DUPLICATE_NAME,
            "limits is {limits} and seeds {origins}; all need entries, and every entry must be unique",
            limits=safe_repr(named),
            origins=safe_repr(origins),
        )
    settings: dict[str, Any] = {"rounds": rounds, "record_points": record_points, "backend": backend, "audit": audit}
    simulations = {
        cell: build_simulation(
            replace_limits(players[cell.policy], cell.limits),
            families[cell.world],
            numbers,
            seed=cell.seed,
            out=None if folder is None else folder / cell.folder,
            **settings,
        )
        for cell in cells
    }
    return run_simulations(simulations, executor, progress)


def list_entries(values: Any, what: str) -> list[Any]:
    with suppress(Exception):  # whatever the object's own code comes to
        if isinstance(values, Iterable) and not isinstance(values, str):
            return list(values)
    raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, what, values, "a list, one entry for each simulation")


def check_names(named: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the mapping; every name must be a valid folder name and not reserved."""
    given = check_mapping(named, what) if isinstance(named, Mapping) else {}
    if not given:
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, what, named, "a mapping of at least one name to an object")
    for name in given:
        is_valid = isinstance(name, str) and name.isprintable() and name not in ("", *RESERVED_NAMES)
        if not is_valid or name != parse_path(name, what).name or name.startswith((".", " ")):
            raise InvalidProblem.must_be(ErrorCode.INVALID_NAME, f"a name of {what}", name, "a valid folder name")
    return given


def parse_limit_lists(limits: Any) -> dict[str, list[Any]]:
    """Return the values of limits by name."""
    rule = "names of limits with lists of numbers, such as {'opt_out': [0.01, 0.015, 0.02]}"
    if not isinstance(limits, Mapping) or not limits:
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "limits", limits, rule)
    found = {}
    for name, values in check_mapping(limits, "limits").items():
        if not isinstance(name, str) or not is_listing(values):
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "limits", {name: values}, rule)
        for value in values:
            check_number(parse_threshold(value).number, f"an entry of limits of {name!r}")
        found[name] = [copy_value(value) for value in values]
    return found


def replace_limits(policy: Any, limits: NamedLimits) -> Any:
    """Return the policy or problem with other limits of these names; directions stay."""
    if not limits:
        return policy
    if isinstance(policy, Problem):
        own = dict(policy.limits)
        for name, value in limits:
            limit = own[check_limit_name(name, tuple(own))]
            own[name] = dataclasses.replace(limit, value=keep_direction(limit.value, value))
        return dataclasses.replace(policy, limits=own)
    if not dataclasses.is_dataclass(policy) or isinstance(policy, type) or not hasattr(policy, "threshold"):
        raise InvalidProblem.unused("limits", dict(limits), f"{type(policy).__name__} has no threshold")
    given, names = list_thresholds(policy.threshold)
    for name, value in limits:
        index = names.index(check_limit_name(name, names))
        given[index] = keep_direction(given[index], value)
    by_name = isinstance(policy.threshold, Mapping)
    return dataclasses.replace(policy, threshold=dict(zip(names, given, strict=True)) if by_name else given)


def check_limit_name(name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SIGNAL, "a name of limits", name, names)
    return name


def keep_direction(old: Any, new: Any) -> Any:
    """Return a new limit in the direction of the old one, unless it has its own."""
    return AtLeast(new) if parse_threshold(old).at_least and not parse_threshold(new).at_least else new
