"""The result of a simulation: curves over the recorded rounds, statistics of all rounds, as a plot and as a table."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.files.paths import parse_path
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.reports import style as plot_style
from stagewise.reports.output_files import (
    RESTORE_HINT,
    from_parquet,
    make_folder,
    read_manifest,
    read_verified,
    reject_result,
    to_parquet,
    write_with_manifest,
)
from stagewise.reports.style import escape_label

FORMAT, VERSION = "stagewise-result", 2
CURVE_FILE, RUN_FILE = "curves.parquet", "runs.parquet"
CURVES = ("regret", "reward", "optimum")  # one number per recorded round
AUDIT = ("first_violation", "optimism_failures", "first_near_optimal_round")  # one number per run


@dataclass(frozen=True, eq=False)
class Result:
    """The result of `simulate`: curves of some runs. Rewards and costs are true expected values of the decisions.

    Attributes:
        rounds: The recorded rounds (R,), counted from 1.
        regret: Cumulative regret (runs, R).
        reward: Mean reward (runs, R) since the previous recorded round.
        cost: Mean costs (runs, R, m).
        max_cost: The largest cost of all rounds (runs, m); the smallest for lower limits.
        violations: The number of rounds (runs,) with an expected cost beyond its threshold.
        optimum: The best possible reward (runs, R), averaged as `reward`.
        runs: The numbers of the runs (runs,).
        manifest: Settings, seed, versions, machine, and the seconds of all runs.
        audit: With `audit=True`, for every run: `first_violation`, its round from 1 (0: none); `optimism_failures`, the
            number of rounds whose optimistic reward was below what was possible (−1: not applicable);
            `first_near_optimal_round`, the first with nine tenths of the possible gain (0: none); `missed`, the rounds
            in which an interval of each signal missed the truth (runs, 1 + m) (−1: none); `margin`, the smallest
            distance to each threshold (runs, m); and `bound`, the theorem's regret bound (runs, R) (NaN: none).
        safe: The mean reward and costs of the safe action (runs, 1 + m); NaN: there is none.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.UCB(arms=2, threshold=0.2)
        >>> result = sw.simulate(policy, sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), rounds=100, record_points=4)
        >>> result.rounds.tolist(), result.max_cost.tolist(), result.regret.shape
        ([25, 50, 75, 100], [[0.5]], (1, 4))
    """

    rounds: Ints
    regret: Floats
    reward: Floats
    cost: Floats
    max_cost: Floats
    violations: Ints
    optimum: Floats
    runs: Ints
    manifest: dict[str, Any]
    audit: dict[str, Any] | None = None
    safe: Floats | None = None

    def __repr__(self) -> str:
        last = self.regret[:, -1]
        runs = "1 run" if last.size == 1 else f"{last.size} runs"
        kind, size = self.manifest["policy"]["kind"], f"{runs} of {self.rounds[-1]:,} rounds"
        regret = f"regret {last.mean():,.1f}" + (f" ± {standard_error(last):,.1f}" if last.size > 1 else "")
        return f"Result({kind}, {size}: {regret}, {int(self.violations.sum())} violations)"

    def plot(self) -> Any:
        """Plot reward, costs beside limits and regret, with bands over runs.

        Returns:
            A matplotlib figure.
        """
        return plot_results({"": self})

    def save(self, folder: str | Path) -> None:
        """Write curves.parquet, runs.parquet and manifest.json, which has their SHA-256 digests.

        Args:
            folder: The folder, which is created if needed.

        Raises:
            InvalidFile: The folder cannot be written.
        """
        count, points, _ = self.cost.shape
        curves = {
            "run": np.repeat(self.runs, points),
            "round": np.tile(self.rounds, count),
            **{name: getattr(self, name).ravel() for name in CURVES},
            **number_columns("cost", self.cost.reshape(count * points, -1)),
        }
        totals = {"run": self.runs, "violations": self.violations, **number_columns("max_cost", self.max_cost)}
        if self.safe is not None:
            totals |= {"safe_reward": self.safe[:, 0]} | number_columns("safe_cost", self.safe[:, 1:])
        if self.audit is not None:
            missed = self.audit["missed"]
            curves["bound"] = self.audit["bound"].ravel()
            totals |= {name: self.audit[name] for name in AUDIT} | {"missed_reward": missed[:, 0]}
            totals |= number_columns("missed_cost", missed[:, 1:]) | number_columns("margin", self.audit["margin"])
        manifest = {"format": FORMAT, "version": VERSION, **self.manifest}
        write_with_manifest(
            make_folder(folder), manifest, {CURVE_FILE: to_parquet(curves), RUN_FILE: to_parquet(totals)}
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """Load a saved result.

        Args:
            folder: The folder that `save` wrote.

        Returns:
            The result.

        Raises:
            InvalidFile: There is no result, or it was changed.
        """
        path = parse_path(folder, "the folder")
        manifest = read_manifest(path)
        if manifest is None:
            raise InvalidFile(ErrorCode.FILE_NOT_FOUND, describe_missing(path))
        digests = manifest.pop("files", None)
        form = (manifest.pop("format", 0), manifest.pop("version", 0))
        if form != (FORMAT, VERSION) or not isinstance(digests, dict):
            template = "{folder} is not a result of this version of stagewise ({format} {version}); {restore_hint}"
            data = {"folder": path, "format": FORMAT, "version": VERSION, "restore_hint": RESTORE_HINT}
            raise InvalidFile(ErrorCode.FILE_OF_OTHER_VERSION, template, **data)
        curves, totals = (
            from_parquet(read_verified(path / name, digests.get(name)), path / name) for name in (CURVE_FILE, RUN_FILE)
        )
        try:
            return cls.from_tables(curves, totals, manifest)
        except (KeyError, ValueError, ZeroDivisionError) as error:
            reason = "its tables do not fit each other, {error!r}; {restore_hint}"
            raise reject_result(ErrorCode.FILE_CORRUPT, path, reason, error=error, restore_hint=RESTORE_HINT) from None

    @classmethod
    def from_tables(cls, curves: dict[str, Any], totals: dict[str, Any], manifest: dict[str, Any]) -> "Result":
        """Build a result from its two tables."""
        runs = totals["run"]
        shape = (len(runs), len(curves["run"]) // len(runs))
        rounds = curves["round"][: shape[1]]
        played = np.repeat(runs, shape[1]), np.tile(rounds, shape[0])
        if not np.array_equal((curves["run"], curves["round"]), played):
            raise ValueError("the curves are of other runs or rounds")
        audit = None
        if "missed_reward" in totals:
            audit = {name: totals[name] for name in AUDIT}
            audit |= {name: stack_columns(f"{name}_", totals, len(runs)) for name in ("missed", "margin")}
            audit["bound"] = curves["bound"].reshape(shape)
        return cls(
            rounds=rounds,
            **{name: curves[name].reshape(shape) for name in CURVES},
            cost=stack_columns("cost_", curves, len(curves["run"])).reshape(*shape, -1),
            max_cost=stack_columns("max_cost_", totals, len(runs)),
            violations=totals["violations"],
            runs=runs,
            manifest=manifest,
            audit=audit,
            safe=stack_columns("safe_", totals, len(runs)) if "safe_reward" in totals else None,
        )


def number_columns(name: str, values: Any) -> dict[str, Any]:
    """Return the columns of a table (n, k) as name_1, name_2, …"""
    return {f"{name}_{j + 1}": column for j, column in enumerate(values.T)}


def stack_columns(prefix: str, columns: dict[str, Any], count: int) -> Any:
    """Return the columns with a prefix as one table (n, k)."""
    found = [column for name, column in columns.items() if name.startswith(prefix)]
    return np.stack(found, axis=1) if found else np.empty((count, 0))


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean over runs; NaN for one run."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def get_lower_limits(result: Result) -> list[bool]:
    """Return for each cost whether its limit is a lower one, so that the smallest value is the worst."""
    names, lower = list(result.manifest.get("thresholds", {})), result.manifest.get("at_least", [])
    return [any(name in lower for name in names[j : j + 1]) for j in range(result.cost.shape[2])]


def load_if_present(folder: Path) -> Result | None:
    """Return the result of a folder; None: there is none."""
    return None if read_manifest(folder) is None else Result.load(folder)


def describe_missing(folder: Path) -> str:
    """Return that a folder holds no result, and which folders below it do."""
    inner = sorted(str(path.parent) for path in folder.glob("*/manifest.json"))
    inner = inner or sorted(str(path.parent) for path in folder.glob("*/*/*/*/manifest.json"))
    if not folder.exists():
        return f"{folder} does not exist"
    return f"{folder} holds no result, as it has no manifest.json" + (f"; {safe_repr(inner)} have one" if inner else "")


def merge_results(results: list[Result]) -> Result:
    """Merge the results of several runs of one plan."""
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


MAX_LIMITS = 24  # more panels could not be read
TOLERANCE = 1e-12


def plot_results(results: dict[str, Result]) -> Any:
    """Return one figure of results in the same world, one colour each."""
    costs = min(max(result.cost.shape[2] for result in results.values()), MAX_LIMITS)
    figure, panels = plot_style.make_panels(2 + costs)
    draw_reward(panels[0], results)
    for j, axes in enumerate(panels[1:-1]):
        draw_cost(axes, results, j)
    draw_regret(panels[-1], results)
    plot_style.add_legend_below(figure, panels[0])
    return figure


def draw_reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw the reward of a round, the safe action's and the optimum."""
    for name, result, colour, dashes in iterate_styles(results):
        plot_style.draw_runs_band(axes, result.rounds, result.reward, colour, name, dashes)
    for index, (rounds, optimum) in enumerate(iterate_distinct_optima(results)):
        axes.plot(rounds, optimum, color="black", linestyle=":", linewidth=1.2)
        if index == 0:
            plot_style.annotate_line(axes, float(optimum[-1]), "optimum")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    draw_safe(axes, results, 0)
    plot_style.format_axes(axes, "reward of a round, expected")
    plot_style.format_round_axis(axes)


