"""`forecast_from_log`: simulate a campaign in worlds that are fitted to a log."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent import Agent
from stagewise.files.paths import parse_path, write_text
from stagewise.launch.decision_log import resolve_problem
from stagewise.launch.doctor.drift_proposal import compute_least_bounds
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.forecast.case_forecast import (
    Case,
    CaseForecast,
    Horizon,
    TrainedPolicy,
    build_cases,
    find_most_permissive,
    simulate_runs,
    summarize_case,
)
from stagewise.launch.forecast.fitted_worlds import FittedWorlds, find_constant_features
from stagewise.launch.forecast.forecast_log import DAY, ForecastLog, LogMovement, WarmStart, get_users_per_day
from stagewise.launch.forecast.forecast_report import format_table, plot_forecast, render_page
from stagewise.launch.notes import Note, NoteCode
from stagewise.launch.statistics import BAND_LEVEL
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_bool, check_integer, check_seed
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.reports.output_files import make_folder
from stagewise.reports.style import write_figure
from stagewise.simulation.executors import Workers
from stagewise.simulation.plan import get_versions

FORMAT, VERSION = "stagewise-forecast", 1
MIN_RUNS = 38  # fewer runs give no 90 % band with 90 % confidence (`compute_tail_share`)
MAX_ROUNDS = 5_000_000_000
FEW_ROWS = 100  # an action with fewer rows gets a note


class LeastBound(NamedTuple):
    """About the least bound of a limit that can be had with its declared drift."""

    action: str
    bound: float
    limit: float


@dataclass(frozen=True, eq=False)
class Forecast:
    """The result of `forecast_from_log`: the simulated campaign under each of the requested limits.

    Attributes:
        problem: The problem as declared.
        case_forecasts: The forecast of every valid case, the narrowest limits first.
        rejected: The cases that are invalid, with their errors.
        horizon: Days, users per day and seed.
        runs: The number of simulated runs.
        rows: The number of complete rows of the log.
        warm_start: What the policy starts from.
        warm_start_rows: The number of rows that it starts from.
        notes: What to know about the log; each note has a `code` and `details`.
        manifest: Seed, worlds and versions.
        least_bounds: By limit with a declared drift, about the least bound that can ever be had, with its action.

    Example:
        >>> import stagewise as sw
        >>> problem = sw.Problem(
        ...     action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        ...     limits={"opt_out": sw.Limit(0.5, safe_bound=0.1)},
        ... )
        >>> log = {"action": ["nothing", "offer"] * 50, "click": [0, 1] * 50, "opt_out": [0, 0] * 50}
        >>> result = sw.forecast_from_log(log, problem, days=2, users_per_day=5, runs=38, progress=False)
        >>> result.declared.case.values, str(result.warm_start), result.warm_start_rows
        ({'opt_out': 0.5}, 'all', 100)
    """

    problem: Problem
    case_forecasts: list[CaseForecast]
    rejected: list[Case]
    horizon: Horizon
    runs: int
    rows: int
    warm_start: WarmStart
    warm_start_rows: int
    notes: list[Note]
    manifest: dict[str, Any]
    least_bounds: dict[str, LeastBound] = field(default_factory=dict)

    @property
    def declared(self) -> CaseForecast:
        return next(each for each in self.case_forecasts if each.case.declared)

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as JSON values.

        Returns:
            The content of forecast.json.
        """
        return {
            "format": FORMAT,
            "version": VERSION,
            "problem": self.problem.to_dict(),
            "days": self.horizon.days,
            "users_per_day": self.horizon.users,
            "runs": self.runs,
            "level": BAND_LEVEL,
            "rows": self.rows,
            "warm_start": str(self.warm_start),
            "warm_start_rows": self.warm_start_rows,
            "notes": [note.to_dict() for note in self.notes],
            "least_bounds": {name: one._asdict() for name, one in self.least_bounds.items()},
            "cases": [each.to_dict() for each in self.case_forecasts],
            "rejected": [
                {"limits": case.values, "code": str(case.error.code), "message": str(case.error)}
                for case in self.rejected
                if case.error is not None
            ],
            **self.manifest,
        }

    def __str__(self) -> str:
        return format_table(self)

    def plot(self) -> Any:
        """Plot gains by day, costs beside their limits, and action shares.

        Returns:
            A matplotlib figure.
        """
        return plot_forecast(self)

    def save(self, folder: str | Path) -> None:
        """Write forecast.html, forecast.png and forecast.json.

        Args:
            folder: The folder, which is created if needed.

        Raises:
            InvalidFile: The folder cannot be written.
        """
        target = make_folder(parse_path(folder, "the folder"))
        write_text(target / "forecast.json", json.dumps(self.to_dict(), indent=1))
        write_figure(self.plot(), target / "forecast.png")
        write_text(target / "forecast.html", render_page(self))


