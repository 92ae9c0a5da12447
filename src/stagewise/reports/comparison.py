"""Several results side by side: one table, one picture."""

from typing import Any

from stagewise.reports import style
from stagewise.reports.picture import drawn_together, safe_of
from stagewise.reports.result import Result, standard_error

COLOURS = tuple(colour for colour, _ in style.STYLES)


def tabled(results: dict[str, Result]) -> str:
    """Return a Markdown table: regret with its standard error, largest costs, violations, reward at the end."""
    lines = [
        "| policy | regret | ± | largest cost | violating rounds | reward at the end / safe action | / optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        last = result.regret[:, -1]
        error = standard_error(last)
        costs = ", ".join(f"{cost:.4f}" for cost in result.max_cost.max(axis=0))
        reward, safe = result.reward[:, -1].mean(), safe_of(result, 0)
        share = reward / result.optimum[:, -1].mean()
        beside = f"{reward:.4g} / {safe:.4g}" if safe is not None else f"{reward:.4g}"
        broken = int(result.violations.sum())
        lines.append(f"| {name} | {last.mean():,.1f} | {error:,.1f} | {costs} | {broken} | {beside} | {share:.3f} |")
    return "\n".join(lines) + "\n"


def drawn(results: dict[str, Result]) -> Any:
    """Return a figure: every policy's reward beside the safe action's, its costs under every limit, and its regret."""
    return drawn_together(results)
