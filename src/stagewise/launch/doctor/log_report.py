"""The report of the doctor: the finding of every check, the proposal, a conclusion, and the picture of the log."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.files.tables import format_table
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.drift_proposal import DriftProposal, MonthlyRate, MonthlyRates, propose_drift
from stagewise.launch.doctor.findings import CheckName, Finding, FindingVerdict
from stagewise.launch.doctor.log_profile import DECILES, Cost, LogProfile, Signal, assign_deciles
from stagewise.launch.doctor.problem_proposal import Proposal, format_toml
from stagewise.launch.notes import format_number
from stagewise.launch.statistics import KL_INTERVAL
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.timing import DAY
from stagewise.records.explanation import Columns, render_html
from stagewise.reports.style import (
    BAD,
    GUARDED,
    SAFE,
    STYLES,
    add_legend_below,
    draw_band,
    draw_limit_line,
    escape_label,
    format_axes,
    make_figure,
)

LEVEL = 0.05  # error probability of a drawn interval
DECILE_NATS = 3.0  # log of 1/level of a decile's interval: about 95 %
TIME_PARTS = 12  # parts of the log on the time axis
MIN_MONTHS = 3  # from which rates are drawn by month
MAX_ACTIONS = 24  # the most frequent actions are drawn


def plot_log(signals: list[Signal]) -> Any:
    """Return a matplotlib figure with a column for each signal."""
    figure, grid = make_figure(3, len(signals), height=2.7)
    labelled = None
    for column, signal in enumerate(signals):
        draw_calibration(grid[0, column], signal)
        draw_actions(grid[1, column], signal)
        by_month = MonthlyRates(signal)
        if len({rate.start for rate in by_month.rates}) >= MIN_MONTHS:
            draw_months(grid[2, column], by_month)
            labelled = grid[2, column]
        else:
            draw_time_course(grid[2, column], signal)
    if labelled is not None:
        add_legend_below(figure, labelled, columns=len(STYLES))
    return figure


def draw_calibration(axes: Any, signal: Signal) -> None:
    """Draw predictions from one half of the log against outcomes of the other half, by decile of the prediction.

    Users are ordered by a fit of the numbers, also if the problem has one rate per action: if that is right, outcomes
    follow the rates in every decile.
    """
    half, (low, high) = signal.profile.half, signal.ends
    format_axes(
        axes, f"{escape_label(signal.name)}: predicted and observed", "predicted from the other half", "observed"
    )
    order = signal.predict(half, ~half)
    means = order if signal.is_per_user else signal.compute_cell_rates(half)
    rows = np.isfinite(order) & np.isfinite(means)
    if rows.sum() < 10 * DECILES:
        axes.annotate("too few rows, or no numbers about users", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    deciles = assign_deciles(order[rows])
    counts = np.bincount(deciles, minlength=DECILES)
    predicted, observed = (
        np.bincount(deciles, each[rows], minlength=DECILES)[counts > 0] / counts[counts > 0]
        for each in (means, signal.scaled)
    )
    pairs = zip(counts[counts > 0].tolist(), observed.tolist(), strict=True)
    ends = np.array([KL_INTERVAL(float(count), mean, DECILE_NATS) for count, mean in pairs])
    bars = np.maximum(np.array([observed - ends[:, 0], ends[:, 1] - observed]) * (high - low), 0.0)
    predicted, observed = (low + each * (high - low) for each in (predicted, observed))
    line = np.array([min(predicted.min(), observed.min()), max(predicted.max(), observed.max())])
    axes.plot(line, line, color=SAFE, linestyle=(0, (1, 1.2)), linewidth=1.3)
    axes.errorbar(predicted, observed, yerr=bars, fmt="o", markersize=4, color=GUARDED, linewidth=1)


def list_frequent_actions(signal: Signal, most: int) -> list[str]:
    """Return the actions with most rows, in the order of the problem."""
    profile = signal.profile
    counts = np.bincount(profile.log.actions[profile.known], minlength=len(profile.by_action))
    return [profile.by_action[index][0] for index in sorted(np.argsort(-counts, kind="stable")[:most].tolist())]


def draw_actions(axes: Any, signal: Signal) -> None:
    """Draw the mean of every action with its interval, against the limit."""
    profile, drawn = signal.profile, list_frequent_actions(signal, MAX_ACTIONS)
    rows_by_action = dict(profile.by_action)
    for place, action in enumerate(drawn):
        rate = signal.rate(rows_by_action[action], LEVEL)
        if rate.rows:
            is_over = isinstance(signal, Cost) and signal.is_broken(rate)
            colour = BAD if is_over else SAFE if action == profile.log.problem.safe_name else GUARDED
            bars = np.maximum([[rate.mean - rate.low], [rate.high - rate.mean]], 0.0)
            axes.errorbar([place], [rate.mean], yerr=bars, fmt="s", markersize=4, color=colour)
    axes.set_xticks(range(len(drawn)), [escape_label(action)[:14] for action in drawn], rotation=35, ha="right")
    format_axes(axes, f"{escape_label(signal.name)} by action", y="mean, 95 %")
    draw_limit(axes, signal)


def draw_months(axes: Any, by_month: MonthlyRates) -> None:
    """Draw the mean of every action in every month against the limit, with the band of the one that moved fastest."""
    signal, rates, movements = by_month.signal, by_month.rates, by_month.list_movements()
    fastest = max(movements, key=lambda one: one.most / one.days).action if movements else None
    first, last = min(rate.start for rate in rates), max(rate.end for rate in rates)
    for action, (colour, dashes) in zip(list_frequent_actions(signal, len(STYLES)), STYLES, strict=False):
        months = [rate for rate in rates if rate.action == action]
        ends = ("low", "mean", "high") if action == fastest else ("mean", "mean", "mean")
        lows, means, highs = ([getattr(rate, end) for rate in months] for end in ends)
        draw_band(axes, [(rate.middle - first) / DAY for rate in months], lows, means, highs, colour, action, dashes)
    band = "" if fastest is None else f", 95 % of {escape_label(fastest)}"
    format_axes(axes, f"{escape_label(signal.name)} by month", "day of the log", f"mean{band}")
    draw_limit(axes, signal)
    at: Any = signal.profile.log.at
    draw_missing(axes, signal, (np.where(np.isfinite(at), at, first) - first) / (last - first), (last - first) / DAY)


def draw_time_course(axes: Any, signal: Signal) -> None:
    """Draw the mean over the log."""
    ranks = signal.profile.time_ranks
    part = assign_parts(ranks)
    rates = {(index + 0.5) / TIME_PARTS: signal.rate(part == index, LEVEL) for index in range(TIME_PARTS)}
    rates = {middle: rate for middle, rate in rates.items() if rate.rows}
    lows, means, highs = ([getattr(rate, end) for rate in rates.values()] for end in ("low", "mean", "high"))
    draw_band(axes, list(rates), lows, means, highs)
    unit = "row" if signal.profile.log.at is None else "time"
    format_axes(axes, f"{escape_label(signal.name)} over the log", f"share of the log, by {unit}", "mean, 95 %")
    draw_missing(axes, signal, ranks, 1.0)


def draw_missing(axes: Any, signal: Signal, places: Floats, length: float) -> None:
    """Draw the share of missing outcomes in each part of the log, on an axis of its own; nothing if none is missing."""
    part = assign_parts(places)
    counts = np.maximum(np.bincount(part, minlength=TIME_PARTS), 1)
    missing = np.bincount(part, np.isnan(signal.values), minlength=TIME_PARTS) / counts
    if missing.any():
        other = axes.twinx()
        other.spines["top"].set_visible(False)
        middles = (np.arange(TIME_PARTS) + 0.5) / TIME_PARTS * length
        other.bar(middles, missing, width=0.8 / TIME_PARTS * length, color=BAD, alpha=0.25)
        other.set(ylabel="share missing", ylim=(0.0, max(1.5 * float(missing.max()), 0.01)))


def assign_parts(places: Floats) -> Any:
    """Return the part of the time axis of every row, from its place in [0, 1]."""
    return np.clip((places * TIME_PARTS).astype(int), 0, TIME_PARTS - 1)


def draw_limit(axes: Any, signal: Signal) -> None:
    if isinstance(signal, Cost):
        draw_limit_line(axes, signal.threshold, signal.name, not signal.at_least)


@dataclass(frozen=True, eq=False)
class LogReport:
    """The report of `check_log`: one finding per check, and the problem that they are about.

    `report["safe_action"]` is the finding of one check.

    Attributes:
        findings: One finding per check, in a fixed order.
        problem: The problem that was checked, as given or as proposed.
        log: The rows that were checked, which are all rows.
        holdout: The rows to learn from: those that a proposal was not chosen from; all rows without a proposal.
        alpha: The probability that a log without a fault contradicts any of the tests.
        tests: How many of the checks are tests; they share alpha equally.
        columns: The column mapping, from names of the problem to columns of the log.
        proposal: What was proposed and why; None if a problem was given.

    Example:
        >>> import numpy as np
        >>> import stagewise as sw
        >>> random = np.random.default_rng(1)
        >>> log = {"action": np.array(["today", "offer"])[random.integers(0, 2, 400)],
        ...        "click": random.random(400) < 0.1, "opt_out": random.random(400) < 0.05}
        >>> report = sw.check_log(log, limits={"opt_out": 0.2})
        >>> report.contradicted, report.problem.safe_name, report.log.rows
        (False, 'today', 400)
    """

    findings: tuple[Finding, ...]
    problem: Problem
    log: Log
    holdout: Log
    alpha: float
    tests: int
    columns: dict[str, str]
    proposal: Proposal | None = None

    @property
    def contradicted(self) -> bool:
        """Whether anything in the log contradicts the problem."""
        return any(finding.verdict is FindingVerdict.CONTRADICTS for finding in self.findings)

    def __getitem__(self, name: str) -> Finding:
        check = check_choice(name, [str(check) for check in CheckName], "the check")
        return next(finding for finding in self.findings if finding.check == check)

    @cached_property
    def profile(self) -> LogProfile:
        """The rows as the checks saw them."""
        return LogProfile(self.log, self.columns)

    @cached_property
    def drift_proposals(self) -> dict[str, DriftProposal]:
        """By limit the drift that the log suggests, with its reason; limits on rates of a log with times have one."""
        found = {cost.name: propose_drift(cost) for cost in self.profile.costs}
        return {name: one for name, one in found.items() if one is not None}

    @cached_property
    def monthly_rates(self) -> dict[str, list[MonthlyRate]]:
        """By signal the mean of every action in every month, with its 95 % band; empty without times."""
        return {signal.name: MonthlyRates(signal).rates for signal in self.profile.signals}

    def to_toml(self) -> str:
        """Return the proposed problem as TOML with comments, which `Problem.load` reads.

        Returns:
            The content of the file.

        Raises:
            InvalidProblem: A problem was given, so there is no proposal.
        """
        if self.proposal is None:
            raise InvalidProblem(
                ErrorCode.UNSUPPORTED, "there is no proposal, because a problem was given; call doctor without one"
            )
        return format_toml(self.proposal)

    def plot(self) -> Any:
        """Plot predictions against outcomes, rates against limits, and rates over time; by month from three months.

        Returns:
            A matplotlib figure.
        """
        return plot_log(self.profile.signals)

    def format_holdout(self, suffix: str) -> bytes:
        """Return the holdout rows as a file, with all columns of the log.

        Args:
            suffix: ".csv", ".parquet" or ".jsonl".

        Returns:
            The content of the file.

        Raises:
            InvalidFile: The suffix is another one.
        """
        return format_table(self.holdout.arrays, suffix)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values.

        Returns:
            `contradicted`, `rows`, `alpha`, `tests`, `findings`, `problem`, `columns`, `drift_proposals`,
            `monthly_rates`, and `proposal` if there is one.
        """
        content: dict[str, Any] = {
            "contradicted": self.contradicted,
            "rows": self.log.rows,
            "alpha": self.alpha,
            "tests": self.tests,
            "findings": [finding.to_dict() for finding in self.findings],
            "problem": self.problem.to_dict(),
            "columns": self.columns,
            "drift_proposals": {name: one.to_dict() for name, one in self.drift_proposals.items()},
            "monthly_rates": {name: [one._asdict() for one in rates] for name, rates in self.monthly_rates.items()},
        }
        if self.proposal is not None:
            content["proposal"] = {
                "split": self.proposal.split.to_dict(),
                "guessed": self.proposal.roles.guessed,
                "reasons": self.proposal.reasons,
            }
        return content

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        drift = [f"{'drift':11}  {message}\n{'':11}  {months}" for message, months in self._drifts()]
        return "\n".join([*map(str, self.findings), *drift, *self._conclusion()])

    def _repr_html_(self) -> str:
        """Return the findings as a notebook shows them."""
        rows = [(str(one.verdict), str(one.check), one.message, one.remedy) for one in self.findings]
        drift = [line for lines in self._drifts() for line in lines]
        return render_html(Columns(("verdict", "check", "finding", "what to do"), rows), *drift, *self._conclusion())

    def _drifts(self) -> list[tuple[str, str]]:
        """Return the proposed drift of every limit, and the months of the action that moved most."""
        lines = []
        for name, proposal in self.drift_proposals.items():
            if name in self.problem.moduli:
                continue
            rates = [one for one in self.monthly_rates[name] if one.action == proposal.movement.action]
            months = ", ".join(map(format_rate, rates))
            lines.append((f"{name!r}: {proposal.message}", f"{name!r} of {rates[0].action!r} by month: {months}"))
        return lines

    def _conclusion(self) -> list[str]:
        """Return the conclusion, and what it relies on."""
        count = sum(finding.verdict is FindingVerdict.CONTRADICTS for finding in self.findings)
        verdict = f"{count} of {len(self.findings)} checks contradict" if count else "nothing contradicts"
        lines = [
            f"{verdict} the problem, in {self.log.rows:,} rows; in a log without a fault the {self.tests} tests "
            f"contradict with a probability of at most {format_number(self.alpha)} in all"
        ]
        if self.proposal is None:
            lines.append(
                "nothing was chosen from these rows; if you change the problem because of them, learn from other rows"
            )
        else:
            split = self.proposal.split
            lines.append(f"the problem is proposed from {int(split.selection.sum()):,} rows: {split.rule}")
        return lines


def format_rate(rate: MonthlyRate) -> str:
    return f"{rate.mean:.3g} ({rate.low:.3g} to {rate.high:.3g})"
