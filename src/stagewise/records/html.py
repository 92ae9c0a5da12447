"""HTML for notebooks: escaped, without assets, in the notebook's own colours."""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:2px 10px;text-align:{side};font-variant-numeric:tabular-nums"
RULE = "border-bottom:1px solid currentColor"


class Html(str):
    """Text that is already HTML."""


def build_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Html:
    """Return a table; the first `texts` columns are left-aligned text, the others right-aligned numbers.

    >>> "<b>" in build_table(["name", "n"], [["<b>", "1"]])
    False
    """
    sides = ["left" if column < texts else "right" for column in range(len(heads))]
    top = build_row("th", heads, sides, f";{RULE}")
    body = "".join(build_row("td", row, sides) for row in rows)
    return Html(f'<table style="border-collapse:collapse"><thead>{top}</thead><tbody>{body}</tbody></table>')


def build_row(tag: str, cells: Sequence[str], sides: Sequence[str], style: str = "") -> str:
    """Return one row of a table."""
    columns = [
        f'<{tag} style="{CELL.format(side=side)}{style}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    ]
    return f"<tr>{''.join(columns)}</tr>"


def build_page(*parts: str) -> str:
    """Return the parts one below the other; text is escaped and keeps its line breaks.

    >>> build_page("a < b")
    '<div><div style="white-space:pre-wrap">a &lt; b</div></div>'
    """
    blocks = [
        part if isinstance(part, Html) else f'<div style="white-space:pre-wrap">{escape(part)}</div>' for part in parts
    ]
    return f"<div>{''.join(blocks)}</div>"
