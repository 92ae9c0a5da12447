"""The pictures of a certificate, drawn from its own numbers: each for a page, and again for a phone."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from stagewise.reports import style
from stagewise.reports.certificate_nearness import shares_limits
from stagewise.reports.style import BAD, GUARDED, plain

WIDE, PHONE = 7.4, 3.9  # inches
FINE = 90  # bars of which so many fit are too thin to be seen
LOPSIDED = 30  # runs in one bar for each in another, from which on heights are counted in powers of ten


def both(draw: Callable[[dict[str, Any], float], Any], content: dict[str, Any]) -> tuple[str, str]:
    """Return a picture for a wide page and for a phone."""
    return style.embedded(draw(content, WIDE)), style.embedded(draw(content, PHONE))


def shares(content: dict[str, Any], width: float) -> Any:
    """Draw every probability that was promised, with its interval: it must end left of the mark."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"intervals of {plain(one['signal'])} fail", one) for one in content["coverage"]]
    figure, grid = style.figure(1, 1, width, 1.0 + 0.5 * len(rows))
    axes = grid[0, 0]
    for place, (name, one) in enumerate(rows):
        low, high = one["exact"] or one["anytime"]
        colour = BAD if low > one["allowed"] else GUARDED
        axes.barh(place, high - low, left=low, height=0.34, color=colour, alpha=0.45)
        axes.plot([one["happened"] / one["runs"]], [place], "o", color=colour, markersize=5)
        axes.plot([one["allowed"]] * 2, [place - 0.25, place + 0.25], color="black", linewidth=2.5)
        axes.annotate(name, (0.0, place - 0.27), fontsize=9, va="bottom")
    key = "dot: seen; bar: where the truth may lie; black: allowed"
    style.plain_axes(axes, x=f"share of runs ({key})" if width == WIDE else f"share of runs\n({key})")
    axes.xaxis.label.set_size(9)
    axes.set(yticks=[], ylim=(len(rows) - 0.5, -0.75))
    axes.xaxis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
    axes.set_xlim(left=0.0)
    axes.spines["left"].set_visible(False)
    return figure


def margins(content: dict[str, Any], width: float) -> Any:
    """Draw what the dearest round of every run cost beside the limit, or left to it where runs have their own."""
    figure, grid = style.figure(len(content["margins"]), 1, width, 2.4)
    for axes, (name, one), limit in zip(grid[:, 0], content["margins"].items(), content["thresholds"], strict=False):
        side, value = (1.0 if limit["side"] == "at least" else -1.0), limit["value"]
        if not shares_limits(content):
            side, value = 1.0, 0.0
        draw_dearest(axes, [(side * edge + value, side * nxt + value) for edge, nxt in pairwise(one["edges"])], one)
        axes.axvline(value, color="black", linestyle="--", linewidth=1.2)
        sign = "≥" if limit["side"] == "at least" else "≤"
        words = f"the limit, {plain(name)} {sign} {limit['value']:g}" if shares_limits(content) else "the limit"
        axes.annotate(words, (value, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), fontsize=8,
                      textcoords="offset points", ha="center")  # fmt: skip
        low = "smallest" if limit["side"] == "at least" else "largest"
        axis = f"{low} true {plain(name)} of a run" if shares_limits(content) else f"left to the limit of {plain(name)}"
        style.plain_axes(axes, x=axis, y="runs")
    return figure


def draw_dearest(axes: Any, bars: list[tuple[float, float]], one: dict[str, Any]) -> None:
    """Draw how many runs lie in each bar, with their number on it where few bars are filled."""
    filled = [
        (0.5 * (a + b), count, BAD if edge <= 0.0 else GUARDED)
        for (a, b), count, edge in zip(bars, one["counts"], one["edges"][1:], strict=True)
        if count
    ]
    width, ends = abs(bars[0][1] - bars[0][0]), [end for bar in bars for end in bar]
    low, high = min(ends), max(ends)
    reach = max(0.5 * abs(low + high), high - low)  # as far as from 0, so that a limit that is met has a scale
    axes.set_xlim(low - 0.1 * reach, high + 0.1 * reach)
    thick = max(width, (high - low + 0.2 * reach) / FINE)
    axes.bar([place for place, _, _ in filled], [n for _, n, _ in filled], thick, color=[c for _, _, c in filled])
    counts = [count for _, count, _ in filled]
    if max(counts) > LOPSIDED * min(counts):
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    for place, count, colour in filled if len(filled) <= 6 else []:
        axes.annotate(f"{count:,}", (place, count), xytext=(-4, -1), textcoords="offset points", ha="right", va="top",
                      fontsize=8, color=colour)  # fmt: skip


def regret(content: dict[str, Any], width: float) -> Any:
    """Draw how regret grew, and what the theorem allows."""
    found = content["regret"]
    rounds, cuts = found["rounds"], found["quantiles"]
    figure, grid = style.figure(1, 1, width, 3.0)
    axes = grid[0, 0]
    style.band(axes, rounds, cuts["0.1"], cuts["0.5"], cuts["0.9"], GUARDED, "the middle run, and eight in ten")
    axes.plot(rounds, cuts["1"], color=GUARDED, linestyle=":", label="the worst run")
    if found["bound"] is not None:
        axes.plot(rounds, found["bound"], color="black", linestyle="--", label="the theorem's bound")
        if min(cuts["0"]) > 0.0:
            axes.set_yscale("log")
    style.plain_axes(axes, y="reward lost so far")
    style.count_rounds(axes)
    style.legend_below(figure, axes, 3 if width == WIDE else 1)
    return figure