def draw_cost(axes: Any, results: dict[str, Result], cost: int) -> None:
    """Draw a cost of a round, its limits and the safe action's cost."""
    for name, result, colour, dashes in iterate_styles(results):
        if cost < result.cost.shape[2]:
            plot_style.draw_runs_band(axes, result.rounds, result.cost[:, :, cost], colour, name, dashes)
    limits = [list(result.manifest["thresholds"].items())[cost : cost + 1] for result in results.values()]
    named = list(dict.fromkeys(limit for group in limits for limit in group))
    lower = {name for result in results.values() for name in result.manifest.get("at_least", [])}
    draw_safe(axes, results, 1 + cost)
    for name, value in named:
        plot_style.draw_limit_line(axes, value, name, at_most=name not in lower)
    plot_style.format_axes(axes, f"{escape_label(named[0][0]) if named else f'cost {cost + 1}'} of a round, expected")
    plot_style.format_round_axis(axes)


def draw_regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw the cumulative regret against the oracle."""
    from matplotlib.ticker import FuncFormatter

    for name, result, colour, dashes in iterate_styles(results):
        plot_style.draw_runs_band(axes, result.rounds, result.regret, colour, name, dashes)
    axes.yaxis.set_major_formatter(FuncFormatter(plot_style.format_count))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    plot_style.format_axes(axes, "cumulative regret")
    plot_style.format_round_axis(axes)


def draw_safe(axes: Any, results: dict[str, Result], signal: int) -> None:
    """Draw the safe action's mean, if it is known."""
    known = [get_safe_mean(result, signal) for result in results.values()]
    mean = next((value for value in known if value is not None), None)
    if mean is not None:
        plot_style.draw_reference_line(axes, mean, "the safe action")


