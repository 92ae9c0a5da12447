"""Small pieces of HTML for notebooks: escaped, without assets, in the notebook's own colours, light or dark."""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:2px 10px;text-align:{side};font-variant-numeric:tabular-nums"
RULE = "border-bottom:1px solid currentColor"  # of whatever colour text has there


class Html(str):
    """Text that is HTML already."""


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Html:
    """Return a table; the first `texts` columns are text, which stands left, the others numbers, which stand right.

    >>> "<b>" in html_table(["name", "n"], [["<b>", "1"]])
    False
    """
    sides = ["left" if place < texts else "right" for place in range(len(heads))]
    top = line_of("th", heads, sides, f";{RULE}")
    body = "".join(line_of("td", row, sides) for row in rows)
    return Html(f'<table style="border-collapse:collapse"><thead>{top}</thead><tbody>{body}</tbody></table>')


def line_of(tag: str, cells: Sequence[str], sides: Sequence[str], style: str = "") -> str:
    """Return one line of a table."""
    told = [
        f'<{tag} style="{CELL.format(side=side)}{style}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    ]
    return f"<tr>{''.join(told)}</tr>"


def page_of(*parts: str) -> str:
    """Return parts below each other; text is escaped and keeps its lines.

    >>> page_of("a < b")
    '<div><div style="white-space:pre-wrap">a &lt; b</div></div>'
    """
    told = [
        part if isinstance(part, Html) else f'<div style="white-space:pre-wrap">{escape(part)}</div>' for part in parts
    ]
    return f"<div>{''.join(told)}</div>"
