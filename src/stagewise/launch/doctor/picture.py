"""A log in one picture: does the model foretell the other half, where do actions stand against limits, what moved."""

from typing import Any

import numpy as np

from stagewise.launch.doctor.chart import Chart, threshold_of
from stagewise.launch.doctor.deciles import deciles
from stagewise.reports.style import BAD, GUARDED, SAFE, band, figure, limit, plain, plain_axes

CHANCE = 0.05  # that an interval of the picture misses
TIMES = 12  # parts of the log that what moved is shown by
MOST = 24  # actions that are drawn, the most frequent


def drawn(chart: Chart) -> Any:
    """Return the figure: a column for every signal; calibration, rates by action, the course of time."""
    count = len(chart.names)
    canvas, grid = figure(3, count, height=2.7)
    for signal, name in enumerate(chart.names):
        draw_calibration(grid[0, signal], chart, signal, name)
        draw_actions(grid[1, signal], chart, signal, name)
        draw_course(grid[2, signal], chart, signal, name)
    return canvas


def draw_calibration(axes: Any, chart: Chart, signal: int, name: str) -> None:
    """Draw what one half foretells against what the other half shows, by decile."""
    told, (low, high) = deciles(chart, signal), chart.ends(signal)
    plain_axes(axes, f"{plain(name)}: foretold and seen", "foretold by the other half", "seen")
    if told is None:
        axes.annotate("too few rows, or no numbers about users", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    there = told.rows > 0
    foretold, seen = (low + each[there] * (high - low) for each in (told.foretold, told.seen))
    bars = np.array([told.seen - told.low, told.high - told.seen])[:, there] * (high - low)
    ends = np.array([min(foretold.min(), seen.min()), max(foretold.max(), seen.max())])
    axes.plot(ends, ends, color=SAFE, linestyle=(0, (1, 1.2)), linewidth=1.3)
    axes.errorbar(foretold, seen, yerr=np.maximum(bars, 0.0), fmt="o", markersize=4, color=GUARDED, linewidth=1)


def draw_actions(axes: Any, chart: Chart, signal: int, name: str) -> None:
    """Draw the mean of every action with its interval, against the limit."""
    actions = list(chart.log.problem.actions)
    counts = np.bincount(chart.log.actions[chart.known], minlength=len(actions))
    shown = sorted(np.argsort(-counts, kind="stable")[:MOST].tolist())
    bound = None if signal == 0 else threshold_of(chart.log.problem.limits[name])
    for place, action in enumerate(shown):
        rows, mean, ends = chart.rate(signal, chart.log.actions == action, CHANCE)
        if rows:
            over = bound is not None and (ends.high < bound[0] if bound[1] else ends.low > bound[0])
            colour = BAD if over else SAFE if action == chart.safe else GUARDED
            bars = np.maximum([[mean - ends.low], [ends.high - mean]], 0.0)
            axes.errorbar([place], [mean], yerr=bars, fmt="s", markersize=4, color=colour)
    axes.set_xticks(range(len(shown)), [plain(actions[action])[:14] for action in shown], rotation=35, ha="right")
    plain_axes(axes, f"{plain(name)} by action", y="mean, 95 %")
    if bound is not None:
        limit(axes, bound[0], name, not bound[1])


def draw_course(axes: Any, chart: Chart, signal: int, name: str) -> None:
    """Draw the mean as the log goes on, and how much is missing."""
    part = np.minimum((chart.when * TIMES).astype(int), TIMES - 1)
    told = [chart.rate(signal, part == place, CHANCE) for place in range(TIMES)]
    gone = np.isnan(chart.values[:, signal])
    missing = np.bincount(part, gone, minlength=TIMES) / np.maximum(np.bincount(part, minlength=TIMES), 1)
    there = [place for place in range(TIMES) if told[place][0]]
    middle = [(place + 0.5) / TIMES for place in there]
    means = [told[place][1] for place in there]
    band(axes, middle, [told[p][2].low for p in there], means, [told[p][2].high for p in there])
    plain_axes(axes, f"{plain(name)} in the course of the log", "share of the log, by time" if chart.log.at is not None
               else "share of the log, by row", "mean, 95 %")  # fmt: skip
    if missing.any():
        other = axes.twinx()
        other.spines["top"].set_visible(False)
        other.bar((np.arange(TIMES) + 0.5) / TIMES, missing, width=0.8 / TIMES, color=BAD, alpha=0.25)
        other.set(ylabel="share missing", ylim=(0.0, max(1.5 * float(missing.max()), 0.01)))
