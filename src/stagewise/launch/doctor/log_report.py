"""The report of the doctor: the finding of every check, the proposal, and a conclusion."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stagewise.files.tables import format_table
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.drift_proposal import DriftProposal, MonthlyRate, MonthlyRates, propose_drift
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import CheckName, FindingVerdict
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.problem_proposal import Proposal, format_toml
from stagewise.launch.message_format import format_number
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.html import Columns, render_html


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
        from stagewise.launch.doctor.log_picture import plot_log

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
