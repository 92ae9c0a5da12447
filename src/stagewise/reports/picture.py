"""Results as a picture: the reward beside the safe action's, every cost under its limit, regret; bands over runs."""

from collections.abc import Iterator
from typing import Any

from stagewise.kernels.compile import Floats
from stagewise.reports import style
from stagewise.reports.result import Result
from stagewise.reports.style import plain

MOST = 24  # limits; more could not be read
SAME = 1e-12


def drawn(results: dict[str, Result]) -> Any:
    """Return one figure of results in the same world, a colour each; nothing is shown or saved."""
    costs = min(max(result.cost.shape[2] for result in results.values()), MOST)
    figure, panels = style.panels(2 + costs)
    draw_reward(panels[0], results)
    for j, axes in enumerate(panels[1:-1]):
        draw_cost(axes, results, j)
    draw_regret(panels[-1], results)
    style.legend_below(figure, panels[0])
    return figure


def draw_reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw what a round earns, what the safe action would, and the most that was possible."""
    for name, result, colour, dashes in styled(results):
        style.runs_band(axes, result.rounds, result.reward, colour, name, dashes)
    for place, (rounds, most) in enumerate(different(results)):
        axes.plot(rounds, most, color="black", linestyle=":", linewidth=1.2)
        if place == 0:
            style.note(axes, float(most[-1]), "the most possible")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    draw_safe(axes, results, 0)
    style.plain_axes(axes, "reward of a round, expected")
    style.count_rounds(axes)


def draw_cost(axes: Any, results: dict[str, Result], which: int) -> None:
    """Draw a cost of a round, every limit that is set to it, and what the safe action costs."""
    for name, result, colour, dashes in styled(results):
        if which < result.cost.shape[2]:
            style.runs_band(axes, result.rounds, result.cost[:, :, which], colour, name, dashes)
    limits = [list(result.manifest["thresholds"].items())[which : which + 1] for result in results.values()]
    named = list(dict.fromkeys(limit for found in limits for limit in found))
    below = {name for result in results.values() for name in result.manifest.get("at_least", [])}
    draw_safe(axes, results, 1 + which)
    for name, value in named:
        style.limit(axes, value, name, at_most=name not in below)
    style.plain_axes(axes, f"{plain(named[0][0]) if named else f'cost {which + 1}'} of a round, expected")
    style.count_rounds(axes)


def draw_regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw what was lost so far against one who knows the world."""
    from matplotlib.ticker import FuncFormatter

    for name, result, colour, dashes in styled(results):
        style.runs_band(axes, result.rounds, result.regret, colour, name, dashes)
    axes.yaxis.set_major_formatter(FuncFormatter(style.short))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    style.plain_axes(axes, "regret, in all")
    style.count_rounds(axes)


def draw_safe(axes: Any, results: dict[str, Result], signal: int) -> None:
    """Draw what the safe action earns or costs, where there is one and it is known."""
    known = [safe_of(result, signal) for result in results.values()]
    found = next((value for value in known if value is not None), None)
    if found is not None:
        style.level(axes, found, "the safe action")


def safe_of(result: Result, signal: int) -> float | None:
    """Return what the safe action earns (0) or costs (1, 2, …), the mean over runs; None: it is not known."""
    if result.safe is None or signal >= result.safe.shape[1]:
        return None
    mean = float(result.safe[:, signal].mean())
    return mean if mean == mean else None


def styled(results: dict[str, Result]) -> Iterator[tuple[str, Result, str, Any]]:
    """Yield each result with its name, colour and dashes."""
    for place, (name, result) in enumerate(results.items()):
        yield name, result, *style.STYLES[place % len(style.STYLES)]


def different(results: dict[str, Result]) -> Iterator[tuple[Any, Floats]]:
    """Yield rounds and the most possible of each result that is not as one before: it depends on limits and mixing."""
    kept: list[Floats] = []
    for result in results.values():
        most = result.optimum.mean(axis=0)
        if not any(most.shape == other.shape and abs(most - other).max() < SAME for other in kept):
            kept.append(most)
            yield result.rounds, most
