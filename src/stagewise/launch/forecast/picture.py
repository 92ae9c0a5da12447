"""A forecast as a picture: gains by day, every limited cost, who gets what, and what each limit costs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.launch.forecast.cases import value_of
from stagewise.launch.forecast.words import in_limits
from stagewise.problem.thresholds import AtLeast, RelativeToSafe
from stagewise.reports.style import GUARDED, SAFE, STYLES, band, level, limit, panels, plain, plain_axes

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast


def drawn(told: "Forecast", most: int = 3) -> Any:
    """Return the figure, at most so many panels beside each other; nothing is shown or saved."""
    several = len(told.outlooks) > 1
    figure, axes = panels(2 + len(told.problem.limits) + several, most)
    gains(axes[0], told)
    for place, name in enumerate(told.problem.limits):
        cost(axes[1 + place], told, name)
    shares(axes[1 + len(told.problem.limits)], told)
    if several:
        prices(axes[-1], told)
    return figure


def days_of(told: "Forecast") -> Any:
    """Return the days, counted from 1."""
    return np.arange(1, told.length.days + 1)


def gains(axes: Any, told: "Forecast") -> None:
    """Draw the reward of a user above the safe action's."""
    days, case = days_of(told), told.declared
    for place, other in enumerate(told.outlooks):
        if other is not case:
            colour, dashes = STYLES[1 + place % (len(STYLES) - 1)]
            axes.plot(days, other.gain.middle, color=colour, linestyle=dashes, linewidth=1.2,
                      label=plain(in_limits(told, other)))  # fmt: skip
    name = f"{in_limits(told, case)}, 90 %"
    band(axes, days, case.gain.low, case.gain.middle, case.gain.high, GUARDED, name)
    level(axes, 0.0, plain(told.problem.safe), SAFE)
    if case.better_from is not None:
        axes.axvline(case.better_from, color=GUARDED, linewidth=0.8, linestyle=":")
        at: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "xytext": (3, 0), "textcoords": "offset points"}
        words = f"better from day {case.better_from}"
        axes.annotate(words, (case.better_from, 0.02), **at, fontsize=8, color=GUARDED)
    plain_axes(axes, f"{plain(told.problem.reward.name)} of a user above {plain(told.problem.safe)}", "day")
    if len(told.outlooks) > 1:
        axes.legend(frameon=False, fontsize=8, loc="upper left")


def cost(axes: Any, told: "Forecast", name: str) -> None:
    """Draw what will be counted of one limited cost."""
    case, declared, days = told.declared, told.problem.limits[name], days_of(told)
    counted, truly = case.costs[name], case.expected[name]
    axes.fill_between(days, counted.low, counted.high, color=SAFE, alpha=0.18, linewidth=0, label="as counted, 90 %")
    band(axes, days, truly.low, truly.middle, truly.high, GUARDED, "truly expected, 90 %")
    plain_axes(axes, f"{plain(name)} of a user", "day")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    if not isinstance(declared.value, RelativeToSafe):
        limit(axes, value_of(declared), name, not isinstance(declared.value, AtLeast))


def shares(axes: Any, told: "Forecast") -> None:
    """Draw which share of users gets what."""
    problem, given = told.problem, told.declared.given
    order = [problem.safe, *(name for name in problem.actions if name != problem.safe)]
    rows = [given[:, list(problem.actions).index(name)] for name in order]
    colours = [SAFE, *(STYLES[place % 7][0] for place in range(len(order) - 1))]
    axes.stackplot(days_of(told), rows, colors=colours, labels=[plain(name) for name in order], alpha=0.85, linewidth=0)
    plain_axes(axes, "which share of users gets what", "day")
    axes.grid(False)
    axes.set(ylim=(0, 1))
    axes.margins(x=0)
    axes.legend(frameon=True, framealpha=0.7, fontsize=8, loc="lower right", reverse=True)


def prices(axes: Any, told: "Forecast") -> None:
    """Draw what a user brings under each of the limits, against the widest."""
    for place, case in enumerate(told.outlooks):
        high, middle, low = (0.0, 0.0, 0.0) if case.price is None else (-float(end) for end in case.price)
        colour = GUARDED if case.case.declared else STYLES[1 + place % (len(STYLES) - 1)][0]
        axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.35, solid_capstyle="butt")
        axes.plot([middle], [place], "o", color=colour)
    axes.set_yticks(range(len(told.outlooks)), [plain(in_limits(told, case)) for case in told.outlooks])
    axes.set_ylim(-0.6, len(told.outlooks) - 0.4)
    plain_axes(axes, "price of each limit, a user", "")
