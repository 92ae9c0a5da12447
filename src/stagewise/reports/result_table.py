"""Format several results as one table."""

from stagewise.reports.result import Result, get_lower_limits, standard_error
from stagewise.reports.result_plot import get_safe_mean


def format_table(results: dict[str, Result]) -> str:
    """Return a Markdown table: regret with its standard error, worst costs, violations, reward at the end."""
    lines = [
        "| policy | regret | ± | worst cost | violating rounds | reward at the end / safe action | / optimum |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        last = result.regret[:, -1]
        error = standard_error(last)
        worst = zip(result.max_cost.T, get_lower_limits(result), strict=True)
        costs = ", ".join(f"{column.min() if is_lower else column.max():.4f}" for column, is_lower in worst)
        reward, safe = result.reward[:, -1].mean(), get_safe_mean(result, 0)
        optimum = result.optimum[:, -1].mean()
        share = f"{reward / optimum:.3f}" if optimum else "–"  # nothing was possible
        reward_text = f"{reward:.4g} / {safe:.4g}" if safe is not None else f"{reward:.4g}"
        violating = int(result.violations.sum())
        lines.append(
            f"| {name} | {last.mean():,.1f} | {error:,.1f} | {costs} | {violating} | {reward_text} | {share} |"
        )
    return "\n".join(lines) + "\n"
