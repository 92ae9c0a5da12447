"""A page that needs nothing else: no script, no request, light and dark, from a phone's width to a desk's."""

import html
from pathlib import Path
from typing import Any

CSS = Path(__file__).with_name("pages.css").read_text(encoding="utf-8")


def document(title: str, body: str, *, narrow: bool = False, css: str = "") -> str:
    """Return a whole page; `title` is words, `body` is HTML already. `narrow`: for reading, not for figures."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>\n"
        f"<title>{html.escape(title)}</title><style>\n{CSS}{css}</style></head>"
        f"<body{' class=narrow' if narrow else ''}>\n{body}\n</body></html>\n"
    )


def picture(source: str, words: str, phone: str = "") -> str:
    """Return an image, such as `style.embedded` gives; `words` say what it shows; `phone`: one for narrow windows."""
    image = f"<img class=drawn alt='{html.escape(words, quote=True)}' src='{source}'>"
    if not phone:
        return image
    return f"<picture><source media='(max-width: 40rem)' srcset='{phone}'>{image}</picture>"


def table(heads: list[str], rows: list[list[Any]], numbers: tuple[int, ...] = ()) -> str:
    """Return a table of cells that are HTML already; `numbers`: which columns stand to the right.

    On a phone every row is a block, in which each cell after the first says what it is.
    """

    def kind(place: int) -> str:
        return " class=n" if place in numbers else ""

    def cell(place: int, words: Any) -> str:
        of = f' data-of="{html.escape(heads[place], quote=True)}"' if place and heads[place] else ""
        return f"<td{kind(place)}{of}>{words}</td>"

    head = "".join(f"<th{kind(place)}>{html.escape(word)}" for place, word in enumerate(heads))
    body = "".join("<tr>" + "".join(cell(p, words) for p, words in enumerate(row)) + "</tr>\n" for row in rows)
    return f"<table class=stacks><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
