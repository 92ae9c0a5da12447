"""What all our pictures share: colours that colour-blind readers tell apart, plain axes, bands, limits by name.

>>> drawn, grid = figure(1, 2)
>>> band(grid[0, 0], [1, 2], [0.0, 0.0], [0.01, 0.02], [0.02, 0.03], GUARDED, "guarded")
>>> limit(grid[0, 0], 0.02, "opt-out")
>>> plain_axes(grid[0, 0], "opt-outs of a round", "day")
>>> legend_below(drawn, grid[0, 0])
>>> embedded(drawn)[:22]  # for a page that needs nothing else; write_picture(drawn, path) writes a file
'data:image/png;base64,'
"""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.reports.files import write_bytes

# Okabe and Ito's palette, each with its own dashes so that a grey print can still be read.
STYLES: list[tuple[str, Any]] = [
    ("#0072B2", "-"),
    ("#D55E00", (0, (5, 1.5))),
    ("#009E73", (0, (3, 1, 1, 1))),
    ("#CC79A7", (0, (1, 1))),
    ("#56B4E9", (0, (6, 1, 1, 1))),
    ("#E69F00", (0, (4, 1, 1, 1, 1, 1))),
    ("#000000", (0, (2, 2))),
    ("#999999", "-"),
]
# Who is who, in every picture: a policy under its limits, one without any, the safe action, what is done today.
GUARDED, UNGUARDED, SAFE, TODAY = "#0072B2", "#D55E00", "#767676", "#CC79A7"
INK, BAD, DOUBT = "#1a1a1a", "#a02000", "#E69F00"
LONGEST = 40  # letters of a name that a picture shows
DPI = 150  # of files
PAGE_DPI = 170  # of what stands in a page, where many screens show two dots for one


def figure(rows: int = 1, columns: int = 1, width: float = 3.3, height: float = 2.6) -> tuple[Any, Any]:
    """Return a figure and its panels, an array (rows, columns); width and height, in inches, are a panel's."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return drawn, drawn.subplots(rows, columns, squeeze=False)


def panels(count: int, most: int = 3, width: float = 3.3, height: float = 2.6) -> tuple[Any, list[Any]]:
    """Return a figure and so many panels, at most so many beside each other."""
    columns = min(count, most if count != most + 1 else -(-count // 2))  # two and two rather than three and one
    rows = -(-count // columns)
    drawn, grid = figure(rows, columns, width, height)
    for axes in grid.ravel()[count:]:
        axes.remove()
    return drawn, list(grid.ravel()[:count])


def plain_axes(axes: Any, title: str = "", x: str = "", y: str = "", grid: bool = True) -> None:
    """Name a panel and its axes; no box around it, a faint grid behind it."""
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=11)
    if grid:
        axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def count_rounds(axes: Any, word: str = "round") -> None:
    """Let rounds run from edge to edge, in thousands or millions."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel(word)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.margins(x=0)


def band(
    axes: Any,
    x: Any,
    low: Any,
    middle: Any,
    high: Any,
    colour: str = GUARDED,
    label: str = "",
    dashes: Any = "-",
) -> None:
    """Draw a line, and what lies around it."""
    axes.plot(x, middle, color=colour, linestyle=dashes, label=plain(label) or None, linewidth=1.6)
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def runs_band(axes: Any, x: Any, values: Floats, colour: str = GUARDED, label: str = "", dashes: Any = "-") -> None:
    """Draw the mean over runs (runs, x), and where the middle four fifths of them lie."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    band(axes, x, low, values.mean(axis=0), high, colour, label, dashes)


def limit(axes: Any, value: float, name: str = "", at_most: bool = True) -> None:
    """Draw a limit and name it at its line, on the side that is forbidden; call it when all curves are drawn."""
    axes.axhline(value, color="black", linestyle="--", linewidth=1)
    words = f"{plain(name)} {'≤' if at_most else '≥'} {value:g}" if name else f"{value:g}"
    note(axes, value, words, "bottom" if at_most else "top")


def level(axes: Any, value: float, words: str, colour: str = SAFE) -> None:
    """Draw what something is compared with, such as the safe action's own value, and name it at its line."""
    axes.axhline(value, color=colour, linestyle=(0, (1, 1.2)), linewidth=1.3)
    note(axes, value, words, "bottom", colour)


def note(axes: Any, value: float, words: str, side: str = "bottom", colour: str = "black") -> None:
    """Write something above a height (or below: "top"), at the right end, and make room for it."""
    low, high = axes.get_ylim()
    low, high = min(low, value), max(high, value)
    room = 0.12 * (high - low or abs(value) or 1.0)
    axes.set_ylim(min(low, value - room) if side == "top" else low, max(high, value + room) if side != "top" else high)
    axes.annotate(
        words,
        (0.99, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2 if side == "top" else 2),
        textcoords="offset points",
        ha="right",
        va=side,
        fontsize=8,
        color=colour,
        path_effects=halo(),
    )


def halo() -> list[Any]:
    """Return what lets words be read where a line passes behind them."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def legend_below(drawn: Any, axes: Any, columns: int = 4) -> None:
    """Put one legend under all panels, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        drawn.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), columns), frameon=False)


def plain(name: str) -> str:
    """Return a user's own name so that a picture shows it as it is: between two dollars would stand a formula.

    >>> plain("a name that is much longer than a picture has room for")
    'a name that is much longer than a pictu…'
    """
    return (name if len(name) <= LONGEST else name[: LONGEST - 1] + "…").replace("$", r"\$")


def short(value: float, _: int = 0) -> str:
    """Return 1500000 as 1.5M, 20000 as 20k.

    >>> short(1500000), short(20000), short(0.5), short(0)
    ('1.5M', '20k', '0.5', '0')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:g}"


def colours(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Return a colour and dashes for each name."""
    return {name: STYLES[place % len(STYLES)] for place, name in enumerate(names)}


def write_picture(drawn: Any, path: Path) -> None:
    """Write a figure as PNG or SVG, by the file's name, whole or not at all; on white, so that any viewer shows it."""
    if path.suffix == ".png":
        write_bytes(path, png(drawn, DPI))
        return
    buffer = io.BytesIO()
    drawn.savefig(buffer, format=path.suffix[1:])
    write_bytes(path, buffer.getvalue())


def embedded(drawn: Any) -> str:
    """Return a figure as the address of an image, for a page; one that is dark turns its ink (`pages.css`)."""
    return "data:image/png;base64," + base64.b64encode(png(drawn, PAGE_DPI)).decode()


def png(drawn: Any, dpi: int) -> bytes:
    """Return a figure as PNG, in at most 256 colours: lines and bands need no more, and a page gets by with a third."""
    from PIL import Image

    whole, few = io.BytesIO(), io.BytesIO()
    drawn.savefig(whole, format="png", dpi=dpi)
    Image.open(whole).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(few, "png")
    return few.getvalue()
