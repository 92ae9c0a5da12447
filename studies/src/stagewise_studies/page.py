"""A study as a page that needs nothing else: the question, the picture, what it says, the table, the data."""

import html
from collections.abc import Mapping
from typing import Any

from stagewise.reports.pages import document, picture, table
from stagewise.reports.style import embedded


def page(told: Mapping[str, Any], figure: Any) -> str:
    """Return the page of what came out."""
    size, source = told["size"], told["source"]
    body = [
        f"<h1>{html.escape(told['title'])}</h1>",
        f"<p class=quiet>{size['seeds']} seeds, {size['rounds']:,} rounds each, {told['seconds']:g} seconds.</p>",
        picture(embedded(figure), told.get("caption", told["title"])),
        f"<p class=small>{html.escape(told.get('caption', ''))}</p>",
        "<h2>What it says</h2>",
        table(["", "claim", "measured", "holds if"], [claim_row(claim) for claim in told["claims"]], (2, 3)),
        "<h2>The policies</h2>",
        rows_table(told["rows"]),
        *(f"<p>{html.escape(words)}</p>" for words in told.get("remarks", [])),
        "<h2>The data</h2>",
        f"<p>{html.escape(source['package'])} {html.escape(source['version'])}, {html.escape(source['licence'])} "
        f"SHA-256 of {html.escape(source['wheel'])}: <code>{source['digest']}</code>.</p>",
    ]
    return document(told["title"], "\n".join(body))


def claim_row(claim: Mapping[str, Any]) -> list[str]:
    """Return a claim's cells."""
    word = "<span class=yes>holds</span>" if claim["holds"] else "<span class=no>does not hold</span>"
    return [word, html.escape(claim["sentence"]), f"{claim['value']:.4g}", html.escape(claim["criterion"])]


def rows_table(rows: list[Mapping[str, Any]]) -> str:
    """Return a table of rows that name their columns; numbers stand to the right."""
    heads = list(rows[0])
    numbers = tuple(p for p, head in enumerate(heads) if not isinstance(rows[0][head], str))
    return table(heads, [[cell(row[head]) for head in heads] for row in rows], numbers)


def cell(value: Any) -> str:
    """Return a value as a cell shows it.

    >>> cell(0.12345), cell(12345), cell(None), cell("a < b")
    ('0.1235', '12,345', '', 'a &lt; b')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return html.escape(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
