"""A forecast as a picture: gains by day, every limited cost, who gets what, and what each limit costs."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.launch.forecast.cases import value_of
from stagewise.launch.forecast.words import in_limits
from stagewise.reports.style import GUARDED, SAFE, STYLES, band, halo, level, limit, panels, plain, plain_axes

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

MOST = 6  # cases whose gains are drawn beside each other
WIDE = 32  # letters of a title
SHORT = 24  # of a name within a panel
UNDER = 34  # points from a panel down to its legend: ticks and "day" stand between


def drawn(told: "Forecast", most: int = 3) -> Any:
    """Return the figure, at most so many panels beside each other; nothing is shown or saved."""
    several = len(told.outlooks) > 1
    figure, axes = panels(2 + len(told.problem.limits) + several, most, height=3.0)
    gains(axes[0], told)
    for place, name in enumerate(told.problem.limits):
        cost(axes[1 + place], told, name)
    shares(axes[1 + len(told.problem.limits)], told)
    if several:
        prices(axes[-1], told)
    return figure


def days_of(told: "Forecast", axes: Any) -> Any:
    """Return the days, counted from 1, of an axis that counts them."""
    axes.xaxis.get_major_locator().set_params(integer=True)
    return np.arange(1, told.length.days + 1)


def gains(axes: Any, told: "Forecast") -> None:
    """Draw the reward of a user above the safe action's."""
    days, case = days_of(told, axes), told.declared
    for place, other in enumerate(told.outlooks):
        if other is not case and len(told.outlooks) <= MOST:
            colour, dashes = STYLES[1 + place % (len(STYLES) - 1)]
            axes.plot(days, other.gain.middle, color=colour, linestyle=dashes, linewidth=1.2,
                      label=plain(in_limits(told, other, WIDE)))  # fmt: skip
    name = f"{in_limits(told, case, WIDE - 6)}, 90 %"
    band(axes, days, case.gain.low, case.gain.middle, case.gain.high, GUARDED, name)
    level(axes, 0.0, plain(shorten(told.problem.safe)), SAFE)
    title = [f"{told.problem.reward.name} of a user above {shorten(told.problem.safe)}"]
    if case.better_from is not None:
        axes.axvline(case.better_from, color=GUARDED, linewidth=0.8, linestyle=":")
        title.append(f"better from day {case.better_from}")
    plain_axes(axes, in_lines(*title), "day")
    legend_under(axes, 2)


def cost(axes: Any, told: "Forecast", name: str) -> None:
    """Draw what a user is expected to cost, which the limit is on; lightly, what a day may count around that."""
    case, declared, days = told.declared, told.problem.limits[name], days_of(told, axes)
    counted, expected = case.costs[name], case.expected[name]
    band(axes, days, expected.low, expected.middle, expected.high, GUARDED, "expected, which the limit is on, 90 %")
    axes.fill_between(days, counted.low, counted.high, color=SAFE, alpha=0.09, linewidth=0, zorder=0,
                      label="counted in a day, by chance around it, 90 %")  # fmt: skip
    plain_axes(axes, in_lines(f"expected {name} of a user"), "day")
    legend_under(axes, 1)
    if not declared.parts.relative:
        limit(axes, value_of(declared), shorten(name), not declared.at_least)


def shares(axes: Any, told: "Forecast") -> None:
    """Draw which share of users gets what."""
    problem, given = told.problem, told.declared.given
    order = [problem.safe, *(name for name in problem.actions if name != problem.safe)]
    rows = [given[:, list(problem.actions).index(name)] for name in order]
    colours = [SAFE, *(STYLES[place % 7][0] for place in range(len(order) - 1))]
    axes.stackplot(
        days_of(told, axes),
        rows,
        colors=colours,
        labels=[plain(shorten(name)) for name in order],
        alpha=0.85,
        linewidth=0,
    )
    plain_axes(axes, "which share of users gets what", "day")
    axes.grid(False)
    axes.set(ylim=(0, 1))
    axes.margins(x=0)
    legend_under(axes, 3)


def prices(axes: Any, told: "Forecast") -> None:
    """Draw what a user brings under each of the limits, against the widest."""
    for place, case in enumerate(told.outlooks):
        high, middle, low = (0.0, 0.0, 0.0) if case.price is None else (-float(end) for end in case.price)
        colour = GUARDED if case.case.declared else STYLES[1 + place % (len(STYLES) - 1)][0]
        axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.35, solid_capstyle="butt")
        axes.plot([middle], [place], "o", color=colour)
        words = in_limits(told, case, WIDE - 9) + (", the widest" if case.price is None else "")
        axes.annotate(plain(words), (0.02, place + 0.12), xycoords=("axes fraction", "data"), fontsize=8,
                      path_effects=halo())  # fmt: skip
    axes.set_yticks([])
    axes.set_ylim(-0.4, len(told.outlooks) - 0.4)
    axes.margins(x=0.08)
    plain_axes(axes, in_lines(f"{told.problem.reward.name} of a user", "against the widest limits"), "")


def in_lines(*parts: str) -> str:
    r"""Return a title that a panel has room for, each part in lines of its own.

    >>> in_lines("reward of a user against the widest of all limits", "by day")
    'reward of a user against the\nwidest of all limits\nby day'
    """
    return "\n".join(plain(line) for part in parts for line in wrap(part, WIDE))


def shorten(name: str) -> str:
    """Return a name that a panel has room for beside something else."""
    return name if len(name) <= SHORT else name[: SHORT - 1] + "…"


def legend_under(axes: Any, columns: int) -> None:
    """Name what is drawn under a panel, where names cover nothing: in so many columns, or in those that fit."""
    from matplotlib.transforms import ScaledTranslation

    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    below = ScaledTranslation(0.0, -UNDER / 72.0, axes.figure.dpi_scale_trans)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0),
                bbox_transform=axes.transAxes + below, ncols=max(min(columns, 50 // (longest + 6)), 1),
                columnspacing=1.0, handlelength=1.8, borderaxespad=0.0)  # fmt: skip
