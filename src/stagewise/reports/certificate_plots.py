"""Plot a certificate from its own numbers, for wide pages and for phones."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from stagewise.reports import plot_style
from stagewise.reports.certificate_margins import has_common_limits
from stagewise.reports.plot_style import BAD, GUARDED, escape_label

WIDE_INCHES, PHONE_INCHES = 7.4, 3.9  # inches
MAX_BARS = 90  # thinner bars are hard to see
LOG_SCALE_RATIO = 30  # ratio of bar heights above which the axis is logarithmic


def draw_both_widths(draw: Callable[[dict[str, Any], float], Any], content: dict[str, Any]) -> tuple[str, str]:
    """Return a plot for a wide page and for a phone."""
    return plot_style.to_data_uri(draw(content, WIDE_INCHES)), plot_style.to_data_uri(draw(content, PHONE_INCHES))


def shares(content: dict[str, Any], width: float) -> Any:
    """Draw every allowed probability with its interval, which must end left of the mark."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"intervals of {escape_label(one['signal'])} fail", one) for one in content["coverage"]]
    figure, grid = plot_style.make_figure(1, 1, width, 1.0 + 0.5 * len(rows))
    axes = grid[0, 0]
    for position, (name, one) in enumerate(rows):
        low, high = one["exact"] or one["anytime"]
        colour = BAD if low > one["allowed"] else GUARDED
        axes.barh(position, high - low, left=low, height=0.34, color=colour, alpha=0.45)
        axes.plot([one["occurrences"] / one["runs"]], [position], "o", color=colour, markersize=5)
        axes.plot([one["allowed"]] * 2, [position - 0.25, position + 0.25], color="black", linewidth=2.5)
        axes.annotate(name, (0.0, position - 0.27), fontsize=9, va="bottom")
    key = "dot: observed; bar: confidence interval; black: allowed"
    plot_style.format_axes(axes, x=f"share of runs ({key})" if width == WIDE_INCHES else f"share of runs\n({key})")
    axes.xaxis.label.set_size(9)
    axes.set(yticks=[], ylim=(len(rows) - 0.5, -0.75))
    axes.xaxis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
    axes.set_xlim(left=0.0)
    axes.spines["left"].set_visible(False)
    return figure


def margins(content: dict[str, Any], width: float) -> Any:
    """Draw the largest cost of every run beside the limit, or its distance if runs have their own limits."""
    figure, grid = plot_style.make_figure(len(content["margins"]), 1, width, 2.4)
    for axes, (name, one), limit in zip(grid[:, 0], content["margins"].items(), content["thresholds"], strict=False):
        side, value = (1.0 if limit["side"] == "at least" else -1.0), limit["value"]
        if not has_common_limits(content):
            side, value = 1.0, 0.0
        draw_histogram(axes, [(side * edge + value, side * nxt + value) for edge, nxt in pairwise(one["edges"])], one)
        axes.axvline(value, color="black", linestyle="--", linewidth=1.2)
        sign = "≥" if limit["side"] == "at least" else "≤"
        label = (
            f"the limit, {escape_label(name)} {sign} {limit['value']:g}" if has_common_limits(content) else "the limit"
        )
        axes.annotate(label, (value, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), fontsize=8,
                      textcoords="offset points", ha="center")  # fmt: skip
        low = "smallest" if limit["side"] == "at least" else "largest"
        axis = (
            f"{low} true {escape_label(name)} of a run"
            if has_common_limits(content)
            else f"left to the limit of {escape_label(name)}"
        )
        plot_style.format_axes(axes, x=axis, y="runs")
    return figure


def draw_histogram(axes: Any, bars: list[tuple[float, float]], one: dict[str, Any]) -> None:
    """Draw a histogram of runs, with counts on the bars if they are few."""
    filled = [
        (0.5 * (a + b), count, BAD if edge <= 0.0 else GUARDED)
        for (a, b), count, edge in zip(bars, one["counts"], one["edges"][1:], strict=True)
        if count
    ]
    width, ends = abs(bars[0][1] - bars[0][0]), [end for bar in bars for end in bar]
    low, high = min(ends), max(ends)
    scale = max(0.5 * abs(low + high), high - low)  # includes 0, so that a limit that is met exactly has a scale
    axes.set_xlim(low - 0.1 * scale, high + 0.1 * scale)
    bar_width = max(width, (high - low + 0.2 * scale) / MAX_BARS)
    axes.bar(
        [position for position, _, _ in filled], [n for _, n, _ in filled], bar_width, color=[c for _, _, c in filled]
    )
    counts = [count for _, count, _ in filled]
    if max(counts) > LOG_SCALE_RATIO * min(counts):
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    for position, count, colour in filled if len(filled) <= 6 else []:
        axes.annotate(f"{count:,}", (position, count), xytext=(-4, -1), textcoords="offset points", ha="right",
                      va="top", fontsize=8, color=colour)  # fmt: skip


def regret(content: dict[str, Any], width: float) -> Any:
    """Draw regret over rounds, and the theorem's bound."""
    found = content["regret"]
    rounds, cuts = found["rounds"], found["quantiles"]
    figure, grid = plot_style.make_figure(1, 1, width, 3.0)
    axes = grid[0, 0]
    plot_style.draw_band(
        axes, rounds, cuts["0.1"], cuts["0.5"], cuts["0.9"], GUARDED, "the median run, and eight in ten"
    )
    axes.plot(rounds, cuts["1"], color=GUARDED, linestyle=":", label="the worst run")
    if found["bound"] is not None:
        axes.plot(rounds, found["bound"], color="black", linestyle="--", label="the theorem's bound")
        if min(cuts["0"]) > 0.0:
            axes.set_yscale("log")
    plot_style.format_axes(axes, y="reward lost so far")
    plot_style.format_round_axis(axes)
    plot_style.add_legend_below(figure, axes, 3 if width == WIDE_INCHES else 1)
    return figure
