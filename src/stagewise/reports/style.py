"""The style of plots (colours for colour-blind readers, plain axes, bands, limits) and of self-contained pages.

>>> figure, grid = make_figure(1, 2)
>>> draw_band(grid[0, 0], [1, 2], [0.0, 0.0], [0.01, 0.02], [0.02, 0.03], GUARDED, "guarded")
>>> draw_limit_line(grid[0, 0], 0.02, "opt-out")
>>> format_axes(grid[0, 0], "opt-outs of a round", "day")
>>> add_legend_below(figure, grid[0, 0])
>>> to_data_uri(figure)[:22]  # for a page that needs nothing else; write_figure(figure, path) writes a file
'data:image/png;base64,'
"""

import base64
import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.files.paths import write_bytes

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
# Colours: a policy with limits, one without, the safe action, today's practice.
GUARDED, UNGUARDED, SAFE, TODAY = "#0072B2", "#D55E00", "#767676", "#CC79A7"
INK, BAD, WARNING = "#1a1a1a", "#a02000", "#E69F00"
MAX_LABEL = 40  # letters of a name in a plot
DPI = 150  # of files
PICTURES = (".png", ".svg")  # suffixes of files
PAGE_DPI = 170  # of plots in pages, for high-resolution screens


def make_figure(rows: int = 1, columns: int = 1, width: float = 3.3, height: float = 2.6) -> tuple[Any, Any]:
    """Return a figure and its panels, an array (rows, columns); width and height, in inches, are a panel's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def make_panels(count: int, most: int = 3, width: float = 3.3, height: float = 2.6) -> tuple[Any, list[Any]]:
    """Return a figure and `count` panels, at most `most` in a row."""
    columns = min(count, most if count != most + 1 else -(-count // 2))  # two and two rather than three and one
    rows = -(-count // columns)
    figure, grid = make_figure(rows, columns, width, height)
    for axes in grid.ravel()[count:]:
        axes.remove()
    return figure, list(grid.ravel()[:count])


def format_axes(axes: Any, title: str = "", x: str = "", y: str = "", grid: bool = True) -> None:
    """Set title, labels and a faint grid, without a box."""
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=11)
    if grid:
        axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def format_round_axis(axes: Any, word: str = "round") -> None:
    """Format an axis of rounds, in thousands or millions, without margins."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel(word)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(format_count))
    axes.margins(x=0)


def draw_band(
    axes: Any,
    x: Any,
    low: Any,
    middle: Any,
    high: Any,
    colour: str = GUARDED,
    label: str = "",
    dashes: Any = "-",
) -> None:
    axes.plot(x, middle, color=colour, linestyle=dashes, label=escape_label(label) or None, linewidth=1.6)
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def draw_runs_band(
    axes: Any, x: Any, values: Floats, colour: str = GUARDED, label: str = "", dashes: Any = "-"
) -> None:
    """Draw the mean over runs (runs, x), and a band with the middle 80 % of them."""
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    draw_band(axes, x, low, values.mean(axis=0), high, colour, label, dashes)


def draw_limit_line(axes: Any, value: float, name: str = "", at_most: bool = True) -> None:
    """Draw a limit with a label on the forbidden side; call it after all curves are drawn."""
    axes.axhline(value, color="black", linestyle="--", linewidth=1)
    text = f"{escape_label(name)} {'≤' if at_most else '≥'} {value:g}" if name else f"{value:g}"
    annotate_line(axes, value, text, "bottom" if at_most else "top")


def draw_reference_line(axes: Any, value: float, text: str, colour: str = SAFE) -> None:
    """Draw a reference value, such as the safe action's, with a label."""
    axes.axhline(value, color=colour, linestyle=(0, (1, 1.2)), linewidth=1.3)
    annotate_line(axes, value, text, "bottom", colour)


def annotate_line(axes: Any, value: float, text: str, side: str = "bottom", colour: str = "black") -> None:
    """Write a label above a height (or below it: "top"), at the right end, and make room for it."""
    low, high = axes.get_ylim()
    low, high = min(low, value), max(high, value)
    room = 0.12 * (high - low or abs(value) or 1.0)
    axes.set_ylim(min(low, value - room) if side == "top" else low, max(high, value + room) if side != "top" else high)
    axes.annotate(
        text,
        (0.99, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2 if side == "top" else 2),
        textcoords="offset points",
        ha="right",
        va=side,
        fontsize=8,
        color=colour,
        path_effects=make_text_outline(),
    )


def make_text_outline() -> list[Any]:
    """Return an outline that keeps text readable over lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


def add_legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), columns), frameon=False)


def escape_label(name: str) -> str:
    """Return a name for a plot: shortened, and with dollar signs escaped."""
    return (name if len(name) <= MAX_LABEL else name[: MAX_LABEL - 1] + "…").replace("$", r"\$")


def format_count(value: float, _: int = 0) -> str:
    """Return 1500000 as 1.5M, 20000 as 20k."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:g}"


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure atomically as PNG or SVG, by the file's suffix."""
    if path.suffix == ".png":
        write_bytes(path, to_png(figure, DPI))
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:])
    write_bytes(path, buffer.getvalue())


def to_data_uri(figure: Any) -> str:
    """Return a figure as a data URI for a page; dark pages invert it (`pages.css`)."""
    return "data:image/png;base64," + base64.b64encode(to_png(figure, PAGE_DPI)).decode()


def to_png(figure: Any, dpi: int) -> bytes:
    """Return a figure as PNG with at most 256 colours, which is a third of the size."""
    from PIL import Image

    full, reduced = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=dpi)
    Image.open(full).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(reduced, "png")
    return reduced.getvalue()


CSS = Path(__file__).with_name("pages.css").read_text(encoding="utf-8")


def render_document(title: str, body: str, *, narrow: bool = False, css: str = "") -> str:
    """Return a page; `title` is text and `body` is HTML. `narrow`: for reading."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>\n"
        f"<title>{html.escape(title)}</title><style>\n{CSS}{css}</style></head>"
        f"<body{' class=narrow' if narrow else ''}>\n{body}\n</body></html>\n"
    )


def render_image(source: str, text: str, phone: str = "") -> str:
    """Return an image, such as `to_data_uri` gives; `words` say what it shows; `phone`: one for narrow windows."""
    image = f"<img class=drawn alt='{html.escape(text, quote=True)}' src='{source}'>"
    if not phone:
        return image
    return f"<picture><source media='(max-width: 40rem)' srcset='{phone}'>{image}</picture>"


def render_table(heads: list[str], rows: list[list[Any]], numbers: tuple[int, ...] = ()) -> str:
    """Return a table of HTML cells; the columns in `numbers` are right-aligned.

    On a phone every row is a block, in which each cell after the first has a label.
    """

    def get_class(index: int) -> str:
        return " class=n" if index in numbers else ""

    def cell(index: int, text: Any) -> str:
        label = f' data-of="{html.escape(heads[index], quote=True)}"' if index and heads[index] else ""
        return f"<td{get_class(index)}{label}>{text}</td>"

    head = "".join(f"<th{get_class(index)}>{html.escape(head_text)}" for index, head_text in enumerate(heads))
    body = "".join("<tr>" + "".join(cell(p, text) for p, text in enumerate(row)) + "</tr>\n" for row in rows)
    return f"<table class=stacks><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
