"""The report of the doctor: the finding of every check, the proposal, a conclusion, and a plot of the log."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.files.tables import format_table
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.drift_proposal import DriftProposal, MonthlyRate, MonthlyRates, propose_drift
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import CheckName, FindingVerdict
from stagewise.launch.doctor.log_profile import DECILES, Cost, LogProfile, Signal, assign_deciles
from stagewise.launch.doctor.problem_proposal import Proposal, format_toml
from stagewise.launch.message_format import format_number
from stagewise.launch.statistics import KL_INTERVAL
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice
from stagewise.problem.drift import DAY
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.html import build_page, build_table
from stagewise.reports.plot_style import (
    BAD,
    GUARDED,
    SAFE,
    STYLES,
    draw_band,
    draw_limit_line,
    escape_label,
    format_axes,
    make_figure,
)

LEVEL = 0.05  # error probability of a drawn interval
DECILE_NATS = 3.0  # log of 1/level of a decile's interval: about 95 %
TIME_PARTS = 12  # parts of the log on the time axis
MAX_ACTIONS = 24  # the most frequent actions are drawn


@dataclass(frozen=True, eq=False)
class LogReport:
    """The report of `doctor`: one finding per check, and the problem that they are about.

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
        >>> report = sw.doctor(log, limits={"opt_out": 0.2})
        >>> report.contradicted, report.problem.safe, report.log.rows
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
        """Plot calibration, rates against limits, the course of every signal, and its means by month.

        Returns:
            A matplotlib figure.
        """
        signals = self.profile.signals
        figure, grid = make_figure(3 + bool(any(self.monthly_rates.values())), len(signals), height=2.7)
        for column, signal in enumerate(signals):
            draw_calibration(grid[0, column], signal)
            draw_actions(grid[1, column], signal)
            draw_time_course(grid[2, column], signal)
            if len(grid) > 3:
                draw_months(grid[3, column], signal, self.monthly_rates[signal.name])
        return figure

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
        return "\n".join([*map(str, self.findings), *self._drift_lines(), *self._conclusion()])

    def _repr_html_(self) -> str:
        """Return the findings as HTML, for notebooks."""
        rows = [[str(one.verdict), str(one.check), one.message, one.remedy] for one in self.findings]
        found = build_table(["verdict", "check", "finding", "what to do"], rows, texts=4)
        months = [part for name, rates in self.monthly_rates.items() if rates for part in build_months(name, rates)]
        drifts = [f"{name}: {one.message}" for name, one in self.drift_proposals.items()]
        return build_page(found, *months, *drifts, *self._conclusion())

    def _drift_lines(self) -> list[str]:
        """Return the proposed drift of every limit, with the months of the action that moved most."""
        lines = []
        for name, proposal in self.drift_proposals.items():
            if name in self.problem.moduli:
                continue
            lines.append(f"{'drift':11}  {name!r}: {proposal.message}")
            rates = [one for one in self.monthly_rates[name] if one.action == proposal.movement.action]
            lines.append(f"{'':11}  {name!r} of {rates[0].action!r} by month: {', '.join(map(format_rate, rates))}")
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
    """Return a month's rate with its band."""
    return f"{rate.mean:.3g} ({rate.low:.3g} to {rate.high:.3g})"


def build_months(name: str, rates: list[MonthlyRate]) -> tuple[str, str]:
    """Return a heading and the table of a limit's rates, a row for each month."""
    actions, starts = list(dict.fromkeys(one.action for one in rates)), sorted({one.start for one in rates})
    cells = {(one.start, one.action): format_rate(one) for one in rates}
    rows = [[format_date(start), *(cells.get((start, action), "–") for action in actions)] for start in starts]
    return f"{name} by month, 95 %", build_table(["from", *actions], rows)


def format_date(seconds: float) -> str:
    """Return the day of a time; a number where it is none since 1970.

    >>> format_date(1.7e9)
    '2023-11-14'
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"


def draw_months(axes: Any, signal: Signal, rates: list[MonthlyRate]) -> None:
    """Draw the mean of every action by month with its band, those with most rows, and the limit."""
    first, rows = min((one.start for one in rates), default=0.0), Counter[str]()
    for one in rates:
        rows[one.action] += one.rows
    for index, (action, _) in enumerate(rows.most_common(len(STYLES))):
        its, (colour, dashes) = [one for one in rates if one.action == action], STYLES[index]
        days = [(one.middle - first) / DAY for one in its]
        lows, means, highs = ([getattr(one, end) for one in its] for end in ("low", "mean", "high"))
        draw_band(axes, days, lows, means, highs, colour, action, dashes)
    title = f"{escape_label(signal.name)} by month"
    format_axes(axes, title if len(rows) <= len(STYLES) else f"{title}, {len(STYLES)} actions", "day", "mean, 95 %")
    if rows:
        axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=3)
    if isinstance(signal, Cost):
        draw_limit_line(axes, signal.threshold, signal.name, not signal.at_least)


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


def draw_actions(axes: Any, signal: Signal) -> None:
    """Draw the mean of every action with its interval, against the limit."""
    profile, problem = signal.profile, signal.profile.log.problem
    counts = np.bincount(profile.log.actions[profile.known], minlength=len(profile.by_action))
    drawn = [profile.by_action[index] for index in sorted(np.argsort(-counts, kind="stable")[:MAX_ACTIONS].tolist())]
    for place, (action, rows) in enumerate(drawn):
        rate = signal.rate(rows, LEVEL)
        if rate.rows:
            is_over = isinstance(signal, Cost) and signal.is_broken(rate)
            colour = BAD if is_over else SAFE if action == problem.safe else GUARDED
            bars = np.maximum([[rate.mean - rate.low], [rate.high - rate.mean]], 0.0)
            axes.errorbar([place], [rate.mean], yerr=bars, fmt="s", markersize=4, color=colour)
    axes.set_xticks(range(len(drawn)), [escape_label(action)[:14] for action, _ in drawn], rotation=35, ha="right")
    format_axes(axes, f"{escape_label(signal.name)} by action", y="mean, 95 %")
    if isinstance(signal, Cost):
        draw_limit_line(axes, signal.threshold, signal.name, not signal.at_least)


def draw_time_course(axes: Any, signal: Signal) -> None:
    """Draw the mean over time, and the share of missing values."""
    profile = signal.profile
    part = np.minimum((profile.time_ranks * TIME_PARTS).astype(int), TIME_PARTS - 1)
    rates = {(index + 0.5) / TIME_PARTS: signal.rate(part == index, LEVEL) for index in range(TIME_PARTS)}
    rates = {middle: rate for middle, rate in rates.items() if rate.rows}
    lows, means, highs = ([getattr(rate, end) for rate in rates.values()] for end in ("low", "mean", "high"))
    draw_band(axes, list(rates), lows, means, highs)
    unit = "row" if profile.log.at is None else "time"
    format_axes(axes, f"{escape_label(signal.name)} over the log", f"share of the log, by {unit}", "mean, 95 %")
    counts = np.maximum(np.bincount(part, minlength=TIME_PARTS), 1)
    missing = np.bincount(part, np.isnan(signal.values), minlength=TIME_PARTS) / counts
    if missing.any():
        other = axes.twinx()
        other.spines["top"].set_visible(False)
        other.bar((np.arange(TIME_PARTS) + 0.5) / TIME_PARTS, missing, width=0.8 / TIME_PARTS, color=BAD, alpha=0.25)
        other.set(ylabel="share missing", ylim=(0.0, max(1.5 * float(missing.max()), 0.01)))
