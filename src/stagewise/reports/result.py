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
from stagewise.reports.sealed import content_of, manifest_in, write_sealed
from stagewise.reports.tables import packed, unpacked

FORMAT, VERSION = "stagewise-result", 2
UNSEALED = 1  # the version that kept no digests: read as it is, and never played on
CURVES, RUNS = "curves.parquet", "runs.parquet"
PLAIN = ("first_violation", "hopeless", "settled")  # the parts of an audit with one number a run


@dataclass(frozen=True, eq=False)
class Result:
    """Curves of some runs. Rewards and costs are true expected values of the decisions, in the user's own direction.

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
    manifest: dict[str, Any]  # settings, seed, versions, machine, seconds
    audit: dict[str, Ints] | None = None  # first_violation, hopeless, settled (runs,), missed (runs, 1 + m)

    def __repr__(self) -> str:
        last = self.regret[:, -1]
        runs = "1 run" if last.size == 1 else f"{last.size} runs"
        kind, size = self.manifest["policy"]["kind"], f"{runs} of {self.rounds[-1]:,} rounds"
        regret = f"regret {last.mean():,.1f}" + (f" ± {standard_error(last):,.1f}" if last.size > 1 else "")
        return f"Result({kind}, {size}: {regret}, {int(self.violations.sum())} violations)"

    def plot(self) -> Any:
        """Return a matplotlib figure: regret, costs against their thresholds, reward; bands over runs."""
        from stagewise.reports.picture import drawn

        return drawn(self)

    def save(self, folder: str | Path) -> None:
        """Write curves.parquet, runs.parquet and manifest.json, which vouches for them by their SHA-256."""
        place = made(folder)
        count, points, m = self.cost.shape
        curves = {
            "run": np.repeat(self.runs, points),
            "round": np.tile(self.rounds, count),
            "regret": self.regret.ravel(),
            "reward": self.reward.ravel(),
            "optimum": self.optimum.ravel(),
            **{f"cost_{j + 1}": self.cost[:, :, j].ravel() for j in range(m)},
        }
        totals = {
            "run": self.runs,
            "violations": self.violations,
            **{f"max_cost_{j + 1}": self.max_cost[:, j] for j in range(m)},
            **audit_columns(self.audit),
        }
        manifest = {"format": FORMAT, "version": VERSION, **self.manifest}
        write_sealed(place, manifest, {CURVES: packed(curves), RUNS: packed(totals)})

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Return what `save` wrote, or refuse what is not as it was written; version 1 vouched for nothing."""
        place = path_of(folder, "the folder")
        try:
            manifest = manifest_in(place)
        except FileNotFoundError:
            raise InvalidFile(absent(place)) from None
        digests = manifest.pop("files", None)
        version = (manifest.pop("format", 0), manifest.pop("version", 0))
        known = VERSION if isinstance(digests, dict) else UNSEALED
        if version != (FORMAT, known):
            raise InvalidFile(f"{place} is not a result of this version of stagewise ({FORMAT} {VERSION})")
        curves, totals = (
            unpacked(content_of(place / name, digests.get(name, "") if known == VERSION else None), place / name)
            for name in (CURVES, RUNS)
        )
        try:
            return cls.read(curves, totals, manifest)
        except (KeyError, ValueError, ZeroDivisionError) as error:
            raise InvalidFile(f"{place} is not a whole result: its tables do not fit each other, {error!r}") from None

    @classmethod
    def read(cls, curves: dict[str, Any], totals: dict[str, Any], manifest: dict[str, Any]) -> "Result":
        """Return the result that two tables hold."""
        runs = totals["run"]
        m = sum(name.startswith("max_cost_") for name in totals)
        shape = (len(runs), len(curves["run"]) // len(runs))
        costs = [curves[f"cost_{j + 1}"].reshape(shape) for j in range(m)]
        return cls(
            rounds=curves["round"][: shape[1]],
            regret=curves["regret"].reshape(shape),
            reward=curves["reward"].reshape(shape),
            cost=np.stack(costs, axis=2) if m else np.empty((*shape, 0)),
            max_cost=np.stack([totals[f"max_cost_{j + 1}"] for j in range(m)], axis=1)
            if m
            else np.empty((len(runs), 0)),
            violations=totals["violations"],
            optimum=curves["optimum"].reshape(shape),
            runs=runs,
            manifest=manifest,
            audit=audit_from(totals),
        )


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean over runs; of one run it is not known."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def kept(folder: Path) -> Result | None:
    """Return a result that is there as it was written; None: there is none, or nothing vouches for it."""
    try:
        return Result.load(folder) if "files" in manifest_in(folder) else None
    except FileNotFoundError:
        return None


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
    arrays = {
        name: np.concatenate([getattr(result, name) for result in results])
        for name in ("regret", "reward", "cost", "max_cost", "violations", "optimum", "runs")
    }
    audit = None
    if first.audit is not None:
        audit = {name: np.concatenate([(result.audit or {})[name] for result in results]) for name in first.audit}
    return Result(rounds=first.rounds, manifest=first.manifest, audit=audit, **arrays)


def audit_columns(audit: dict[str, Ints] | None) -> dict[str, Ints]:
    """Return an audit as columns of numbers; `missed` becomes missed_reward, missed_cost_1, …"""
    if audit is None:
        return {}
    missed = audit["missed"]
    names = ["missed_reward", *(f"missed_cost_{j}" for j in range(1, missed.shape[1]))]
    return {**{name: audit[name] for name in PLAIN}, **dict(zip(names, missed.T, strict=True))}


def audit_from(columns: dict[str, Any]) -> dict[str, Ints] | None:
    """Return the audit that stands among the columns, if one does."""
    if "missed_reward" not in columns:
        return None
    missed = [columns[name] for name in columns if name.startswith("missed_")]
    return {**{name: columns[name] for name in PLAIN}, "missed": np.stack(missed, axis=1)}
