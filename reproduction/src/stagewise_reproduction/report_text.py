"""The report as Markdown, in the order of the page."""

from stagewise_reproduction.claim import Claim
from stagewise_reproduction.coverage import HEADS
from stagewise_reproduction.coverage import rows as coverage_rows
from stagewise_reproduction.errata import Erratum, errata
from stagewise_reproduction.report import PAPER, TITLE, Section, claims_of, described, headings, rows_of, shown, summary


def text(size: str, sections: list[Section]) -> str:
    """Return the text."""
    lines = [f"# {TITLE}", "", f"**{summary(size, claims_of(sections))}**", "", PAPER]
    for section in sections:
        lines += ["", f"## {section.title}", "", f"![{section.title}](figures/{section.picture}.png)", ""]
        lines += [*map(claim_line, section.claims), "", described(section), ""]
        lines += [
            "<details><summary>Every curve in numbers</summary>",
            "",
            *tabled(headings(section), rows_of(section)),
        ]
        lines += ["", "</details>"]
    rows = [
        [section.picture, claim.name, shown(claim.value), claim.criterion, claim.verdict]
        for section in sections
        for claim in section.claims
    ]
    lines += ["", "## All claims", "", "<details><summary>In one table</summary>", ""]
    lines += [*tabled(["experiment", "claim", "value", "criterion", "verdict"], rows), "", "</details>"]
    lines += ["", "## Claims of the text", "", *tabled(list(HEADS), coverage_rows())]
    lines += ["", "## Errata", "", *map(erratum_line, errata())]
    return "\n".join(lines) + "\n"


def tabled(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def claim_line(claim: Claim) -> str:
    """Return one claim as an item of a list."""
    remark = f"; {claim.remark}" if claim.remark else ""
    return f"- **{claim.verdict}**: {claim.name}: {shown(claim.value)} ({claim.criterion}){remark}"


def erratum_line(erratum: Erratum) -> str:
    """Return one erratum as an item of a list."""
    return f"- **E{erratum.number}** {erratum.where}: {erratum.says}. {erratum.why}. Here: {erratum.ours}."
