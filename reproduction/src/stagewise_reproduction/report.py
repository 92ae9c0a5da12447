"""The report: one page of HTML that needs nothing else, and the same as Markdown."""

import base64
import html
from pathlib import Path
from typing import NamedTuple

from stagewise.reports.files import write_text
from stagewise.reports.result import Result
from stagewise_reproduction.cell import SEED
from stagewise_reproduction.claim import FAILS, HOLDS, Claim
from stagewise_reproduction.errata import Erratum, errata
from stagewise_reproduction.experiment import Experiment
from stagewise_reproduction.paper.figure_1.claims import FULL, PUBLISHED

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 66rem; margin: 0 auto; padding: 1rem 1rem 4rem; color: #111; }
h1 { margin: 1.2rem 0 .3rem; } h2 { margin-top: 3rem; border-bottom: 2px solid #111; } h3 { margin-top: 1.6rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
td, th { padding: .3rem .6rem; text-align: left; vertical-align: top; } th { white-space: nowrap; }
tr { border-bottom: 1px solid #ccc; } .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
img { width: 100%; min-width: 42rem; height: auto; } .no { color: #a02000; font-weight: bold; }
.some { color: #7a5200; font-weight: bold; }
.yes { color: #005a32; } .small { font-size: .88rem; color: #333; }
nav a { display: inline-block; margin-right: .9rem; }
@media print { nav { display: none; } h2 { break-before: page; } }
"""


class Section(NamedTuple):
    """One experiment under one preset."""

    experiment: Experiment
    preset: str
    picture: str
    results: dict[str, Result]
    claims: list[Claim]

    @property
    def title(self) -> str:
        """The heading; what an experiment does not distinguish is not named."""
        alone = len(self.experiment.presets) == 1
        return self.experiment.title if alone else f"{self.experiment.title} — preset {self.preset}"


def shown(value: float | str) -> str:
    """Return a claim's value as people read it."""
    return value if isinstance(value, str) else f"{value:,.6g}"


def rows_of(section: Section) -> list[list[str]]:
    """Return the table under a figure: what was played, what came out, how fast."""
    rows = []
    for result in section.results.values():
        settings = dict(result.manifest["cell"])
        policy = settings.pop("policy")
        settings.pop("preset")
        last, rounds = result.regret[:, -1], int(result.rounds[-1])
        speed = rounds * len(result.runs) / max(result.manifest["seconds"], 1e-9)
        published = PUBLISHED.get((policy, settings.get("tau", 0.0))) if compares(section, rounds) else None
        known = [f"{published[0]:,.0f} ± {published[1]:,.0f}", f"{last.mean() / published[0]:.3f}"] if published else []
        rows.append(
            [
                policy,
                ", ".join(f"{'τ' if name == 'tau' else name} = {value}" for name, value in settings.items()),
                f"{last.mean():,.0f} ± {last.std():,.0f}",
                *(known or (["", ""] if compares(section, rounds) else [])),
                f"{int(result.violations.sum()):,}",
                f"{len(result.runs)} × {rounds:,}",
                f"{result.manifest['seconds']:.1f}",
                f"{speed / 1e6:.1f}",
            ]
        )
    return rows


def described(section: Section) -> str:
    """Return what is played, and from which random numbers."""
    runs = len(next(iter(section.results.values())).runs)
    return f"{section.experiment.words} Seed {SEED}, runs 0 to {runs - 1}."


def compares(section: Section, rounds: int) -> bool:
    """Say whether published regrets stand beside ours."""
    ten = section.experiment.name in ("figure-1", "figure-linear-d10")
    return ten and section.preset == "authors" and rounds == FULL


def headings(section: Section) -> list[str]:
    """Return the heads of that table."""
    rounds = int(next(iter(section.results.values())).rounds[-1])
    known = ["published", "ratio"] if compares(section, rounds) else []
    return ["policy", "settings", "final regret", *known, "violations", "runs × rounds", "seconds", "Mrounds/s"]


def write(out: Path, size: str, sections: list[Section]) -> None:
    """Write report.html and report.md beside the figures."""
    write_text(out / "report.html", page(out, size, sections))
    write_text(out / "report.md", text(size, sections))


SMALL = " So few rounds show only that everything works; judge the claims at the size quick or full."


def summary(size: str, sections: list[Section]) -> str:
    """Return one sentence over all claims."""
    claims = [claim for section in sections for claim in section.claims]
    kept = sum(claim.verdict == HOLDS for claim in claims)
    lost = sum(claim.verdict == FAILS for claim in claims)
    rest = len(claims) - kept - lost
    return (
        f"Size {size}: of {len(claims)} claims {kept} hold, {rest} hold with a remark, {lost} do not. "
        "Nothing is tuned until it holds." + (SMALL if size == "smoke" else "")
    )


def page(out: Path, size: str, sections: list[Section]) -> str:
    """Return the HTML page."""
    links = "".join(f"<a href='#{section.picture}'>{html.escape(section.title)}</a> " for section in sections)
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        "<link rel=icon href='data:,'>",
        f"<title>stagewise: the paper, reproduced</title><style>{STYLE}</style></head><body>",
        "<h1>Contextual bandits with stage-wise constraints, reproduced</h1>",
        "<p>Pacchiano, Ghavamzadeh, Bartlett, JMLR 26 (2025): every experiment, every claim, by stagewise.</p>",
        f"<p><b>{html.escape(summary(size, sections))}</b></p>",
        f"<nav class=small>{links}<a href='#errata'>Errata</a></nav>",
        "<h2 id=claims>Claims</h2>",
        claims_table(sections),
    ]
    parts += [section_html(out, section) for section in sections]
    parts += [errata_html(sections), "</body></html>\n"]
    return "\n".join(parts)


def claims_table(sections: list[Section]) -> str:
    """Return all claims as an HTML table."""
    classes = {HOLDS: "yes", FAILS: "no"}
    rows = []
    for section in sections:
        for claim in section.claims:
            remark = f"<div class=small>{html.escape(claim.remark)}</div>" if claim.remark else ""
            must = " (must)" if claim.must_hold else ""
            rows.append(
                f"<tr><td><a href='#{section.picture}'>{html.escape(section.picture)}</a></td>"
                f"<td>{html.escape(claim.name)}{remark}</td><td class=n>{html.escape(shown(claim.value))}</td>"
                f"<td>{html.escape(claim.criterion)}</td>"
                f"<td class={classes.get(claim.verdict, 'some')}>{claim.verdict}{must}</td></tr>"
            )
    head = "<tr><th>experiment<th>claim<th>value<th>criterion<th>verdict</tr>"
    return f"<div class=scroll><table>{head}{''.join(rows)}</table></div>"


def section_html(out: Path, section: Section) -> str:
    """Return a figure with what belongs to it."""
    picture = base64.b64encode((out / "figures" / f"{section.picture}.png").read_bytes()).decode()
    known = {erratum.number for erratum in errata()}
    numbers = " ".join(f"<a href='#e{n}'>E{n}</a>" for n in section.experiment.errata if n in known)
    cells = "".join(
        "<tr>" + "".join(f"<td{' class=n' if i > 1 else ''}>{html.escape(c)}</td>" for i, c in enumerate(row)) + "</tr>"
        for row in rows_of(section)
    )
    head = "".join(f"<th>{name}" for name in headings(section))
    return (
        f"<h2 id='{section.picture}'>{html.escape(section.title)}</h2>"
        f"<div class=scroll><img alt='{html.escape(section.title, quote=True)}' "
        f"src='data:image/png;base64,{picture}'></div>"
        f"<p class=small>{html.escape(described(section))} {'Errata: ' + numbers if numbers else ''}</p>"
        f"<div class=scroll><table><tr>{head}</tr>{cells}</table></div>"
    )


def errata_html(sections: list[Section]) -> str:
    """Return the list of errata, each linked to the figures it matters to."""
    rows = []
    for erratum in errata():
        used = [section for section in sections if erratum.number in section.experiment.errata]
        links = " ".join(f"<a href='#{section.picture}'>{html.escape(section.picture)}</a>" for section in used)
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in erratum[1:5])
        rows.append(f"<tr id='e{erratum.number}'><td>E{erratum.number}</td>{cells}<td>{links}</td></tr>")
    head = "<tr><th><th>where<th>it says<th>why that is wrong<th>stagewise<th>matters to</tr>"
    about = "<p class=small>What an implementation has to settle; docs/errata.md has the formulas.</p>"
    return f"<h2 id=errata>Errata</h2>{about}<div class=scroll><table class=small>{head}{''.join(rows)}</table></div>"


def text(size: str, sections: list[Section]) -> str:
    """Return the same as Markdown."""
    lines = ["# Contextual bandits with stage-wise constraints, reproduced", "", summary(size, sections), ""]
    lines += ["| experiment | claim | value | criterion | verdict |", "|---|---|---|---|---|"]
    for section in sections:
        for claim in section.claims:
            name = f"{claim.name} ({claim.remark})" if claim.remark else claim.name
            lines.append(f"| {section.picture} | {name} | {shown(claim.value)} | {claim.criterion} | {claim.verdict} |")
    for section in sections:
        lines += ["", f"## {section.title}", "", f"![{section.title}](figures/{section.picture}.png)", ""]
        lines += [described(section), "", "| " + " | ".join(headings(section)) + " |"]
        lines += ["|" + "---|" * len(headings(section)), *("| " + " | ".join(row) + " |" for row in rows_of(section))]
    lines += ["", "## Errata", "", *(erratum_line(erratum) for erratum in errata())]
    return "\n".join(lines) + "\n"


def erratum_line(erratum: Erratum) -> str:
    """Return one erratum as an item of a list."""
    return f"- **E{erratum.number}** {erratum.where}: {erratum.says}. {erratum.why}. Here: {erratum.ours}."
