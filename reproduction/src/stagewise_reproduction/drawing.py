"""Drawing functions that the figures share: panels for desktop and phone, bands over runs, bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.reports import style as plot_style
from stagewise.reports.result import Result
from stagewise.reports.style import STYLES, format_count, write_figure

PHONE, FLAT = 3.9, 0.82  # width in inches on a phone; relative height of panels that are stacked
on_phone = ContextVar("on_phone", default=False)


@contextmanager
def use_phone_layout() -> Iterator[None]:
    """Draw figures in one column."""
    before = on_phone.set(True)
    try:
        yield
    finally:
        on_phone.reset(before)


def make_panels(
    rows: int,
    columns: int,
    width: float = 3.3,
    height: float = 2.6,
    by_row: bool = False,
    phone: list[float] | None = None,
) -> tuple[Any, Any]:
    """Return a figure and its panels, an array (rows, columns); on a phone stacked, by column or by row.

    `phone` are the heights of the panels there.
    """
    if not on_phone.get():
        return plot_style.make_figure(rows, columns, width, height)
    from matplotlib.figure import Figure

    heights = phone or [FLAT * height] * (rows * columns)
    figure = Figure(figsize=(PHONE, sum(heights)), layout="constrained")
    grid = figure.subplots(rows * columns, 1, squeeze=False, height_ratios=heights)
    return figure, grid.reshape(rows, columns) if by_row else grid.reshape(columns, rows).T


def draw_band(axes: Any, rounds: Ints, values: Floats, label: str, style: int) -> None:
    """Draw the mean over runs with a band of one standard deviation."""
    colour, dashes = STYLES[style % len(STYLES)]
    middle, deviation = values.mean(axis=0), values.std(axis=0)
    plot_style.draw_band(axes, rounds, middle - deviation, middle, middle + deviation, colour, label, dashes)


def draw_regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw regrets against rounds."""
    for index, (label, result) in enumerate(results.items()):
        draw_band(axes, result.rounds, result.regret, label, index)
    format_panel(axes, "regret")


def draw_cost(axes: Any, results: dict[str, Result], threshold: float | None, style: int = 0) -> None:
    """Draw expected costs against their threshold."""
    for index, (label, result) in enumerate(results.items()):
        draw_band(axes, result.rounds, result.cost[:, :, style], label, index)
    if threshold is not None:
        axes.set_ylim(bottom=0.0)
        axes.axhline(threshold, color="black", linestyle="--", linewidth=1)
        plot_style.annotate_line(axes, threshold, f"threshold {threshold:g}")
    format_panel(axes, "expected cost")


def draw_reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw expected rewards against the optimum."""
    best = next(iter(results.values()))
    for index, (label, result) in enumerate(results.items()):
        draw_band(axes, result.rounds, result.reward, label, index)
    axes.plot(best.rounds, best.optimum.mean(axis=0), color="black", linestyle=":", linewidth=1.2)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    plot_style.annotate_line(axes, float(best.optimum.mean()), "optimum")
    format_panel(axes, "expected reward")


def draw_rows(curves: dict[float, dict[str, Result]]) -> Any:
    """Return a figure with one row per threshold: regret, cost and reward from left to right."""
    figure, grid = make_panels(len(curves), 3, by_row=True)
    for row, (threshold, results) in zip(grid, curves.items(), strict=True):
        draw_regret(row[0], results)
        draw_cost(row[1], results, threshold)
        draw_reward(row[2], results)
        row[0].set_title(f"threshold τ = {threshold:g}", loc="left")
    add_legend_below(figure, grid[0, 0])
    return figure


def format_panel(axes: Any, label: str) -> None:
    """Name the axes; rounds in millions or thousands, regret with separators."""
    from matplotlib.ticker import FuncFormatter

    title = axes.get_title()
    plot_style.format_axes(axes, title, y=label)
    plot_style.format_round_axis(axes)
    if label == "regret":
        axes.yaxis.set_major_formatter(FuncFormatter(format_count))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def add_legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    """Add one legend below all panels; on a phone, above them."""
    if on_phone.get():
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 2), frameon=False)
    else:
        plot_style.add_legend_below(figure, axes, columns)


def add_label(figure: Any, label: str) -> Any:
    """Add a label above all panels; on a phone, as the title of the legend."""
    if label and on_phone.get() and figure.legends:
        figure.legends[0].set_title(label)
    elif label:
        figure.suptitle(label, x=0.01, ha="left", fontsize=10)
    return figure


def save_figure(draw: Callable[[], Any], folder: Path, name: str, label: str) -> None:
    """Write a figure as PNG and SVG, and as PNG for a phone; the SVG reuses the layout of the PNG."""
    figure = add_label(draw(), label)
    write_figure(figure, folder / f"{name}.png")
    figure.set_layout_engine(None)
    write_figure(figure, folder / f"{name}.svg")
    with use_phone_layout():
        write_figure(add_label(draw(), label), folder / "phone" / f"{name}.png")


def draw_bars(axes: Any, labels: list[str], values: Floats, deviations: Floats) -> None:
    """Draw horizontal bars with whiskers, the first on top."""
    from matplotlib.ticker import FuncFormatter

    positions = np.arange(len(labels))[::-1]
    is_phone = on_phone.get()
    axes.barh(
        positions, values, 0.4 if is_phone else 0.65, xerr=deviations, color="#56B4E9", error_kw={"linewidth": 1.0}
    )
    axes.set_yticks(positions, [""] * len(labels) if is_phone else labels)
    for index, label in zip(positions, labels, strict=True) if is_phone else ():  # above its bar, where there is space
        axes.annotate(label, (0.01, index + 0.22), xycoords=("axes fraction", "data"), fontsize=8, va="bottom",
                      path_effects=plot_style.make_text_outline())  # fmt: skip
    axes.xaxis.set_major_formatter(FuncFormatter(format_count))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def annotate_violations(axes: Any, results: list[Result]) -> None:
    """Annotate the bar of each result with its share of violations, and draw the line of zero regret."""
    for index, result in zip(range(len(results))[::-1], results, strict=True):
        share = float(result.violations.mean() / result.rounds[-1])
        if share > 0.0:
            words, end = f"violates in {share:.0%} of rounds", max(float(result.regret[:, -1].mean()), 0.0)
            if on_phone.get():
                axes.annotate(words, (1.0, index + 0.2), xycoords=("axes fraction", "data"), ha="right", fontsize=8)
            else:
                axes.annotate(words, (end, index), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(0.0, color="black", linewidth=0.8)
