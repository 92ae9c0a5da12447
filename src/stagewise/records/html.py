"""HTML for notebooks: escaped, without assets, in the notebook's own colours."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

CELL = "padding:2px 10px;text-align:{side};font-variant-numeric:tabular-nums"
RULE = ";border-bottom:1px solid currentColor"


class Columns(NamedTuple):
    """A table: its titles, its rows, and which columns are numbers, aligned to the right."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Iterable[int] = ()


def render_html(*parts: str | Columns) -> str:
    """Return texts and tables, one below the other; a text keeps its line breaks.

    >>> render_html("a < b")
    '<div><div style="white-space:pre-wrap">a &lt; b</div></div>'
    """
    blocks = [
        f'<div style="white-space:pre-wrap">{escape(part)}</div>' if isinstance(part, str) else render_table(part)
        for part in parts
    ]
    return f"<div>{''.join(blocks)}</div>"


def render_table(table: Columns) -> str:
    right = set(table.right)
    styles = [CELL.format(side="right" if index in right else "left") for index in range(len(table.titles))]
    head = render_row("th", table.titles, [style + RULE for style in styles])
    body = "".join(render_row("td", row, styles) for row in table.rows)
    return f'<table style="border-collapse:collapse"><thead>{head}</thead><tbody>{body}</tbody></table>'


def render_row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    columns = [f'<{tag} style="{style}">{escape(cell)}</{tag}>' for cell, style in zip(cells, styles, strict=True)]
    return f"<tr>{''.join(columns)}</tr>"
