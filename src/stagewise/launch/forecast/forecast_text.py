"""The text of a forecast: a table for a terminal, remarks and assumptions."""

from typing import TYPE_CHECKING

from stagewise.launch.forecast.case_forecast import MARGIN, CaseForecast, GainVerdict
from stagewise.launch.forecast.cases import get_limit_value
from stagewise.launch.forecast.forecast_log import WarmStart
from stagewise.launch.forecast.prediction_bands import Band
from stagewise.problem.formatting import format_count

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
DOCTOR_HINT = "The command stagewise doctor checks the first three against the log."


def format_number(value: float) -> str:
    """Return a number in four digits.

    >>> format_number(12345.6), format_number(0.01234), format_number(-0.5)
    ('12,346', '0.01234', '-0.5')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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
    at_least, relative, _ = forecast.problem.limits[name].parts
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
    widths = [max(len(row[index]) for row in rows) for index in range(len(TABLE_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([format_headline(forecast), "", *lines, "", *list_remarks(forecast)])


def format_headline(forecast: "Forecast") -> str:
    """Return the result of the declared problem in one sentence."""
    case, days, name = forecast.declared, forecast.horizon.days, forecast.problem.reward.name
    gain = f"{format_band(case.total_gain)} {name} more than {forecast.problem.safe!r}"
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
    case, safe = forecast.declared, forecast.problem.safe
    lines = [
        f"90 % bands over {forecast.runs} runs; the policy starts from {format_warm_start(forecast)}.",
        *describe_costs(forecast),
    ]
    if case.runs_over_any_limit > 0.0:
        lines.append(
            f"{case.runs_over_any_limit:.0%} of runs are over a limit in some round; "
            f"{case.violations_if_assumptions_hold:.0%} although everything declared of the safe action is true."
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
                f"{name} than declared ({limit.safe:g}) for some users; limits rely on that."
            )
    for rejected in forecast.rejected:
        limits = ", ".join(format_limit(forecast, name, value) for name, value in rejected.values.items())
        lines.append(f"{limits} cannot be simulated: {rejected.error}.")
    notes = [f"Note: {note}." for note in forecast.notes]
    return [*lines, *notes, f"Assumptions: {'; '.join(ASSUMPTIONS)}. {DOCTOR_HINT}"]
