"""Self-contained pages: no scripts, no requests, light and dark, for phones and desktops."""

import html
from pathlib import Path
from typing import Any

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
