"""What a simulation found: curves over the recorded rounds, and what held in every single one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import path_of
from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import made
from stagewise.reports.sealed import AGAIN, content_of, manifest_in, packed, unpacked, write_sealed

FORMAT, VERSION = "stagewise-result", 2
CURVE_FILE, RUN_FILE = "curves.parquet", "runs.parquet"
CURVES = ("regret", "reward", "optimum")  # a number a recorded round
AUDIT = ("first_violation", "hopeless", "settled")  # a number a run


@dataclass(frozen=True, eq=False)
class Result:
    """Curves of some runs. Rewards and costs are true expected values of the decisions, in the user's own direction.

    An audit has for every run: the round of its `first_violation`, counted from 1 (0: none); how many rounds hoped for
    less than was possible, `hopeless` (−1: nothing promised); the first round that gained nine tenths of what was
    possible, `settled` (0: none); in how many rounds an interval of each signal `missed` the truth (runs, 1 + m) (−1:
    there is none); the `margin` left to each threshold (runs, m); and the `bound` that a theorem sets to regret
    (runs, R) (NaN: there is none).

    >>> import stagewise as sw
    >>> policy = sw.UCB(arms=2, threshold=0.2)
    >>> result = sw.simulate(policy, sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), rounds=100, record=4)
    >>> result.rounds.tolist(), result.max_cost.tolist(), result.regret.shape
    ([25, 50, 75, 100], [[0.5]], (1, 4))
    """

    rounds: Ints  # (R,) the recorded rounds, counted from 1
    regret: Floats  # (runs, R) up to and including the round
    reward: Floats  # (runs, R) mean over the interval that the round closes
    cost: Floats  # (runs, R, m)
    max_cost: Floats  # (runs, m) of all rounds; the smallest where the threshold is from below
    violations: Ints  # (runs,) rounds with an expected cost beyond its threshold, of all rounds
    optimum: Floats  # (runs, R) what was possible, mean over the interval
    runs: Ints  # (runs,) their numbers
    manifest: dict[str, Any]  # settings, seed, versions, machine, seconds (of all runs, one after the other)
    audit: dict[str, Any] | None = None
    safe: Floats | None = None  # (runs, 1 + m) what the safe action earns and costs on average; NaN: there is none

    def __repr__(self) -> str:
        last = self.regret[:, -1]
        runs = "1 run" if last.size == 1 else f"{last.size} runs"
        kind, size = self.manifest["policy"]["kind"], f"{runs} of {self.rounds[-1]:,} rounds"
        regret = f"regret {last.mean():,.1f}" + (f" ± {standard_error(last):,.1f}" if last.size > 1 else "")
        return f"Result({kind}, {size}: {regret}, {int(self.violations.sum())} violations)"

    def plot(self) -> Any:
        """Return a matplotlib figure: reward beside the safe action's, every limit, regret; bands over runs."""
        from stagewise.reports.picture import drawn

        return drawn({"": self})

    def save(self, folder: str | Path) -> None:
        """Write curves.parquet, runs.parquet and manifest.json, which vouches for them by their SHA-256."""
        count, points, _ = self.cost.shape
        curves = {
            "run": np.repeat(self.runs, points),
            "round": np.tile(self.rounds, count),
            **{name: getattr(self, name).ravel() for name in CURVES},
            **numbered("cost", self.cost.reshape(count * points, -1)),
        }
        totals = {"run": self.runs, "violations": self.violations, **numbered("max_cost", self.max_cost)}
        if self.safe is not None:
            totals |= {"safe_reward": self.safe[:, 0]} | numbered("safe_cost", self.safe[:, 1:])
        if self.audit is not None:
            missed = self.audit["missed"]
            curves["bound"] = self.audit["bound"].ravel()
            totals |= {name: self.audit[name] for name in AUDIT} | {"missed_reward": missed[:, 0]}
            totals |= numbered("missed_cost", missed[:, 1:]) | numbered("margin", self.audit["margin"])
        manifest = {"format": FORMAT, "version": VERSION, **self.manifest}
        write_sealed(made(folder), manifest, {CURVE_FILE: packed(curves), RUN_FILE: packed(totals)})

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Return what `save` wrote, or refuse what is not as it was written."""
        place = path_of(folder, "the folder")
        try:
            manifest = manifest_in(place)
        except FileNotFoundError:
            raise InvalidFile(absent(place)) from None
        digests = manifest.pop("files", None)
        if (manifest.pop("format", 0), manifest.pop("version", 0)) != (FORMAT, VERSION) or not isinstance(
            digests, dict
        ):
            raise InvalidFile(f"{place} is not a result of this version of stagewise ({FORMAT} {VERSION}); {AGAIN}")
        curves, totals = (
            unpacked(content_of(place / name, digests.get(name)), place / name) for name in (CURVE_FILE, RUN_FILE)
        )
        try:
            return cls.read(curves, totals, manifest)
        except (KeyError, ValueError, ZeroDivisionError) as error:
            wrong = f"its tables do not fit each other, {error!r}"
            raise InvalidFile(f"{place} is not a whole result: {wrong}; {AGAIN}") from None

    @classmethod
    def read(cls, curves: dict[str, Any], totals: dict[str, Any], manifest: dict[str, Any]) -> "Result":
        """Return the result that two tables hold."""
        runs = totals["run"]
        shape = (len(runs), len(curves["run"]) // len(runs))
        rounds = curves["round"][: shape[1]]
        played = np.repeat(runs, shape[1]), np.tile(rounds, shape[0])
        if not np.array_equal((curves["run"], curves["round"]), played):
            raise ValueError("the curves are of other runs or rounds")
        audit = None
        if "missed_reward" in totals:
            audit = {name: totals[name] for name in AUDIT}
            audit |= {name: stacked(f"{name}_", totals, len(runs)) for name in ("missed", "margin")}
            audit["bound"] = curves["bound"].reshape(shape)
        return cls(
            rounds=rounds,
            **{name: curves[name].reshape(shape) for name in CURVES},
            cost=stacked("cost_", curves, len(curves["run"])).reshape(*shape, -1),
            max_cost=stacked("max_cost_", totals, len(runs)),
            violations=totals["violations"],
            runs=runs,
            manifest=manifest,
            audit=audit,
            safe=stacked("safe_", totals, len(runs)) if "safe_reward" in totals else None,
        )


def numbered(name: str, values: Any) -> dict[str, Any]:
    """Return the columns of a table (n, k) as name_1, name_2, …"""
    return {f"{name}_{j + 1}": column for j, column in enumerate(values.T)}


def stacked(prefix: str, columns: dict[str, Any], count: int) -> Any:
    """Return the columns whose names begin so as one table (n, k)."""
    found = [column for name, column in columns.items() if name.startswith(prefix)]
    return np.stack(found, axis=1) if found else np.empty((count, 0))


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean over runs; of one run it is not known."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def floors(result: Result) -> list[bool]:
    """Say of each cost whether its limit is from below, so that the least of it is the worst."""
    names, below = list(result.manifest.get("thresholds", {})), result.manifest.get("at_least", [])
    return [any(name in below for name in names[j : j + 1]) for j in range(result.cost.shape[2])]


def kept(folder: Path) -> Result | None:
    """Return a result that is there as it was written; None: there is none."""
    try:
        manifest_in(folder)
    except FileNotFoundError:
        return None
    return Result.load(folder)


def absent(place: Path) -> str:
    """Say that a folder holds no result, and which folders below it do."""
    inner = sorted(str(path.parent) for path in place.glob("*/manifest.json"))
    inner = inner or sorted(str(path.parent) for path in place.glob("*/*/*/*/manifest.json"))
    if not place.exists():
        return f"{place} does not exist"
    return f"{place} holds no result, as it has no manifest.json" + (f"; {shown(inner)} have one" if inner else "")


def merged(results: list[Result]) -> Result:
    """Return the results of several runs of one plan as one."""
    first = results[0]
    if len(results) == 1:
        return first
    names = [name for name in vars(first) if name not in ("rounds", "manifest", "audit", "safe")]
    arrays = {name: np.concatenate([getattr(result, name) for result in results]) for name in names}
    audits = [result.audit for result in results if result.audit is not None]
    audit = {name: np.concatenate([one[name] for one in audits]) for name in audits[0]} if audits else None
    manifest = {**first.manifest, "seconds": sum(result.manifest.get("seconds", 0.0) for result in results)}
    if "thresholds_of_runs" in manifest:
        manifest["thresholds_of_runs"] = [one for result in results for one in result.manifest["thresholds_of_runs"]]
    safes = [result.safe for result in results if result.safe is not None]
    safe = np.concatenate(safes) if len(safes) == len(results) else None
    return Result(rounds=first.rounds, manifest=manifest, audit=audit, safe=safe, **arrays)
