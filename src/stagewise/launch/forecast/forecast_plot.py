"""Plot a forecast: gains by day, costs beside limits, action shares, and what each limit costs."""

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.launch.forecast.cases import get_limit_value
from stagewise.launch.forecast.forecast_text import format_case_limits
from stagewise.reports.plot_style import (
    GUARDED,
    SAFE,
    STYLES,
    draw_band,
    draw_limit_line,
    draw_reference_line,
    escape_label,
    format_axes,
    make_panels,
    make_text_outline,
)

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

MAX_CASES = 6  # cases whose gains are drawn in one panel
TITLE_WIDTH = 32  # letters
NAME_WIDTH = 24  # letters of a name within a panel
LEGEND_OFFSET = 34  # points from a panel down to its legend, below ticks and label


def plot_forecast(forecast: "Forecast", most: int = 3) -> Any:
    """Return the figure, with at most `most` panels in a row."""
    several = len(forecast.case_forecasts) > 1
    figure, axes = make_panels(2 + len(forecast.problem.limits) + several, most, height=3.0)
    draw_gains(axes[0], forecast)
    for index, name in enumerate(forecast.problem.limits):
        draw_cost(axes[1 + index], forecast, name)
    draw_shares(axes[1 + len(forecast.problem.limits)], forecast)
    if several:
        draw_prices(axes[-1], forecast)
    return figure


def get_days(forecast: "Forecast", axes: Any) -> Any:
    """Return the days, counted from 1, and make the axis count whole days."""
    axes.xaxis.get_major_locator().set_params(integer=True)
    return np.arange(1, forecast.horizon.days + 1)


def draw_gains(axes: Any, forecast: "Forecast") -> None:
    """Draw the reward per user above the safe action's."""
    days, case = get_days(forecast, axes), forecast.declared
    for index, other in enumerate(forecast.case_forecasts):
        if other is not case and len(forecast.case_forecasts) <= MAX_CASES:
            colour, dashes = STYLES[1 + index % (len(STYLES) - 1)]
            axes.plot(days, other.gain.middle, color=colour, linestyle=dashes, linewidth=1.2,
                      label=escape_label(format_case_limits(forecast, other, TITLE_WIDTH)))  # fmt: skip
    name = f"{format_case_limits(forecast, case, TITLE_WIDTH - 6)}, 90 %"
    draw_band(axes, days, case.gain.low, case.gain.middle, case.gain.high, GUARDED, name)
    draw_reference_line(axes, 0.0, escape_label(shorten_name(forecast.problem.safe)), SAFE)
    title = [f"{forecast.problem.reward.name} per user above {shorten_name(forecast.problem.safe)}"]
    if case.better_from is not None:
        axes.axvline(case.better_from, color=GUARDED, linewidth=0.8, linestyle=":")
        title.append(f"better from day {case.better_from}")
    format_axes(axes, wrap_title(*title), "day")
    add_legend_under(axes, 2)


def draw_cost(axes: Any, forecast: "Forecast", name: str) -> None:
    """Draw the expected cost per user, which the limit applies to, and lightly the observed cost of a day."""
    case, declared, days = forecast.declared, forecast.problem.limits[name], get_days(forecast, axes)
    observed, expected = case.costs[name], case.expected_costs[name]
    draw_band(axes, days, expected.low, expected.middle, expected.high, GUARDED, "expected, which is limited, 90 %")
    axes.fill_between(days, observed.low, observed.high, color=SAFE, alpha=0.09, linewidth=0, zorder=0,
                      label="observed in a day, 90 %")  # fmt: skip
    format_axes(axes, wrap_title(f"expected {name} per user"), "day")
    add_legend_under(axes, 1)
    if not declared.parts.relative:
        draw_limit_line(axes, get_limit_value(declared), shorten_name(name), not declared.at_least)


def draw_shares(axes: Any, forecast: "Forecast") -> None:
    """Draw the share of users by action."""
    problem, shares = forecast.problem, forecast.declared.action_shares
    order = [problem.safe, *(name for name in problem.actions if name != problem.safe)]
    rows = [shares[:, list(problem.actions).index(name)] for name in order]
    colours = [SAFE, *(STYLES[index % 7][0] for index in range(len(order) - 1))]
    axes.stackplot(
        get_days(forecast, axes),
        rows,
        colors=colours,
        labels=[escape_label(shorten_name(name)) for name in order],
        alpha=0.85,
        linewidth=0,
    )
    format_axes(axes, "share of users by action", "day")
    axes.grid(False)
    axes.set(ylim=(0, 1))
    axes.margins(x=0)
    add_legend_under(axes, 3)


def draw_prices(axes: Any, forecast: "Forecast") -> None:
    """Draw the reward per user under each of the limits, against the widest."""
    for index, case in enumerate(forecast.case_forecasts):
        high, middle, low = (0.0, 0.0, 0.0) if case.price is None else (-float(end) for end in case.price)
        colour = GUARDED if case.case.declared else STYLES[1 + index % (len(STYLES) - 1)][0]
        axes.plot([low, high], [index, index], color=colour, linewidth=3, alpha=0.35, solid_capstyle="butt")
        axes.plot([middle], [index], "o", color=colour)
        label = format_case_limits(forecast, case, TITLE_WIDTH - 9) + (", the widest" if case.price is None else "")
        axes.annotate(escape_label(label), (0.02, index + 0.12), xycoords=("axes fraction", "data"), fontsize=8,
                      path_effects=make_text_outline())  # fmt: skip
    axes.set_yticks([])
    axes.set_ylim(-0.4, len(forecast.case_forecasts) - 0.4)
    axes.margins(x=0.08)
    format_axes(axes, wrap_title(f"{forecast.problem.reward.name} per user", "against the widest limits"), "")


def wrap_title(*parts: str) -> str:
    r"""Return a title that fits a panel, each part in its own lines.

    >>> wrap_title("reward of a user against the widest of all limits", "by day")
    'reward of a user against the\nwidest of all limits\nby day'
    """
    return "\n".join(escape_label(line) for part in parts for line in wrap(part, TITLE_WIDTH))


def shorten_name(name: str) -> str:
    """Return a name shortened for a panel."""
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"


def add_legend_under(axes: Any, columns: int) -> None:
    """Add the legend below a panel, in at most so many columns."""
    from matplotlib.transforms import ScaledTranslation

    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    below = ScaledTranslation(0.0, -LEGEND_OFFSET / 72.0, axes.figure.dpi_scale_trans)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0),
                bbox_transform=axes.transAxes + below, ncols=max(min(columns, 50 // (longest + 6)), 1),
                columnspacing=1.0, handlelength=1.8, borderaxespad=0.0)  # fmt: skip
