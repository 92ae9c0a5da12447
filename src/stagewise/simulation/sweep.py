"""Every policy in every world, under every threshold, from every seed: one progress bar, one folder, one executor."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from stagewise.files.paths import path_of
from stagewise.problem.checks import mapping_of, seed_of, shown
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.result import Result
from stagewise.simulation.executors import Workers
from stagewise.simulation.jobs import Backend, on_cuda
from stagewise.simulation.other_limits import Named, limit_of, lists_of, under_limits, under_threshold
from stagewise.simulation.pairs import Family
from stagewise.simulation.simulate import asked, collected
from stagewise.simulation.size import check_cells, check_room, counted

TAKEN = ("comparison.md", "comparison.png", "sweep.md")


class Cell(NamedTuple):
    """One simulation of a sweep."""

    policy: str
    world: str
    threshold: Any  # None: the policy's own
    seed: int
    limits: Named = ()  # by name; none: the policy's own

    @property
    def folder(self) -> Path:
        """Where it is kept, below the sweep's own folder."""
        limit = "own-threshold" if self.threshold is None else f"threshold-{self.threshold!r}"
        if self.limits:
            limit = ",".join(f"{quote(name, safe=' ')}-{value!r}" for name, value in self.limits)
        return Path(self.policy) / self.world / limit / f"seed-{self.seed}"

    def __str__(self) -> str:
        limit = [] if self.threshold is None else [f"threshold {self.threshold}"]
        limit += [f"{name} {value}" for name, value in self.limits]
        return ", ".join([self.policy, self.world, *limit, f"seed {self.seed}"])


def sweep(
    *,
    policies: Mapping[str, Any],
    worlds: Mapping[str, Family],
    thresholds: Iterable[float] | None = None,
    limits: Mapping[str, Iterable[float]] | None = None,
    seeds: Iterable[int] = (0,),
    rounds: int,
    runs: int | Iterable[int] = 1,
    record: int = 1000,
    backend: Backend = "auto",
    audit: bool = False,
    executor: Workers = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> dict[Cell, Result]:
    """Simulate policies × worlds (or families) × thresholds × seeds and return every result by its `Cell`.

    `thresholds` are set in the place of all that a policy has. `limits` are set by name, every one of a list, and where
    there are several lists every combination: {"opt_out": [0.01, 0.02]}; other limits stay, and so does a direction.
    All runs are handed out together, and each is what `simulate` would have played, to the bit; `rounds`, `runs`,
    `record`, `backend`, `audit`, `executor` and `progress` are as there. With `out` every finished run is kept there at
    once, and the same call continues where it was interrupted.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
    >>> found = sweep(policies={"opb": policy}, worlds={"two arms": world}, thresholds=[0.1, 0.2], rounds=100)
    >>> [str(cell) for cell in found]
    ['opb, two arms, threshold 0.1, seed 0', 'opb, two arms, threshold 0.2, seed 0']
    """
    backend, executor = on_cuda(backend, executor)
    numbers = list(runs) if isinstance(runs, Iterator) else runs  # every cell asks for them anew
    place = None if out is None else path_of(out, "out")
    singles = [None] if thresholds is None else [limit_of(entry) for entry in entries(thresholds, "thresholds")]
    named = {} if limits is None else lists_of(limits)
    if named and thresholds is not None:
        raise InvalidProblem("thresholds and limits are given; thresholds are all that a policy has, so give one only")
    players, places = checked(policies, "policies"), checked(worlds, "worlds")
    origins = [seed_of(seed) for seed in entries(seeds, "seeds")]
    parts = {"policies": len(players), "worlds": len(places), "thresholds": len(singles)}
    counts = {**parts, **{f"of {name}": len(values) for name, values in named.items()}, "seeds": len(origins)}
    check_cells(counts)
    if isinstance(numbers, int):
        check_room(prod(counts.values()) * counted(numbers, "runs"), 1, 0)
    combined = product(*([(name, value) for value in values] for name, values in named.items()))
    cells = [
        Cell(policy, world, threshold, seed, own)
        for policy, world, threshold, own, seed in product(players, places, singles, combined, origins)
    ]
    if not cells or len(set(cells)) < len(cells):
        lists = f"thresholds is {shown(singles)}" if limits is None else f"limits is {shown(named)}"
        raise InvalidProblem(f"{lists} and seeds {shown(origins)}; all need entries, each one only once")
    told: dict[str, Any] = {"rounds": rounds, "record": record, "backend": backend, "audit": audit}
    simulations = {
        cell: asked(
            under_limits(under_threshold(players[cell.policy], cell.threshold), cell.limits),
            places[cell.world],
            numbers,
            seed=cell.seed,
            out=None if place is None else place / cell.folder,
            **told,
        )
        for cell in cells
    }
    return collected(simulations, executor, progress)


def entries(values: Any, what: str) -> list[Any]:
    """Return what a sweep goes through, one entry each."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidProblem(f"{what} is {shown(values)}; it must be a list, one entry for each simulation")
    try:
        return list(values)
    except Exception:  # whatever the object's own code came to
        raise InvalidProblem(f"{what} is {shown(values)}; its entries cannot be read") from None


def checked(named: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return what names stand for; each must do as a folder's, beside what `compare` and `sweep` write themselves."""
    given = mapping_of(named, what) if isinstance(named, Mapping) else {}
    if not given:
        raise InvalidProblem(f"{what} is {shown(named)}; it must map at least one name to what it stands for")
    for name in given:
        plain = isinstance(name, str) and name.isprintable() and name not in ("", *TAKEN)
        if not plain or name != path_of(name, what).name or name.startswith((".", " ")):
            raise InvalidProblem(f"{what} has the name {shown(name)}; a name must also do as the name of a folder")
    return given
