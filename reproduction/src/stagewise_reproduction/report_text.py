"""The report as Markdown, in the order of the page."""

from stagewise_reproduction.claim import Claim
from stagewise_reproduction.coverage import HEADINGS
from stagewise_reproduction.coverage import list_rows as coverage_rows
from stagewise_reproduction.errata import Erratum, load_errata
from stagewise_reproduction.report import (
    PAPER,
    TITLE,
    Section,
    build_rows,
    describe_section,
    format_value,
    get_headings,
    list_claims,
    summarize,
)


def render_text(size: str, sections: list[Section]) -> str:
    """Return the text."""
    lines = [f"# {TITLE}", "", f"**{summarize(size, list_claims(sections))}**", "", PAPER]
    for section in sections:
        lines += ["", f"## {section.title}", "", f"![{section.title}](figures/{section.picture}.png)", ""]
        lines += [*map(format_claim, section.claims), "", describe_section(section), ""]
        lines += [
            "<details><summary>Every curve in numbers</summary>",
            "",
            *build_table(get_headings(section), build_rows(section)),
        ]
        lines += ["", "</details>"]
    rows = [
        [section.picture, claim.name, format_value(claim.value), claim.criterion, claim.verdict]
        for section in sections
        for claim in section.claims
    ]
    lines += ["", "## All claims", "", "<details><summary>In one table</summary>", ""]
    lines += [*build_table(["experiment", "claim", "value", "criterion", "verdict"], rows), "", "</details>"]
    lines += ["", "## Claims of the text", "", *build_table(list(HEADINGS), coverage_rows())]
    lines += ["", "## Errata", "", *map(format_erratum, load_errata())]
    return "\n".join(lines) + "\n"


def build_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def format_claim(claim: Claim) -> str:
    """Return one claim as an item of a list."""
    remark = f"; {claim.remark}" if claim.remark else ""
    return f"- **{claim.verdict}**: {claim.name}: {format_value(claim.value)} ({claim.criterion}){remark}"


def format_erratum(erratum: Erratum) -> str:
    """Return one erratum as an item of a list."""
    return f"- **E{erratum.number}** {erratum.where}: {erratum.says}. {erratum.why}. Here: {erratum.ours}."