def get_safe_mean(result: Result, signal: int) -> float | None:
    """Return the safe action's mean reward (0) or cost (1, 2, …) over runs; None: unknown."""
    if result.safe is None or signal >= result.safe.shape[1]:
        return None
    mean = float(result.safe[:, signal].mean())
    return mean if mean == mean else None


def iterate_styles(results: dict[str, Result]) -> Iterator[tuple[str, Result, str, Any]]:
    """Yield each result with its name, colour and dashes."""
    for index, (name, result) in enumerate(results.items()):
        yield name, result, *plot_style.STYLES[index % len(plot_style.STYLES)]


def iterate_distinct_optima(results: dict[str, Result]) -> Iterator[tuple[Any, Floats]]:
    """Yield rounds and optimum of each result, without repeats; the optimum depends on limits and mixing."""
    kept: list[Floats] = []
    for result in results.values():
        optimum = result.optimum.mean(axis=0)
        if not any(optimum.shape == other.shape and abs(optimum - other).max() < TOLERANCE for other in kept):
            kept.append(optimum)
            yield result.rounds, optimum


def format_table(results: dict[str, Result]) -> str:
    """Return a Markdown table: regret with its standard error, worst costs, violations, reward at the end."""
    lines = [
        "| policy | regret | ± | worst cost | violating rounds | reward at the end / safe action | / optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        last = result.regret[:, -1]
        error = standard_error(last)
        worst = zip(result.max_cost.T, get_lower_limits(result), strict=True)
        costs = ", ".join(f"{column.min() if is_lower else column.max():.4f}" for column, is_lower in worst)
        reward, safe = result.reward[:, -1].mean(), get_safe_mean(result, 0)
        optimum = result.optimum[:, -1].mean()
        share = f"{reward / optimum:.3f}" if optimum else "–"  # nothing was possible
        reward_text = f"{reward:.4g} / {safe:.4g}" if safe is not None else f"{reward:.4g}"
        violating = int(result.violations.sum())
        lines.append(
            f"| {name} | {last.mean():,.1f} | {error:,.1f} | {costs} | {violating} | {reward_text} | {share} |"
        )
    return "\n".join(lines) + "\n"
