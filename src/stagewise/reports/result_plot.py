"""Results as a plot (reward, costs beside limits and regret, with bands over runs) and as a table."""

from collections.abc import Iterator
from typing import Any

from stagewise.engine.compile import Floats
from stagewise.reports import plot_style
from stagewise.reports.plot_style import escape_label
from stagewise.reports.result import Result, get_lower_limits, standard_error

MAX_LIMITS = 24  # more panels could not be read
TOLERANCE = 1e-12


def plot_results(results: dict[str, Result]) -> Any:
    """Return one figure of results in the same world, one colour each."""
    costs = min(max(result.cost.shape[2] for result in results.values()), MAX_LIMITS)
    figure, panels = plot_style.make_panels(2 + costs)
    draw_reward(panels[0], results)
    for j, axes in enumerate(panels[1:-1]):
        draw_cost(axes, results, j)
    draw_regret(panels[-1], results)
    plot_style.add_legend_below(figure, panels[0])
    return figure


def draw_reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw the reward of a round, the safe action's and the optimum."""
    for name, result, colour, dashes in iterate_styles(results):
        plot_style.draw_runs_band(axes, result.rounds, result.reward, colour, name, dashes)
    for index, (rounds, optimum) in enumerate(iterate_distinct_optima(results)):
        axes.plot(rounds, optimum, color="black", linestyle=":", linewidth=1.2)
        if index == 0:
            plot_style.annotate_line(axes, float(optimum[-1]), "optimum")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    draw_safe(axes, results, 0)
    plot_style.format_axes(axes, "reward of a round, expected")
    plot_style.format_round_axis(axes)


def draw_cost(axes: Any, results: dict[str, Result], cost: int) -> None:
    """Draw a cost of a round, its limits and the safe action's cost."""
    for name, result, colour, dashes in iterate_styles(results):
        if cost < result.cost.shape[2]:
            plot_style.draw_runs_band(axes, result.rounds, result.cost[:, :, cost], colour, name, dashes)
    limits = [list(result.manifest["thresholds"].items())[cost : cost + 1] for result in results.values()]
    named = list(dict.fromkeys(limit for group in limits for limit in group))
    lower = {name for result in results.values() for name in result.manifest.get("at_least", [])}
    draw_safe(axes, results, 1 + cost)
    for name, value in named:
        plot_style.draw_limit_line(axes, value, name, at_most=name not in lower)
    plot_style.format_axes(axes, f"{escape_label(named[0][0]) if named else f'cost {cost + 1}'} of a round, expected")
    plot_style.format_round_axis(axes)


def draw_regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw the cumulative regret against the oracle."""
    from matplotlib.ticker import FuncFormatter

    for name, result, colour, dashes in iterate_styles(results):
        plot_style.draw_runs_band(axes, result.rounds, result.regret, colour, name, dashes)
    axes.yaxis.set_major_formatter(FuncFormatter(plot_style.format_count))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    plot_style.format_axes(axes, "cumulative regret")
    plot_style.format_round_axis(axes)


def draw_safe(axes: Any, results: dict[str, Result], signal: int) -> None:
    """Draw the safe action's mean, if it is known."""
    known = [get_safe_mean(result, signal) for result in results.values()]
    mean = next((value for value in known if value is not None), None)
    if mean is not None:
        plot_style.draw_reference_line(axes, mean, "the safe action")


def get_safe_mean(result: Result, signal: int) -> float | None:
    """Return the safe action's mean reward (0) or cost (1, 2, …) over runs; None: unknown."""
    if result.safe is None or signal >= result.safe.shape[1]:
        return None
    mean = float(result.safe[:, signal].mean())
    return mean if mean == mean else None


def iterate_styles(results: dict[str, Result]) -> Iterator[tuple[str, Result, str, Any]]:
    """Yield each result with its name, colour and dashes."""
    for index, (name, result) in enumerate(results.items()):
        yield name, result, *plot_style.STYLES[index % len(plot_style.STYLES)]


def iterate_distinct_optima(results: dict[str, Result]) -> Iterator[tuple[Any, Floats]]:
    """Yield rounds and optimum of each result, without repeats; the optimum depends on limits and mixing."""
    kept: list[Floats] = []
    for result in results.values():
        optimum = result.optimum.mean(axis=0)
        if not any(optimum.shape == other.shape and abs(optimum - other).max() < TOLERANCE for other in kept):
            kept.append(optimum)
            yield result.rounds, optimum


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
