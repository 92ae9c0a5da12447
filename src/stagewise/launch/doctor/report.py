"""What the doctor says: a line for every check, the proposal, and what all of it rests on."""

import json
from dataclasses import dataclass
from typing import Any

from stagewise.files.written_tables import written_table
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.finding import Finding, said
from stagewise.launch.doctor.proposing.proposal import Proposal
from stagewise.launch.doctor.proposing.toml import toml_of
from stagewise.launch.log import Log
from stagewise.policies.problem import Problem
from stagewise.records.html import html_table, page_of


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The findings on one log, and the problem that they are about."""

    findings: tuple[Finding, ...]
    """One for each check, in a fixed order."""
    problem: Problem
    """What the log was held against: as given, or as proposed."""
    log: Log
    """The rows that were looked at, which are all: looking chooses nothing."""
    rest: Log
    """The rows to learn from: those that a proposal was not chosen from; all, where nothing was chosen."""
    alpha: float
    """The chance that a log without a fault is contradicted by any of the tests."""
    tests: int
    """How many of the checks are tests, which share alpha alike."""
    names: dict[str, str]
    """The columns that have another name in the problem."""
    proposal: Proposal | None = None
    """Where no problem was given: what was chosen, and why."""

    @property
    def contradicted(self) -> bool:
        """Whether anything in the log contradicts the problem."""
        return any(finding.verdict == "contradicts" for finding in self.findings)

    def __getitem__(self, name: str) -> Finding:
        return next(finding for finding in self.findings if finding.name == name)

    def toml(self) -> str:
        """Return the proposed problem as the file that `Problem.load` reads."""
        assert self.proposal is not None
        return toml_of(self.proposal)

    def draw(self) -> Any:
        """Return a figure: calibration, rates against limits, and what moved or is missing."""
        from stagewise.launch.doctor.picture import drawn

        return drawn(Chart(self.log, self.names))

    def rest_as(self, suffix: str) -> bytes:
        """Return the rows to learn from as a .csv, .parquet or .jsonl file, all columns of the log as they were."""
        return written_table(self.rest.arrays, suffix)

    def rest_as_csv(self) -> str:
        """Return the rows to learn from as CSV."""
        return self.rest_as(".csv").decode()

    def plain(self) -> dict[str, Any]:
        """Return plain values, as JSON holds them."""
        told: dict[str, Any] = {
            "contradicted": self.contradicted,
            "rows": self.log.rows,
            "alpha": self.alpha,
            "tests": self.tests,
            "findings": [finding.plain() for finding in self.findings],
            "problem": self.problem.plain(),
            "names": self.names,
        }
        if self.proposal is not None:
            told["proposal"] = {
                "split": self.proposal.split.plain(),
                "guessed": self.proposal.roles.guessed,
                "reasons": self.proposal.reasons,
            }
        return told

    def json(self) -> str:
        """Return `plain()` as text."""
        return json.dumps(self.plain(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.findings), *self._conclusion()])

    def _repr_html_(self) -> str:
        """Return the findings as a notebook shows them."""
        rows = [[one.verdict, one.name, one.sentence, one.remedy] for one in self.findings]
        return page_of(html_table(["verdict", "check", "finding", "what to do"], rows, texts=4), *self._conclusion())

    def _conclusion(self) -> list[str]:
        """Return what all findings come to, and what that rests on."""
        wrong = sum(finding.verdict == "contradicts" for finding in self.findings)
        verdict = f"{wrong} of {len(self.findings)} checks contradict" if wrong else "nothing contradicts"
        lines = [
            f"{verdict} the problem, in {self.log.rows:,} rows; in a log without a fault the {self.tests} tests among "
            f"them raise an alarm with a chance of at most {said(self.alpha)} in all"
        ]
        if self.proposal is None:
            lines.append(
                "nothing was chosen from these rows; what you change because of them should be learned from other rows"
            )
        else:
            split = self.proposal.split
            lines.append(f"the problem is proposed from {int(split.chosen_from.sum()):,} rows: {split.words}")
        return lines
