"""The report of a forecast: a table with remarks for a terminal, a figure, and a self-contained page."""

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.launch.forecast.case_forecast import MARGIN, CaseForecast, GainVerdict, get_limit_value
from stagewise.launch.forecast.forecast_log import WarmStart
from stagewise.launch.statistics import Band
from stagewise.problem.formatting import align_columns, format_count, format_number
from stagewise.problem.signals import describe_limit
from stagewise.problem.thresholds import parse_threshold
from stagewise.reports.style import (
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
    render_document,
    render_image,
    render_table,
    to_data_uri,
)

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

TABLE_HEADS = (
    "limits", "reward per user", "gain over the safe action", "better from", "not the safe action",
    "runs over a limit", "lost per user",
)  # fmt: skip
ASSUMPTIONS = (
    "users are as in the log, in the same proportions every day",
    "nothing drifts: the means of actions stay as in the log",
    "every signal has its declared form: linear in the context, or one rate per action (and segment)",
    "outcomes arrive before the next user; late outcomes are learned later, which delays gains",
)
MOVING_ASSUMPTIONS = (
    ASSUMPTIONS[0],
    "means move as they did in the log, month by month: from its last month back to its first, and forth again",
    ASSUMPTIONS[2],
    "all outcomes are learned when the longest window has closed",
)
DOCTOR_HINT = "The command stagewise doctor checks the first three against the log."
ALT_TEXT = (
    "Reward per user above the safe action's by day with its 90 % band, the expected cost per user beside each limit, "
    "the shares of users by action, and what each limit costs"
)
EXPECTED_NOTE = (
    "Expected is the mean of the decisions in the world of a run, over the users of a day; limits apply to it. The "
    "observed value of a single day varies around it by chance, more with fewer users, and may be over a limit that is "
    "kept."
)
COLUMNS_NOTE = (
    "Better from: the first day from which the lower end of every day's band is above the safe action's expected "
    f"reward, with the same users, by more than {MARGIN:.0%} of it. Not the safe action: the share of users who get "
    "another action, over all days. Runs over a limit: in some round the true expected cost of the decision was over "
    "it, also if the safe action itself is. Lost per user: reward per user below that of the widest limits, over all "
    "days."
)
MAX_CASES = 6  # cases whose gains are drawn in one panel
TITLE_WIDTH = 32  # letters
NAME_WIDTH = 24  # letters of a name within a panel
LEGEND_OFFSET = 34  # points from a panel down to its legend, below ticks and label


def format_band(one: Band) -> str:
    """Return the median and the ends of a single band."""
    return f"{format_number(float(one.middle))} ({format_number(float(one.low))} to {format_number(float(one.high))})"