def forecast_from_log(
    log: Any,
    problem: Problem | str | Path,
    *,
    limits: Mapping[str, Any] | None = None,
    days: int = 60,
    users_per_day: float | None = None,
    runs: int = 100,
    seed: int = 0,
    warm_start: Any = "all",
    columns: Mapping[str, str] | None = None,
    as_of: Any = None,
    executor: Workers = None,
    progress: bool = True,
) -> Forecast:
    """Forecast a campaign: simulate the policy of a problem in worlds that are fitted to a log.

    Users are drawn from the log's rows; the means of the actions are drawn, once per run, from their posterior given
    the log.

    Args:
        log: A file (.csv, .parquet, .jsonl), a data frame, or a mapping of columns.
        problem: The problem, or the TOML file that declares it.
        limits: Values of limits to compare, such as {"opt_out": [0.01, 0.02]}; None: as declared only.
        days: The number of days.
        users_per_day: The number of users; None: as in the log.
        runs: The number of simulated runs, at least 38.
        seed: The seed of users, worlds and runs.
        warm_start: What the policy learns first: "all" rows; the later "half" by time, if the problem was chosen from
            the other half (`stagewise doctor`); "nothing"; or a separate log.
        columns: Column mapping from names of the problem to columns of the log.
        as_of: When the log was read, in seconds since 1970 or a datetime; rows whose windows were open then are left
            out. None: the time of its last row.
        executor: As for `simulate`.
        progress: Whether to show a progress bar.

    Returns:
        Gains, costs and violations by case, with 90 % bands over runs.

    Raises:
        InvalidOutcome: The log or a column cannot be used.
        InvalidProblem: The problem or an argument is invalid.
        InvalidFile: A file cannot be read.

    Example:
        >>> import stagewise as sw
        >>> problem = sw.Problem(
        ...     action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        ...     limits={"opt_out": sw.Limit(0.5, safe_bound=0.1)},
        ... )
        >>> log = {"action": ["nothing", "offer"] * 50, "click": [0, 1] * 50, "opt_out": [0, 0] * 50}
        >>> result = sw.forecast_from_log(log, problem, days=2, users_per_day=5, runs=38, progress=False)
        >>> bool(result.declared.total_gain.middle > 0), result.declared.runs_over_any_limit
        (True, 0.0)
    """
    declared = resolve_problem(problem)
    log_rows = ForecastLog.of(log, declared, columns, as_of)
    run_count = check_integer(runs, "runs", f"of at least {MIN_RUNS}, for 90 % bands", MIN_RUNS, 100_000)
    horizon = Horizon(
        check_integer(days, "days", "from 1 to 3650", 1, 3650),
        get_users_per_day(users_per_day, log_rows),
        check_seed(seed),
    )
    cases, show_progress = build_cases(declared, limits), check_bool(progress, "progress")
    valid = [case for case in cases if case.problem is not None]
    if run_count * horizon.rounds * len(valid) > MAX_ROUNDS:
        rule = f"at most {MAX_ROUNDS:,} in all; use fewer runs, days or users a day"
        what = f"the number of rounds of {run_count:,} runs under {len(valid)} limits"
        raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, what, run_count * horizon.rounds * len(valid), rule)
    start_rows, start = log_rows.warm_start(warm_start, columns, as_of)
    movement = LogMovement.of(log_rows, horizon.users) if declared.needs_times else None
    worlds = FittedWorlds.of(log_rows, horizon.seed, movement)
    players = [train_policy(case, start_rows) for case in valid]
    results = simulate_runs(worlds, players, run_count, horizon, executor, show_progress)
    widest = find_most_permissive(valid)
    case_forecasts = [
        summarize_case(case, results[index], horizon.users, None if index == widest else results[widest])
        for index, case in enumerate(valid)
    ]
    return Forecast(
        problem=declared,
        case_forecasts=case_forecasts,
        rejected=[case for case in cases if case.problem is None],
        horizon=horizon,
        runs=run_count,
        rows=log_rows.log.rows,
        warm_start=start,
        warm_start_rows=0 if start_rows is None else start_rows.log.rows,
        notes=[*log_rows.notes, *describe_sparse_actions(log_rows), *describe_constant_features(log_rows)],
        least_bounds=compute_drift_bounds(log_rows, horizon.users),
        manifest={"seed": horizon.seed, "worlds": worlds.description(), "versions": get_versions()},
    )


