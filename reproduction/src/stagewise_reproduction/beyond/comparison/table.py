"""The comparison as a table: regret with its standard error, violations, and time per round."""

from collections.abc import Mapping

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, Family

HEADINGS = ("policy", "regret", "±", "runs over a limit", "rounds over a limit", "µs a round")


def build_tables(results: dict[str, Result], families: Mapping[str, Family] = FAMILIES) -> str:
    """Return Markdown, one table per family."""
    lines = []
    for family, family_spec in families.items():
        family_results = [result for result in results.values() if result.manifest["cell"]["family"] == family]
        rounds, runs = int(family_results[0].rounds[-1]), len(family_results[0].runs)
        lines += ["", f"### {family}", "", f"{family_spec.words}; {runs} runs of {rounds:,} rounds.", ""]
        lines += [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
        lines += [build_row(result) for result in family_results]
    return "\n".join(lines[1:]) + "\n"


def describe_families(name: str, families: Mapping[str, Family] = FAMILIES) -> str:
    """Return the words of an experiment over families of problems."""
    problems = "; ".join(f"{family}: {family_spec.words}" for family, family_spec in families.items())
    count = f"{len(families)} families of problems, δ = .01: {problems}"
    return f"{count}. Whiskers: one standard error over runs. {name}.md has the microseconds a round."


def build_row(result: Result) -> str:
    """Return the row of one policy."""
    last = result.regret[:, -1]
    error = last.std(ddof=1) / np.sqrt(len(last))
    seconds = float(np.median(result.manifest["seconds_of_runs"]))
    runs_over, rounds_over, rounds = (
        int((result.violations > 0).sum()),
        int(result.violations.sum()),
        int(result.rounds[-1]),
    )
    name, time = result.manifest["cell"]["policy"], format_digits(1e6 * seconds / rounds)
    return f"| {name} | {last.mean():,.1f} | {error:,.1f} | {runs_over} | {rounds_over:,} | {time} |"


def format_digits(value: float) -> str:
    """Return a number with about two digits.

    >>> format_digits(0.2345), format_digits(5123.4)
    ('0.23', '5,123')
    """
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"
