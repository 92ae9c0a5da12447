"""What a simulation found: curves over the recorded rounds, and what held in every single one."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import path_of
from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import in_one_step, made, write_text

FORMAT, VERSION = "stagewise-result", 1
MAGIC = b"PAR1"  # how a Parquet file begins and ends
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
        """Write curves.parquet, runs.parquet and manifest.json, each whole or not at all."""
        from arro3.core import Array, Table

        place = made(folder)
        count, points, m = self.cost.shape
        curves = {
            "run": np.repeat(self.runs, points),
            "round": np.tile(self.rounds, count),
            "regret": self.regret.ravel(),
            "reward": self.reward.ravel(),
            "optimum": self.optimum.ravel(),
            **{f"cost_{j + 1}": np.ascontiguousarray(self.cost[:, :, j]).ravel() for j in range(m)},
        }
        totals = {
            "run": self.runs,
            "violations": self.violations,
            **{f"max_cost_{j + 1}": np.ascontiguousarray(self.max_cost[:, j]) for j in range(m)},
            **audit_columns(self.audit),
        }
        for name, columns in (("curves", curves), ("runs", totals)):
            table = Table.from_arrays(
                [Array.from_numpy(np.ascontiguousarray(v)) for v in columns.values()], names=list(columns)
            )
            write_parquet(table, place / f"{name}.parquet")
        write_text(
            place / "manifest.json", json.dumps({"format": FORMAT, "version": VERSION, **self.manifest}, indent=1)
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Return what `save` wrote."""
        place = path_of(folder, "the folder")
        try:
            manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidFile(absent(place)) from None
        except OSError as error:
            raise InvalidFile(f"{place} is not a folder with a result: {error.strerror}") from None
        except ValueError as error:
            raise InvalidFile(f"{place} is not a whole result: its manifest.json cannot be read, {error}") from None
        if not isinstance(manifest, dict) or (manifest.pop("format", 0), manifest.pop("version", 0)) != (
            FORMAT,
            VERSION,
        ):
            raise InvalidFile(f"{place} is not a result of this version of stagewise ({FORMAT} {VERSION})")
        curves, totals = read_parquet(place / "curves.parquet"), read_parquet(place / "runs.parquet")
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


def write_parquet(table: Any, path: Path) -> None:
    """Write a table, whole or not at all."""
    from arro3.io import write_parquet as write

    with in_one_step(path) as draft:
        write(table, str(draft), compression="zstd(3)")


def read_parquet(path: Path) -> dict[str, Any]:
    """Return the columns of a file."""
    from arro3.io import read_parquet as read

    try:
        with path.open("rb") as file:  # the reader panics on a file that was cut short, and says so on the terminal
            whole = file.read(4) == MAGIC and file.seek(-4, os.SEEK_END) > 0 and file.read(4) == MAGIC
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from None
    if not whole:
        raise InvalidFile(f"{path} is not a whole Parquet file; it must begin and end with {MAGIC.decode()}")
    try:
        table = read(str(path)).read_all()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic is no Exception
        raise InvalidFile(f"{path} is not a whole Parquet file: {error}") from None
    return {name: table.column(name).to_numpy() for name in table.column_names}
