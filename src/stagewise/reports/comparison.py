"""Several results side by side: one table, one picture."""

from typing import Any

from stagewise.reports.picture import plain
from stagewise.reports.result import Result, standard_error

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def tabled(results: dict[str, Result]) -> str:
    """Return a Markdown table: regret with its standard error, largest costs, violations, share of the optimum."""
    lines = [
        "| policy | regret | ± | largest cost | violating rounds | reward at the end / optimum |",
        "|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        last = result.regret[:, -1]
        error = standard_error(last)
        costs = ", ".join(f"{cost:.4f}" for cost in result.max_cost.max(axis=0))
        share = result.reward[:, -1].mean() / result.optimum[:, -1].mean()
        lines.append(
            f"| {name} | {last.mean():,.1f} | {error:,.1f} | {costs} | {int(result.violations.sum())} | {share:.3f} |"
        )
    return "\n".join(lines) + "\n"


def drawn(results: dict[str, Result]) -> Any:
    """Return a figure: regret and the first cost of every policy over the rounds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (name, result) in enumerate(results.items()):
        colour = COLOURS[place % len(COLOURS)]
        left.plot(result.rounds, result.regret.mean(axis=0), color=colour, label=plain(name))
        if result.cost.shape[2]:
            right.plot(result.rounds, result.cost[:, :, 0].mean(axis=0), color=colour)
    limits = [value for result in results.values() for value in list(result.manifest["thresholds"].values())[:1]]
    if limits:
        right.axhline(limits[0], color="black", linestyle="--", linewidth=1, label="threshold")
        right.legend(frameon=False)
    left.set(title="regret", xlabel="round")
    right.set(title="expected cost of a round", xlabel="round")
    left.legend(frameon=False)
    return figure
