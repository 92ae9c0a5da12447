"""Plot a log: calibration, actions against limits, and the course of every signal."""

from typing import Any

import numpy as np

from stagewise.launch.doctor.calibration import compute_deciles
from stagewise.launch.doctor.log_profile import LogProfile, get_threshold
from stagewise.reports.plot_style import (
    BAD,
    GUARDED,
    SAFE,
    draw_band,
    draw_limit_line,
    escape_label,
    format_axes,
    make_figure,
)

LEVEL = 0.05  # error probability of an interval
TIME_PARTS = 12  # parts of the log on the time axis
MAX_ACTIONS = 24  # the most frequent actions are drawn


def plot_log_report(profile: LogProfile) -> Any:
    """Return the figure: one column per signal, with calibration, rates by action and the course of time."""
    count = len(profile.names)
    figure, grid = make_figure(3, count, height=2.7)
    for signal, name in enumerate(profile.names):
        draw_calibration(grid[0, signal], profile, signal, name)
        draw_actions(grid[1, signal], profile, signal, name)
        draw_time_course(grid[2, signal], profile, signal, name)
    return figure


def draw_calibration(axes: Any, profile: LogProfile, signal: int, name: str) -> None:
    """Draw predictions from one half against outcomes of the other half, by decile."""
    deciles, (low, high) = compute_deciles(profile, signal), profile.ends(signal)
    format_axes(axes, f"{escape_label(name)}: predicted and observed", "predicted from the other half", "observed")
    if deciles is None:
        axes.annotate("too few rows, or no numbers about users", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    nonempty = deciles.rows > 0
    predicted, observed = (low + each[nonempty] * (high - low) for each in (deciles.prediction, deciles.observed))
    bars = np.array([deciles.observed - deciles.low, deciles.high - deciles.observed])[:, nonempty] * (high - low)
    ends = np.array([min(predicted.min(), observed.min()), max(predicted.max(), observed.max())])
    axes.plot(ends, ends, color=SAFE, linestyle=(0, (1, 1.2)), linewidth=1.3)
    axes.errorbar(predicted, observed, yerr=np.maximum(bars, 0.0), fmt="o", markersize=4, color=GUARDED, linewidth=1)


def draw_actions(axes: Any, profile: LogProfile, signal: int, name: str) -> None:
    """Draw the mean of every action with its interval, against the limit."""
    actions = list(profile.log.problem.actions)
    counts = np.bincount(profile.log.actions[profile.known], minlength=len(actions))
    drawn = sorted(np.argsort(-counts, kind="stable")[:MAX_ACTIONS].tolist())
    limit = None if signal == 0 else get_threshold(profile.log.problem.limits[name])
    for index, action in enumerate(drawn):
        rows, mean, interval = profile.rate(signal, profile.log.actions == action, LEVEL)
        if rows:
            is_over = limit is not None and (interval.high < limit[0] if limit[1] else interval.low > limit[0])
            colour = BAD if is_over else SAFE if action == profile.safe else GUARDED
            bars = np.maximum([[mean - interval.low], [interval.high - mean]], 0.0)
            axes.errorbar([index], [mean], yerr=bars, fmt="s", markersize=4, color=colour)
    axes.set_xticks(
        range(len(drawn)), [escape_label(actions[action])[:14] for action in drawn], rotation=35, ha="right"
    )
    format_axes(axes, f"{escape_label(name)} by action", y="mean, 95 %")
    if limit is not None:
        draw_limit_line(axes, limit[0], name, not limit[1])


def draw_time_course(axes: Any, profile: LogProfile, signal: int, name: str) -> None:
    """Draw the mean over time, and the share of missing values."""
    part = np.minimum((profile.time_ranks * TIME_PARTS).astype(int), TIME_PARTS - 1)
    rates = [profile.rate(signal, part == index, LEVEL) for index in range(TIME_PARTS)]
    is_missing = np.isnan(profile.values[:, signal])
    missing = np.bincount(part, is_missing, minlength=TIME_PARTS) / np.maximum(
        np.bincount(part, minlength=TIME_PARTS), 1
    )
    nonempty = [index for index in range(TIME_PARTS) if rates[index][0]]
    middle = [(index + 0.5) / TIME_PARTS for index in nonempty]
    means = [rates[index][1] for index in nonempty]
    draw_band(axes, middle, [rates[p][2].low for p in nonempty], means, [rates[p][2].high for p in nonempty])
    format_axes(axes, f"{escape_label(name)} over the log", "share of the log, by time" if profile.log.at is not None
               else "share of the log, by row", "mean, 95 %")  # fmt: skip
    if missing.any():
        other = axes.twinx()
        other.spines["top"].set_visible(False)
        other.bar((np.arange(TIME_PARTS) + 0.5) / TIME_PARTS, missing, width=0.8 / TIME_PARTS, color=BAD, alpha=0.25)
        other.set(ylabel="share missing", ylim=(0.0, max(1.5 * float(missing.max()), 0.01)))
