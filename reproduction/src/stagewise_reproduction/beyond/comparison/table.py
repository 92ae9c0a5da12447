"""The comparison as a table: regret with its standard error, runs and rounds over a limit, microseconds a round."""

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES

HEADS = ("policy", "regret", "±", "runs over a limit", "rounds over a limit", "µs a round")


def tabled(results: dict[str, Result]) -> str:
    """Return Markdown, one table a family."""
    lines = []
    for family, about in FAMILIES.items():
        own = [result for result in results.values() if result.manifest["cell"]["family"] == family]
        rounds, runs = int(own[0].rounds[-1]), len(own[0].runs)
        lines += ["", f"### {family}", "", f"{about.words}; {runs} runs of {rounds:,} rounds.", ""]
        lines += [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
        lines += [row(result) for result in own]
    return "\n".join(lines[1:]) + "\n"


def row(result: Result) -> str:
    """Return one policy's line."""
    last = result.regret[:, -1]
    error = last.std(ddof=1) / np.sqrt(len(last))
    seconds = float(np.median(result.manifest["seconds_of_runs"]))
    over, broken, rounds = int((result.violations > 0).sum()), int(result.violations.sum()), int(result.rounds[-1])
    name, time = result.manifest["cell"]["policy"], sized(1e6 * seconds / rounds)
    return f"| {name} | {last.mean():,.1f} | {error:,.1f} | {over} | {broken:,} | {time} |"


def sized(value: float) -> str:
    """Return a number with about two digits.

    >>> sized(0.2345), sized(5123.4)
    ('0.23', '5,123')
    """
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"