def format_case_limits(forecast: "Forecast", case: CaseForecast, most: int = 1000) -> str:
    """Return the limits of a case, in about `most` letters; of several only those that differ between cases."""
    varied = [n for n in case.case.values if len({each.case.values[n] for each in forecast.case_forecasts}) > 1]
    names = varied or list(case.case.values)
    room = max(most // len(names) - 9, 3)
    return ", ".join(format_limit(forecast, name, case.case.values[name], room) for name in names)


def format_limit(forecast: "Forecast", name: str, value: float, most: int = 1000) -> str:
    """Return one limit, with its name in at most `most` letters."""
    at_least, relative, _ = parse_threshold(forecast.problem.limits[name].value)
    sign, label = "≥" if at_least else "≤", name if len(name) <= most else name[: most - 1] + "…"
    return f"{label} {sign} {value:g}" + (" × safe" if relative else "")


def format_cells(forecast: "Forecast", case: CaseForecast) -> list[str]:
    """Return the table row of a case."""
    declared = " (as declared)" if case.case.declared and len(forecast.case_forecasts) > 1 else ""
    return [
        format_case_limits(forecast, case) + declared,
        f"{format_number(case.per_user)} (safe: {format_number(case.safe_per_user)})",
        format_band(case.total_gain),
        "never" if case.better_from is None else f"day {case.better_from}",
        f"{case.non_safe_share.mean():.0%}",
        f"{case.runs_over_any_limit:.0%}",
        "the widest" if case.price is None else format_band(case.price),
    ]


def format_table(forecast: "Forecast") -> str:
    """Return the text that the command line prints."""
    rows = [list(TABLE_HEADS), *(format_cells(forecast, case) for case in forecast.case_forecasts)]
    return "\n".join([format_headline(forecast), "", *align_columns(rows), "", *list_remarks(forecast)])


def format_headline(forecast: "Forecast") -> str:
    """Return the result of the declared problem in one sentence."""
    case, days, name = forecast.declared, forecast.horizon.days, forecast.problem.reward.name
    gain = f"{format_band(case.total_gain)} {name} more than {forecast.problem.safe_name!r}"
    return f"In {days} days of {forecast.horizon.users:,} users: {gain}, {format_verdict(case)}."


def format_verdict(case: CaseForecast) -> str:
    """Return the verdict on the gain as words."""
    return {
        GainVerdict.BETTER: f"better by more than {MARGIN:.0%} every day from day {case.better_from} on (90 % bands)",
        GainVerdict.SMALL_GAIN: f"but not certainly better by more than {MARGIN:.0%} on the last day",
        GainVerdict.WORSE: "certainly worse",
        GainVerdict.UNCLEAR: "not distinguishable from noise",
    }[case.verdict]


def format_warm_start(forecast: "Forecast") -> str:
    """Return what the policy starts from as words."""
    rows = format_count(forecast.warm_start_rows, "row")
    return {
        WarmStart.ALL: f"all {format_count(forecast.warm_start_rows, 'complete row')} of the log",
        WarmStart.LATER_HALF: f"the later half of the log, {rows}",
        WarmStart.OTHER_LOG: f"a separate log, {rows}",
        WarmStart.NONE: "nothing",
    }[forecast.warm_start]


def describe_costs(forecast: "Forecast") -> list[str]:
    """Return for every limit the expected cost, which the limit applies to, and the observed cost of a day."""
    lines = []
    for name, value in forecast.declared.case.values.items():
        at_least = forecast.problem.limits[name].at_least
        expected, observed = (
            float(bands[name].low.min() if at_least else bands[name].high.max())
            for bands in (forecast.declared.expected_costs, forecast.declared.costs)
        )
        lines.append(
            f"{name} per user: expected {'at least' if at_least else 'at most'} {format_number(expected)} on any day, "
            f"with the limit {format_limit(forecast, name, value)}; a single day may by chance have "
            f"{'as little as' if at_least else 'up to'} {format_number(observed)} (ends of 90 % bands)."
        )
    return lines


def list_remarks(forecast: "Forecast") -> list[str]:
    """Return the remarks beside the numbers: bands, costs, violations, rejected cases, notes, assumptions."""
    case, safe = forecast.declared, forecast.problem.safe_name
    lines = [
        f"90 % bands over {forecast.runs} runs; the policy starts from {format_warm_start(forecast)}.",
        *describe_costs(forecast),
        *describe_least_bounds(forecast),
    ]
    if case.runs_over_any_limit > 0.0:
        lines.append(
            f"{case.runs_over_any_limit:.0%} of runs are over a limit in some round; "
            f"{case.violations_if_assumptions_hold:.0%} although the declared values of the safe action are true."
        )
    for name, share in case.safe_action_over_limit.items():
        limit = forecast.problem.limits[name]
        if share > 0.0:
            lines.append(
                f"In {share:.0%} of the worlds that the log allows, {safe!r} itself is over the limit of {name} "
                f"({get_limit_value(limit):g}) for some users."
            )
        if case.safe_cost_underdeclared[name] > 0.0:
            lines.append(
                f"In {case.safe_cost_underdeclared[name]:.0%} of the worlds that the log allows, {safe!r} has more "
                f"{name} than declared ({limit.safe_bound:g}) for some users; the guarantee does not cover them."
            )
    for rejected in forecast.rejected:
        limits = ", ".join(format_limit(forecast, name, value) for name, value in rejected.values.items())
        lines.append(f"{limits} cannot be simulated: {rejected.error}.")
    notes = [f"Note: {note}." for note in forecast.notes]
    return [*lines, *notes, f"Assumptions: {'; '.join(list_assumptions(forecast))}. {DOCTOR_HINT}"]


def list_assumptions(forecast: "Forecast") -> tuple[str, ...]:
    return MOVING_ASSUMPTIONS if forecast.problem.needs_times else ASSUMPTIONS


def describe_least_bounds(forecast: "Forecast") -> list[str]:
    """Return by limit with a declared drift the least bound that can be had."""
    lines = []
    for name, one in forecast.least_bounds.items():
        is_learnable = one.bound >= one.limit if forecast.problem.limits[name].at_least else one.bound <= one.limit
        after = "" if is_learnable else ", so no action can be played alone"
        lines.append(
            f"{name}: with the declared drift and {forecast.horizon.users:,} users a day its bound can come to about "
            f"{format_number(one.bound)} (of {one.action!r}); its limit is {format_number(one.limit)}{after}."
        )
    return lines


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
    draw_reference_line(axes, 0.0, escape_label(shorten_name(forecast.problem.safe_name)), SAFE)
    title = [f"{forecast.problem.reward.name} per user above {shorten_name(forecast.problem.safe_name)}"]
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
    if not parse_threshold(declared.value).relative:
        draw_limit_line(axes, get_limit_value(declared), shorten_name(name), not declared.at_least)


def draw_shares(axes: Any, forecast: "Forecast") -> None:
    """Draw the share of users by action."""
    problem, shares = forecast.problem, forecast.declared.action_shares
    order = [problem.safe_name, *(name for name in problem.action_names if name != problem.safe_name)]
    rows = [shares[:, list(problem.action_names).index(name)] for name in order]
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
    """Return a title that fits a panel, each part in its own lines."""
    return "\n".join(escape_label(line) for part in parts for line in wrap(part, TITLE_WIDTH))


def shorten_name(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"


def add_legend_under(axes: Any, columns: int) -> None:
    """Add the legend below a panel, in at most so many columns."""
    from matplotlib.transforms import ScaledTranslation

    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    below = ScaledTranslation(0.0, -LEGEND_OFFSET / 72.0, axes.figure.dpi_scale_trans)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0),
                bbox_transform=axes.transAxes + below, ncols=max(min(columns, 50 // (longest + 6)), 1),
                columnspacing=1.0, handlelength=1.8, borderaxespad=0.0)  # fmt: skip


def render_page(forecast: "Forecast") -> str:
    case, problem = forecast.declared, forecast.problem
    good = case.better_from is not None and case.violations_if_assumptions_hold <= problem.delta
    style = "good" if good else "warning"
    rows = [[escape(cell) for cell in format_cells(forecast, each)] for each in forecast.case_forecasts]
    limits = "; ".join(f"{name} {describe_limit(limit)}" for name, limit in problem.limits.items())
    body = [
        f"<h1>Forecast: {escape(problem.reward.name)} from {len(problem.action_names)} actions</h1>",
        f"<div class='verdict {style}'><strong>{escape(format_headline(forecast))}</strong></div>",
        render_image(to_data_uri(plot_forecast(forecast)), ALT_TEXT, to_data_uri(plot_forecast(forecast, most=1))),
        f"<p class=small>{escape(limits)}. Bands contain 90 % of {forecast.runs} runs, each in its own world that the "
        f"{forecast.rows:,} rows of the log allow; the policy starts from {escape(format_warm_start(forecast))}.</p>",
        "<h2>Under each limit</h2>",
        render_table(list(TABLE_HEADS), rows, tuple(range(1, len(TABLE_HEADS)))),
        "<h2>By day: expected and observed</h2>",
        render_days(forecast),
        f"<p class=small>{EXPECTED_NOTE}</p>",
        "<h2>Remarks</h2><ul>",
        *(f"<li>{escape(line)}</li>" for line in list_remarks(forecast)[1:-1] or ["Nothing was left out of the log."]),
        "</ul><h2>Assumptions</h2><ul>",
        *(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in list_assumptions(forecast)),
        f"</ul><p>{escape(DOCTOR_HINT)}</p>",
        f"<p class=small>{COLUMNS_NOTE}</p>",
    ]
    return render_document(f"Forecast: {problem.reward.name}", "\n".join(body))


def render_days(forecast: "Forecast") -> str:
    """Return the expected and observed bands on the first, a middle and the last day."""
    case, days = forecast.declared, forecast.horizon.days
    chosen_days = sorted({0, days // 2, days - 1})
    bands = {f"{name} per user, expected": one for name, one in case.expected_costs.items()}
    bands |= {
        f"{name} per user, observed": one
        for name, one in {forecast.problem.reward.name: case.reward, **case.costs}.items()
    }
    rows = [
        [escape(name), *(f"{one.middle[p]:.4g} ({one.low[p]:.4g} to {one.high[p]:.4g})" for p in chosen_days)]
        for name, one in bands.items()
    ]
    heads = ["", *(f"day {day + 1}" for day in chosen_days)]
    return render_table(heads, rows, tuple(range(1, len(heads))))
