"""What the figures share: panels on wide paper or for a phone, bands over runs, regret, costs, rewards, bars."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.reports import style
from stagewise.reports.result import Result
from stagewise.reports.style import STYLES, short, write_picture

PHONE, FLAT = 3.9, 0.82  # inches; and how much lower panels are where they stand below each other
on_phone = ContextVar("on_phone", default=False)


@contextmanager
def for_a_phone() -> Iterator[None]:
    """Let figures be drawn in one column."""
    before = on_phone.set(True)
    try:
        yield
    finally:
        on_phone.reset(before)


def panels(
    rows: int,
    columns: int,
    width: float = 3.3,
    height: float = 2.6,
    by_row: bool = False,
    phone: list[float] | None = None,
) -> tuple[Any, Any]:
    """Return a figure and its panels, an array (rows, columns); on a phone below each other, by column or by row.

    `phone` says how high each is there.
    """
    if not on_phone.get():
        return style.figure(rows, columns, width, height)
    from matplotlib.figure import Figure

    heights = phone or [FLAT * height] * (rows * columns)
    figure = Figure(figsize=(PHONE, sum(heights)), layout="constrained")
    grid = figure.subplots(rows * columns, 1, squeeze=False, height_ratios=heights)
    return figure, grid.reshape(rows, columns) if by_row else grid.reshape(columns, rows).T


def band(axes: Any, rounds: Ints, values: Floats, label: str, which: int) -> None:
    """Draw the mean over runs, and one standard deviation to either side."""
    colour, dashes = STYLES[which % len(STYLES)]
    middle, spread = values.mean(axis=0), values.std(axis=0)
    style.band(axes, rounds, middle - spread, middle, middle + spread, colour, label, dashes)


def regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw regrets against rounds."""
    for place, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.regret, label, place)
    finish(axes, "regret")


def cost(axes: Any, results: dict[str, Result], threshold: float | None, which: int = 0) -> None:
    """Draw expected costs against their threshold."""
    for place, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.cost[:, :, which], label, place)
    if threshold is not None:
        axes.set_ylim(bottom=0.0)
        axes.axhline(threshold, color="black", linestyle="--", linewidth=1)
        style.note(axes, threshold, f"threshold {threshold:g}")
    finish(axes, "expected cost")


def reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw expected rewards against the optimum."""
    best = next(iter(results.values()))
    for place, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.reward, label, place)
    axes.plot(best.rounds, best.optimum.mean(axis=0), color="black", linestyle=":", linewidth=1.2)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    style.note(axes, float(best.optimum.mean()), "optimum")
    finish(axes, "expected reward")


def in_rows(curves: dict[float, dict[str, Result]]) -> Any:
    """Return a figure with one row a threshold: regret, cost and reward from left to right."""
    figure, grid = panels(len(curves), 3, by_row=True)
    for row, (threshold, results) in zip(grid, curves.items(), strict=True):
        regret(row[0], results)
        cost(row[1], results, threshold)
        reward(row[2], results)
        row[0].set_title(f"threshold τ = {threshold:g}", loc="left")
    legend_below(figure, grid[0, 0])
    return figure


def finish(axes: Any, label: str) -> None:
    """Name the axes; rounds in millions or thousands, regret with separators."""
    from matplotlib.ticker import FuncFormatter

    title = axes.get_title()
    style.plain_axes(axes, title, y=label)
    style.count_rounds(axes)
    if label == "regret":
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    """Put one legend under all panels, where it covers nothing; on a phone, where that is far away, above them."""
    if on_phone.get():
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 2), frameon=False)
    else:
        style.legend_below(figure, axes, columns)


def labelled(figure: Any, label: str) -> Any:
    """Write a label above all panels, if there is one; on a phone over the legend, which is there."""
    if label and on_phone.get() and figure.legends:
        figure.legends[0].set_title(label)
    elif label:
        figure.suptitle(label, x=0.01, ha="left", fontsize=10)
    return figure


def save(draw: Callable[[], Any], folder: Path, name: str, label: str) -> None:
    """Write a figure as PNG and SVG (what the first arranged, the second need not arrange again), and for a phone."""
    figure = labelled(draw(), label)
    write_picture(figure, folder / f"{name}.png")
    figure.set_layout_engine(None)
    write_picture(figure, folder / f"{name}.svg")
    with for_a_phone():
        write_picture(labelled(draw(), label), folder / "phone" / f"{name}.png")


def bars(axes: Any, labels: list[str], values: Floats, spreads: Floats) -> None:
    """Draw horizontal bars with whiskers, the first on top."""
    from matplotlib.ticker import FuncFormatter

    places = np.arange(len(labels))[::-1]
    small = on_phone.get()
    axes.barh(places, values, 0.4 if small else 0.65, xerr=spreads, color="#56B4E9", error_kw={"linewidth": 1.0})
    axes.set_yticks(places, [""] * len(labels) if small else labels)
    for place, label in zip(places, labels, strict=True) if small else ():  # above its bar, where there is room
        axes.annotate(label, (0.01, place + 0.22), xycoords=("axes fraction", "data"), fontsize=8, va="bottom",
                      path_effects=style.halo())  # fmt: skip
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def violations_beside(axes: Any, results: list[Result]) -> None:
    """Write beside the bar of each result how often it violates, and draw the line where regret is zero."""
    for place, result in zip(range(len(results))[::-1], results, strict=True):
        share = float(result.violations.mean() / result.rounds[-1])
        if share > 0.0:
            words, end = f"violates in {share:.0%} of rounds", max(float(result.regret[:, -1].mean()), 0.0)
            if on_phone.get():
                axes.annotate(words, (1.0, place + 0.2), xycoords=("axes fraction", "data"), ha="right", fontsize=8)
            else:
                axes.annotate(words, (end, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(0.0, color="black", linewidth=0.8)
