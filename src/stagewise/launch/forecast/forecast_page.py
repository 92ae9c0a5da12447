"""Render a forecast as one self-contained page: plot, numbers, assumptions."""

from html import escape
from typing import TYPE_CHECKING

from stagewise.launch.forecast.case_forecast import MARGIN
from stagewise.launch.forecast.forecast_plot import plot_forecast
from stagewise.launch.forecast.forecast_text import (
    ASSUMPTIONS,
    DOCTOR_HINT,
    TABLE_HEADS,
    format_cells,
    format_headline,
    format_warm_start,
    list_remarks,
)
from stagewise.problem.signals import describe_limit
from stagewise.reports.pages import render_document, render_image, render_table
from stagewise.reports.plot_style import to_data_uri

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

ALT_TEXT = (
    "Reward per user above the safe action's by day with its 90 % band, the expected cost per user beside each limit, "
    "the shares of users by action, and what each limit costs"
)


def render_page(forecast: "Forecast") -> str:
    """Return the page."""
    case, problem = forecast.declared, forecast.problem
    good = case.better_from is not None and case.violations_if_assumptions_hold <= problem.delta
    style = "good" if good else "warning"
    rows = [[escape(cell) for cell in format_cells(forecast, each)] for each in forecast.case_forecasts]
    limits = "; ".join(f"{name} {describe_limit(limit)}" for name, limit in problem.limits.items())
    body = [
        f"<h1>Forecast: {escape(problem.reward.name)} from {len(problem.actions)} actions</h1>",
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
        *(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in ASSUMPTIONS),
        f"</ul><p>{escape(DOCTOR_HINT)}</p>",
        f"<p class=small>{COLUMNS_NOTE}</p>",
    ]
    return render_document(f"Forecast: {problem.reward.name}", "\n".join(body))


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
