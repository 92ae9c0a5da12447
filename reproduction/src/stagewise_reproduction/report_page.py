"""The report as one page: its verdict, then every figure with its claims beside it; tables are folded."""

import base64
import html
from pathlib import Path

from stagewise.reports import pages
from stagewise_reproduction.claim import FAILS, HOLDS, Claim
from stagewise_reproduction.coverage import HEADS, rows
from stagewise_reproduction.errata import errata
from stagewise_reproduction.report import (
    PAPER,
    TITLE,
    Section,
    claims_of,
    described,
    headings,
    rows_of,
    shown,
    summary,
    whole,
)

KINDS = {HOLDS: ("yes", "✓"), FAILS: ("no", "✗")}
CSS = """
.claims { list-style: none; margin: 0; padding: 0; font-size: .875rem; line-height: 1.4; }
.claims li { padding: .35rem 0 .35rem 1.5rem; border-bottom: 1px solid var(--line); position: relative; }
.claims li b { position: absolute; left: 0; } .claims li:last-child { border: 0; }
h2 { border-top: 1px solid var(--line); padding-top: 1.6rem; } h2.first { border: 0; margin-top: .8rem; padding: 0; }
nav a { display: inline-block; margin: .15rem .9rem .15rem 0; } nav { line-height: 1.9; }
"""


def page(out: Path, size: str, sections: list[Section]) -> str:
    """Return the page."""
    links = "".join(f"<a href='#{section.picture}'>{html.escape(section.title)}</a> " for section in sections)
    claims = claims_of(sections)
    parts = [
        f"<h1>{TITLE}</h1><p class=small>{PAPER}</p>",
        f"<div class='verdict {'yes' if whole(claims) else 'no'}'><p>{html.escape(summary(size, claims))}</div>",
        *(section_html(out, section, place == 0) for place, section in enumerate(sections)),
        "<h2 id=contents>Contents</h2>",
        f"<nav class=small>{links}<a href='#claims'>All claims</a> <a href='#text'>Claims of the text</a> "
        "<a href='#errata'>Errata</a></nav>",
        claims_html(sections),
        coverage_html(),
        errata_html(sections),
    ]
    return pages.document("stagewise: the paper, reproduced", "\n".join(parts), css=CSS)


def section_html(out: Path, section: Section, first: bool) -> str:
    """Return a figure, its claims beside it, and what belongs to it."""
    known = {erratum.number for erratum in errata()}
    numbers = " ".join(f"<a href='#e{n}'>E{n}</a>" for n in section.experiment.errata if n in known)
    rows = [[html.escape(cell) for cell in row] for row in rows_of(section)]
    numeric = tuple(range(2, len(headings(section))))
    return (
        f"<section><h2 id='{section.picture}'{' class=first' if first else ''}>{html.escape(section.title)}</h2>"
        f"<div class=beside><div>{pages.picture(source(out, section.picture), section.title, phone(out, section))}"
        f"<p class=small>{html.escape(described(section))} {'Errata: ' + numbers if numbers else ''}</p>"
        f"<details class=small><summary>Every curve in numbers ({len(rows)})</summary>"
        f"{pages.table(headings(section), rows, numeric)}</details></div>"
        f"<ul class=claims>{''.join(map(claim_html, section.claims))}</ul></div></section>"
    )


def source(out: Path, name: str) -> str:
    """Return a figure's file as the address of an image."""
    content = (out / "figures" / f"{name}.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def phone(out: Path, section: Section) -> str:
    """Return the same figure for a phone."""
    return source(out, f"phone/{section.picture}")


def claim_html(claim: Claim) -> str:
    """Return a claim as people read it beside its figure."""
    kind, mark = KINDS.get(claim.verdict, ("some", "≈"))
    remark = f"; {html.escape(claim.remark)}" if claim.remark else ""
    return (
        f"<li><b class={kind} title='{claim.verdict}'>{mark}</b>{html.escape(claim.name)}: "
        f"<span class=n>{html.escape(shown(claim.value))}</span> <span class=quiet>({html.escape(claim.criterion)})"
        f"{remark}</span>{f' <span class={kind}>{claim.verdict}</span>' if claim.verdict != HOLDS else ''}</li>"
    )


def claims_html(sections: list[Section]) -> str:
    """Return all claims as one folded table."""
    rows = []
    for section in sections:
        for claim in section.claims:
            remark = f"<div class=small>{html.escape(claim.remark)}</div>" if claim.remark else ""
            kind, must = KINDS.get(claim.verdict, ("some", ""))[0], " (must)" if claim.must_hold else ""
            rows.append(
                [
                    f"<a href='#{section.picture}'>{html.escape(section.picture)}</a>",
                    f"{html.escape(claim.name)}{remark}",
                    html.escape(shown(claim.value)),
                    html.escape(claim.criterion),
                    f"<span class={kind}>{claim.verdict}{must}</span>",
                ]
            )
    table = pages.table(["experiment", "claim", "value", "criterion", "verdict"], rows, (2,))
    return (
        f"<h2 id=claims>All claims</h2><details><summary>The {len(rows)} claims in one table</summary>{table}</details>"
    )


def coverage_html() -> str:
    """Return which claims of the paper's text are checked, and which cannot be."""
    table = pages.table(list(HEADS), [[html.escape(cell) for cell in row] for row in rows()])
    return f"<h2 id=text>Claims of the text</h2><div class=small>{table}</div>"


def errata_html(sections: list[Section]) -> str:
    """Return the list of errata, each linked to the figures it matters to."""
    rows = []
    for erratum in errata():
        used = [section for section in sections if erratum.number in section.experiment.errata]
        links = " ".join(f"<a href='#{section.picture}'>{html.escape(section.picture)}</a>" for section in used)
        name = f"<b id='e{erratum.number}'>E{erratum.number}</b>"
        rows.append([name, *(html.escape(cell) for cell in erratum[1:5]), links])
    table = pages.table(["", "where", "it says", "why that is wrong", "stagewise", "matters to"], rows)
    about = "What an implementation has to settle; docs/explanation/errata.md has the formulas."
    return f"<h2 id=errata>Errata</h2><p class=small>{about}</p><div class=small>{table}</div>"