def compute_drift_bounds(log_rows: ForecastLog, users_per_day: int) -> dict[str, LeastBound]:
    """Return the least bound that can be had of every limit with a slope or a budget, with so many users a day."""
    problem = log_rows.log.problem
    found = {}
    for cost in LogProfile(log_rows.log, {}).costs:
        modulus = problem.moduli.get(cost.name)
        if modulus is not None and modulus.amount > 0.0:
            bounds = compute_least_bounds(cost, modulus, users_per_day / DAY)
            if bounds:
                action, bound = (max if cost.at_least else min)(bounds.items(), key=lambda one: one[1])
                found[cost.name] = LeastBound(action, bound, cost.threshold)
    return found


def train_policy(case: Case, rows: ForecastLog | None) -> TrainedPolicy:
    assert case.problem is not None
    agent = Agent(case.problem)
    if rows is not None:
        agent.learn_log_frame(rows.log.frame())
    return TrainedPolicy(case.problem.build_indexed_policy(), agent.state)


def describe_sparse_actions(log_rows: ForecastLog) -> Iterator[Note]:
    """Yield notes on actions with few rows or none, whose bands are wide."""
    actions = log_rows.log.problem.action_names
    counts = dict(zip(actions, np.bincount(log_rows.actions, minlength=len(actions)).tolist(), strict=True))
    none = [name for name, count in counts.items() if count == 0]
    few = {name: count for name, count in counts.items() if 0 < count < FEW_ROWS}
    if none:
        yield Note.of(NoteCode.ACTIONS_WITHOUT_ROWS, actions=none)
    if few:
        yield Note.of(NoteCode.ACTIONS_WITH_FEW_ROWS, counts=few)


def describe_constant_features(log_rows: ForecastLog) -> Iterator[Note]:
    """Yield notes on numbers that are constant for an action, if a signal is linear in them."""
    problem = log_rows.log.problem
    if any(choice.model != "rates" for choice in problem.choices.values()):
        numbers = log_rows.users[:, 1 : 1 + len(problem.feature_names)]
        constant = find_constant_features(log_rows.actions, numbers, len(problem.action_names))
        for action, row in zip(problem.action_names, constant, strict=True):
            names = [name for name, is_constant in zip(problem.feature_names, row, strict=True) if is_constant]
            if names:
                yield Note.of(NoteCode.FEATURE_CONSTANT_FOR_ACTION, action=action, names=names)
