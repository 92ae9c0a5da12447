"""A forecast as one page that needs nothing else: the picture first, then the numbers, then what they rest on."""

from html import escape
from typing import TYPE_CHECKING

from stagewise.launch.forecast.outlook import MARGIN
from stagewise.launch.forecast.picture import drawn
from stagewise.launch.forecast.words import ASSUMED, DOCTOR, HEADS, cells, headline, remarks
from stagewise.problem.plain_limits import in_words
from stagewise.reports.pages import document, picture, table
from stagewise.reports.style import embedded

if TYPE_CHECKING:
    from stagewise.launch.forecast.forecast import Forecast

ALT = (
    "Reward of a user above the safe action's by day with its 90 % band, what a user is expected to cost beside each "
    "limit, the shares of users who get each action, and what each limit costs"
)


def page(told: "Forecast") -> str:
    """Return the page."""
    case, problem = told.declared, told.problem
    good = case.better_from is not None and case.by_itself <= problem.delta
    doubt = "good" if good else "doubt"
    rows = [[escape(cell) for cell in cells(told, each)] for each in told.outlooks]
    limits = "; ".join(f"{name} {in_words(limit)}" for name, limit in problem.limits.items())
    body = [
        f"<h1>Forecast: {escape(problem.reward.name)} from {len(problem.actions)} actions</h1>",
        f"<div class='verdict {doubt}'><strong>{escape(headline(told))}</strong></div>",
        picture(embedded(drawn(told)), ALT, embedded(drawn(told, most=1))),
        f"<p class=small>{escape(limits)}. Bands hold 90 % of {told.runs} runs, each in a world of its own that the "
        f"{told.rows:,} rows of the log allow; the policy starts from {escape(told.learned)}.</p>",
        "<h2>Under each limit</h2>",
        table(list(HEADS), rows, tuple(range(1, len(HEADS)))),
        "<h2>By day: what is expected, and what will be counted</h2>",
        by_day(told),
        f"<p class=small>{EXPECTED}</p>",
        "<h2>What to know beside the numbers</h2><ul>",
        *(f"<li>{escape(line)}</li>" for line in remarks(told)[1:-1] or ["Nothing was left out of the log."]),
        "</ul><h2>What is assumed</h2><ul>",
        *(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in ASSUMED),
        f"</ul><p>{escape(DOCTOR)}</p>",
        f"<p class=small>{EXPLAINED}</p>",
    ]
    return document(f"Forecast: {problem.reward.name}", "\n".join(body))


EXPECTED = (
    "Expected is the mean that decisions have in the world of a run, over the users of a day: limits are on that. What "
    "a single day counts varies around it by chance, the more the fewer users there are, and may be over a limit that "
    "is kept."
)
EXPLAINED = (
    "Better from: the first day from which on the lower end of every day's band is above the safe action's expected "
    f"reward, with the same users, by more than {MARGIN:.0%} of it. Other than safe: the share of users who get "
    "another action, over all days. Runs over a limit: in some round the true expected cost of the decision was over "
    "it, also where the safe action itself is. Price: what a user brings less than under the widest limits, over all "
    "days."
)


def by_day(told: "Forecast") -> str:
    """Return the bands of what is expected and of what will be counted, on the first day, a middle and the last."""
    case, days = told.declared, told.length.days
    places = sorted({0, days // 2, days - 1})
    named = {f"{name} of a user, expected": one for name, one in case.expected.items()}
    named |= {
        f"{name} of a user, counted": one for name, one in {told.problem.reward.name: case.reward, **case.costs}.items()
    }
    rows = [
        [escape(name), *(f"{one.middle[p]:.4g} ({one.low[p]:.4g} to {one.high[p]:.4g})" for p in places)]
        for name, one in named.items()
    ]
    heads = ["", *(f"day {place + 1}" for place in places)]
    return table(heads, rows, tuple(range(1, len(heads))))
