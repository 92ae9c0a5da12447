"""The report as one page of HTML that needs nothing else, and the same as Markdown."""

import base64
import html
from pathlib import Path

from stagewise.experiments.figure_1.claims import Claim
from stagewise.experiments.figure_1.plan import SIZES

SETTINGS = (
    "d = 10, ten rays from the zero vector, noise N(0, 1), δ = 0.01 split over reward and cost, λ = 1, the paper's "
    "radius, no clipping, seed 0. The paper states neither its noise nor its δ. Bands: one standard deviation."
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
td, th { padding: 0.3rem 0.6rem; text-align: left; }
tr { border-bottom: 1px solid #ccc; } img { max-width: 100%; } .no { color: #a00; font-weight: bold; }
"""


def write(out: Path, size: str, claims: list[Claim]) -> None:
    """Write report.html and report.md beside the figures."""
    rounds, runs = SIZES[size]
    about = f"{rounds:,} rounds, {runs} runs a curve. {SETTINGS}"
    picture = base64.b64encode((out / "figures" / "figure-1.png").read_bytes()).decode()
    rows = "".join(
        f"<tr><td>{html.escape(c.name)}</td><td>{html.escape(c.value)}</td><td>{html.escape(c.criterion)}</td>"
        f"<td{'' if c.verdict == 'holds' else ' class=no'}>{c.verdict}</td></tr>"
        for c in claims
    )
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>stagewise: the paper, reproduced</title><style>{STYLE}</style><h1>The paper, reproduced</h1>"
        f"<h2>Claims</h2><table><tr><th>claim<th>value<th>criterion<th>verdict</tr>{rows}</table>"
        f"<h2>Figure 1</h2><img alt='Figure 1: regret and cost' src='data:image/png;base64,{picture}'>"
        f"<p>{html.escape(about)}</p></html>"
    )
    (out / "report.html").write_text(page, encoding="utf-8")
    lines = [f"| {c.name} | {c.value} | {c.criterion} | {c.verdict} |" for c in claims]
    table = "\n".join(["| claim | value | criterion | verdict |", "|---|---|---|---|", *lines])
    text = f"# The paper, reproduced\n\n{table}\n\n![Figure 1](figures/figure-1.png)\n\n{about}\n"
    (out / "report.md").write_text(text, encoding="utf-8")
