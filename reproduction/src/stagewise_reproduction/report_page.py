"""The report as one HTML page: the verdict, then every figure with its claims; tables are folded."""

import base64
import html
from pathlib import Path

from stagewise.reports import style as pages
from stagewise_reproduction.claim import FAILS, HOLDS, Claim
from stagewise_reproduction.coverage import HEADINGS, list_rows
from stagewise_reproduction.errata import load_errata
from stagewise_reproduction.report import (
    PAPER,
    TITLE,
    Section,
    all_required_hold,
    build_rows,
    describe_section,
    format_value,
    get_headings,
    list_claims,
    summarize,
)

KINDS = {HOLDS: ("yes", "✓"), FAILS: ("no", "✗")}
CSS = """
.claims { list-style: none; margin: 0; padding: 0; font-size: .875rem; line-height: 1.4; }
.claims li { padding: .35rem 0 .35rem 1.5rem; border-bottom: 1px solid var(--line); position: relative; }
.claims li b { position: absolute; left: 0; } .claims li:last-child { border: 0; }
h2 { border-top: 1px solid var(--line); padding-top: 1.6rem; } h2.first { border: 0; margin-top: .8rem; padding: 0; }
nav a { display: inline-block; margin: .15rem .9rem .15rem 0; } nav { line-height: 1.9; }
"""


def render_page(out: Path, size: str, sections: list[Section]) -> str:
    """Return the page."""
    links = "".join(f"<a href='#{section.picture}'>{html.escape(section.title)}</a> " for section in sections)
    claims = list_claims(sections)
    verdict = "yes" if all_required_hold(claims) else "no"
    parts = [
        f"<h1>{TITLE}</h1><p class=small>{PAPER}</p>",
        f"<div class='verdict {verdict}'><p>{html.escape(summarize(size, claims))}</div>",
        *(render_section(out, section, index == 0) for index, section in enumerate(sections)),
        "<h2 id=contents>Contents</h2>",
        f"<nav class=small>{links}<a href='#claims'>All claims</a> <a href='#text'>Claims of the text</a> "
        "<a href='#errata'>Errata</a></nav>",
        render_claims(sections),
        render_coverage(),
        render_errata(sections),
    ]
    return pages.render_document("stagewise: the paper, reproduced", "\n".join(parts), css=CSS)


def render_section(out: Path, section: Section, first: bool) -> str:
    """Return a figure with its claims and its table."""
    known = {erratum.number for erratum in load_errata()}
    numbers = " ".join(f"<a href='#e{n}'>E{n}</a>" for n in section.experiment.errata if n in known)
    rows = [[html.escape(cell) for cell in row] for row in build_rows(section)]
    numeric = tuple(range(2, len(get_headings(section))))
    image = pages.render_image(render_source(out, section.picture), section.title, render_phone_source(out, section))
    return (
        f"<section><h2 id='{section.picture}'{' class=first' if first else ''}>{html.escape(section.title)}</h2>"
        f"<div class=beside><div>{image}"
        f"<p class=small>{html.escape(describe_section(section))} {'Errata: ' + numbers if numbers else ''}</p>"
        f"<details class=small><summary>Every curve in numbers ({len(rows)})</summary>"
        f"{pages.render_table(get_headings(section), rows, numeric)}</details></div>"
        f"<ul class=claims>{''.join(map(render_claim, section.claims))}</ul></div></section>"
    )


def render_source(out: Path, name: str) -> str:
    """Return a figure's file as a data URL."""
    content = (out / "figures" / f"{name}.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def render_phone_source(out: Path, section: Section) -> str:
    """Return the same figure for a phone."""
    return render_source(out, f"phone/{section.picture}")


def render_claim(claim: Claim) -> str:
    """Return a claim as a list item beside its figure."""
    kind, mark = KINDS.get(claim.verdict, ("some", "≈"))
    remark = f"; {html.escape(claim.remark)}" if claim.remark else ""
    return (
        f"<li><b class={kind} title='{claim.verdict}'>{mark}</b>{html.escape(claim.name)}: "
        f"<span class=n>{html.escape(format_value(claim.value))}</span> "
        f"<span class=quiet>({html.escape(claim.criterion)})"
        f"{remark}</span>{f' <span class={kind}>{claim.verdict}</span>' if claim.verdict != HOLDS else ''}</li>"
    )


def render_claims(sections: list[Section]) -> str:
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
                    html.escape(format_value(claim.value)),
                    html.escape(claim.criterion),
                    f"<span class={kind}>{claim.verdict}{must}</span>",
                ]
            )
    table = pages.render_table(["experiment", "claim", "value", "criterion", "verdict"], rows, (2,))
    return (
        f"<h2 id=claims>All claims</h2><details><summary>The {len(rows)} claims in one table</summary>{table}</details>"
    )


def render_coverage() -> str:
    """Return the table of the text's claims."""
    table = pages.render_table(list(HEADINGS), [[html.escape(cell) for cell in row] for row in list_rows()])
    return f"<h2 id=text>Claims of the text</h2><div class=small>{table}</div>"


def render_errata(sections: list[Section]) -> str:
    """Return the errata, each with links to the figures that it affects."""
    rows = []
    for erratum in load_errata():
        used = [section for section in sections if erratum.number in section.experiment.errata]
        links = " ".join(f"<a href='#{section.picture}'>{html.escape(section.picture)}</a>" for section in used)
        name = f"<b id='e{erratum.number}'>E{erratum.number}</b>"
        rows.append([name, *(html.escape(cell) for cell in erratum[1:5]), links])
    table = pages.render_table(["", "where", "it says", "why that is wrong", "stagewise", "matters to"], rows)
    about = "Points that an implementation has to decide; docs/explanation/errata.md has the formulas."
    return f"<h2 id=errata>Errata</h2><p class=small>{about}</p><div class=small>{table}</div>"
