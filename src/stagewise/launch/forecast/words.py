"""A forecast in words: a table for a terminal, and what it assumes."""

from typing import TYPE_CHECKING

from stagewise.launch.forecast.bands import Band
from stagewise.launch.forecast.cases import value_of
from stagewise.launch.forecast.outlook import MARGIN, Outlook

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

HEADS = (
    "limits", "reward of a user", "above the safe action, in all", "better from", "other than safe",
    "runs over a limit", "price of a user",
)  # fmt: skip
ASSUMED = (
    "users are as in the log: the same people, as many of each, every day",
    "nothing drifts: what an action comes to stays what the log says",
    "every signal is as the problem declares it: linear in the context, or one rate for each action (and segment)",
    "outcomes are in before the next user comes; late ones are learned later, and gains come later by as much",
)
DOCTOR = "The command stagewise doctor holds the first three against the log."


def number(value: float) -> str:
    """Return a number in four digits.

    >>> number(12345.6), number(0.01234), number(-0.5)
    ('12,346', '0.01234', '-0.5')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def between(one: Band) -> str:
    """Return the middle and the ends of a single band."""
    return f"{number(float(one.middle))} ({number(float(one.low))} to {number(float(one.high))})"


def in_limits(told: "Forecast", case: Outlook, most: int = 1000) -> str:
    """Return the limits of a case, in about so many letters; of several only those that differ between cases."""
    varied = [n for n in case.case.values if len({each.case.values[n] for each in told.outlooks}) > 1]
    names = varied or list(case.case.values)
    room = max(most // len(names) - 9, 3)
    return ", ".join(limit_words(told, name, case.case.values[name], room) for name in names)


def limit_words(told: "Forecast", name: str, value: float, most: int = 1000) -> str:
    """Return one limit, its name in at most so many letters."""
    below, relative, _ = told.problem.limits[name].parts
    sign, known = "≥" if below else "≤", name if len(name) <= most else name[: most - 1] + "…"
    return f"{known} {sign} {value:g}" + (" × safe" if relative else "")


def cells(told: "Forecast", case: Outlook) -> list[str]:
    """Return the row of a case."""
    declared = " (as declared)" if case.case.declared and len(told.outlooks) > 1 else ""
    return [
        in_limits(told, case) + declared,
        f"{number(case.per_user)} (safe: {number(case.safe_per_user)})",
        between(case.total_gain),
        "no day" if case.better_from is None else f"day {case.better_from}",
        f"{case.away.mean():.0%}",
        f"{case.over_any:.0%}",
        "the widest" if case.price is None else between(case.price),
    ]


def table(told: "Forecast") -> str:
    """Return the table that the command line prints."""
    rows = [list(HEADS), *(cells(told, case) for case in told.outlooks)]
    wide = [max(len(row[place]) for row in rows) for place in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(room) for cell, room in zip(row, wide, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(told), "", *lines, "", *remarks(told)])


def headline(told: "Forecast") -> str:
    """Say in one sentence what comes of the problem as it is declared."""
    case, days, name = told.declared, told.length.days, told.problem.reward.name
    gain = f"{between(case.total_gain)} {name} above {told.problem.safe!r}"
    return f"In {days} days of {told.length.users:,} users: {gain}, {verdict(case)}."


def verdict(case: Outlook) -> str:
    """Say what the bands of a case allow to be said of its gains."""
    if case.better_from is not None:
        return f"better than it by more than {MARGIN:.0%} on every day from day {case.better_from} on (90 % bands)"
    if case.told_from_noise:
        return f"on no day surely better than it by more than {MARGIN:.0%}"
    if case.total_gain.high < 0.0:
        return "worse than it"
    return "no gain that can be told from noise"


def costs(told: "Forecast") -> list[str]:
    """Say of every limited cost what is expected, which the limit is on, and what a day may count by chance."""
    lines = []
    for name, value in told.declared.case.values.items():
        least = told.problem.limits[name].at_least
        expected, counted = (
            float(one[name].low.min() if least else one[name].high.max())
            for one in (told.declared.expected, told.declared.costs)
        )
        lines.append(
            f"{name} of a user: expected {'at least' if least else 'at most'} {number(expected)} on any day, where "
            f"{limit_words(told, name, value)} is asked; a single day may by chance count "
            f"{'as few as' if least else 'up to'} {number(counted)} (ends of 90 % bands)."
        )
    return lines


def remarks(told: "Forecast") -> list[str]:
    """Return what must be said beside the numbers."""
    case = told.declared
    lines = [f"90 % bands over {told.runs} runs; the policy starts from {told.learned}.", *costs(told)]
    if case.over_any > 0.0:
        lines.append(
            f"{case.over_any:.0%} of runs are truly over a limit in some round; {case.by_itself:.0%} are where all "
            "that is declared of the safe action is so."
        )
    for name, share in case.unsafe.items():
        if share > 0.0:
            lines.append(
                f"In {share:.0%} of the worlds that the log allows, {told.problem.safe!r} itself is over the limit of "
                f"{name} ({value_of(told.problem.limits[name]):g}) for some users."
            )
        if case.untold[name] > 0.0:
            lines.append(
                f"In {case.untold[name]:.0%} of the worlds that the log allows, {told.problem.safe!r} costs more "
                f"{name} than is declared ({told.problem.limits[name].safe:g}) for some users; limits rest on that."
            )
    for one in told.refused:
        words = ", ".join(limit_words(told, name, value) for name, value in one.values.items())
        lines.append(f"{words} cannot be played: {one.refused}.")
    return [*lines, *(f"Note: {note}." for note in told.notes), f"Assumed: {'; '.join(ASSUMED)}. {DOCTOR}"]
