"""Several results side by side, in one table."""

from stagewise.reports.picture import safe_of
from stagewise.reports.result import Result, floors, standard_error


def tabled(results: dict[str, Result]) -> str:
    """Return a Markdown table: regret with its standard error, worst costs, violations, reward at the end."""
    lines = [
        "| policy | regret | ± | worst cost | violating rounds | reward at the end / safe action | / optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        last = result.regret[:, -1]
        error = standard_error(last)
        worst = zip(result.max_cost.T, floors(result), strict=True)
        costs = ", ".join(f"{column.min() if floor else column.max():.4f}" for column, floor in worst)
        reward, safe = result.reward[:, -1].mean(), safe_of(result, 0)
        most = result.optimum[:, -1].mean()
        share = f"{reward / most:.3f}" if most else "–"  # nothing was possible
        beside = f"{reward:.4g} / {safe:.4g}" if safe is not None else f"{reward:.4g}"
        broken = int(result.violations.sum())
        lines.append(f"| {name} | {last.mean():,.1f} | {error:,.1f} | {costs} | {broken} | {beside} | {share} |")
    return "\n".join(lines) + "\n"
