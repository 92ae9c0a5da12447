"""Render a study as one self-contained page: question, plot, claims, table, data."""

import html
from collections.abc import Mapping
from typing import Any

from stagewise.reports.style import render_document, render_image, render_table, to_data_uri


def render_page(result: Mapping[str, Any], figure: Any) -> str:
    """Return the page of a result."""
    size, source = result["size"], result["source"]
    body = [
        f"<h1>{html.escape(result['title'])}</h1>",
        f"<p class=quiet>{size['seeds']} seeds, {size['rounds']:,} rounds each, {result['seconds']:g} seconds.</p>",
        render_image(to_data_uri(figure), result.get("caption", result["title"])),
        f"<p class=small>{html.escape(result.get('caption', ''))}</p>",
        "<h2>Claims</h2>",
        render_table(
            ["", "claim", "measured", "holds if"], [format_claim(claim) for claim in result["claims"]], (2, 3)
        ),
        "<h2>The policies</h2>",
        render_rows(result["rows"]),
        *(f"<p>{html.escape(text)}</p>" for text in result.get("remarks", [])),
        "<h2>The data</h2>",
        f"<p>{html.escape(source['package'])} {html.escape(source['version'])}, {html.escape(source['licence'])} "
        f"SHA-256 of {html.escape(source['wheel'])}: <code>{source['digest']}</code>.</p>",
    ]
    return render_document(result["title"], "\n".join(body))


def format_claim(claim: Mapping[str, Any]) -> list[str]:
    """Return the cells of a claim."""
    verdict = "<span class=yes>holds</span>" if claim["holds"] else "<span class=no>does not hold</span>"
    return [verdict, html.escape(claim["message"]), f"{claim['value']:.4g}", html.escape(claim["criterion"])]


def render_rows(rows: list[Mapping[str, Any]]) -> str:
    """Return a table of rows by column; numbers are right-aligned."""
    heads = list(rows[0])
    numbers = tuple(p for p, head in enumerate(heads) if not isinstance(rows[0][head], str))
    return render_table(heads, [[format_cell(row[head]) for head in heads] for row in rows], numbers)


def format_cell(value: Any) -> str:
    """Return a value for a table cell.

    >>> format_cell(0.12345), format_cell(12345), format_cell(None), format_cell("a < b")
    ('0.1235', '12,345', '', 'a &lt; b')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return html.escape(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
