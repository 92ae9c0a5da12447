"""The index page of all certificates: one card each, with its verdict and interval."""

import html
from typing import Any

from stagewise.reports import style as pages
from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.certificate_page import format_percent, get_interval
from stagewise.reports.evidence import REFUTED, SUPPORTED

WIDTH = 240  # of the bar in a card
CSS = """
.card h3 { margin: 0 0 .2rem; } .card p { margin: .25rem 0; } .card svg { display: block; width: 100%; height: 22px; }
.card .bar { fill: currentColor; opacity: .55; } .card .ground { fill: var(--line); } .card .mark { fill: var(--ink); }
"""
ABOUT = (
    "Does a policy keep its limits while it learns? Each page lists the claim, the assumptions, the results and what "
    "was not tested. In a card, the bar is the confidence interval of the share of runs that violate a limit, and the "
    "mark is the allowed share."
)
CONTROLS = "Controls violate their limits on purpose: the test must refute them."


def render_index(certificates: dict[str, SimulationCertificate], expected: dict[str, str]) -> str:
    """Return the page; certificates by folder, `expected` verdicts of those that have one."""
    kept = {name: one for name, one in certificates.items() if expected.get(name, SUPPORTED) == SUPPORTED}
    controls = {name: one for name, one in certificates.items() if name not in kept}
    device = {name: one for name, one in kept.items() if one.content["plan"]["backend"] == "cuda"}
    wrong = sum(certificates[name].verdict != verdict for name, verdict in expected.items())
    words = "All verdicts are as they must be." if not wrong else f"{wrong} verdicts are not as they must be."
    parts = [
        "<h1>Safety certificates</h1>",
        f"<div class='verdict {'no' if wrong else 'yes'}'><b>{words}</b><p>{ABOUT}</p></div>",
        render_group(
            "Policies that keep their limits", "", {name: one for name, one in kept.items() if name not in device}
        ),
        render_group("A hundred thousand runs on a GPU", "", device),
        render_group("Controls", CONTROLS, controls),
    ]
    return pages.render_document("stagewise: safety certificates", "\n".join(parts), css=CSS)


def render_group(title: str, words: str, certificates: dict[str, SimulationCertificate]) -> str:
    """Return cards under a heading; empty where there are none."""
    if not certificates:
        return ""
    cards = "".join(render_card(folder, one.content) for folder, one in certificates.items())
    return f"<h2>{title}</h2>{f'<p class=small>{words}</p>' if words else ''}<div class=cards>{cards}</div>"


def render_card(folder: str, content: dict[str, Any]) -> str:
    """Return the card of one certificate."""
    found, verdict = content["violations"], content["verdict"]
    low, high = get_interval(found)
    name = html.escape(content["made"].get("name") or f"{content['policy']['kind']} ({folder})")
    truth = f"at least {format_percent(low)} do" if verdict == REFUTED else f"at most {format_percent(high)} do"
    words = f"{found['occurrences']:,} of {found['runs']:,} runs of {content['claim']['rounds']:,} rounds broke a limit"
    words = f"{words}; {truth}, {format_percent(found['allowed'])} may.".replace(" %", "&nbsp;%")
    return (
        f"<a class=card href='{html.escape(folder, quote=True)}/certificate.html'><h3>{name}</h3>"
        f"<p class={verdict}><b>{verdict}</b></p>{render_bar(low, high, found['allowed'], verdict)}"
        f"<p class=small>{words}</p></a>\n"
    )


def render_bar(low: float, high: float, allowed: float, verdict: str) -> str:
    """Return a bar for an interval, with a mark at the allowed share."""
    most = max(1.6 * allowed, min(1.0, 1.05 * high)) or 1.0
    start, end, mark = (round(WIDTH * value / most, 1) for value in (low, high, allowed))
    words = f"between {format_percent(low)} and {format_percent(high)}, allowed {format_percent(allowed)}"
    return (
        f"<svg viewBox='0 0 {WIDTH} 22' preserveAspectRatio=none role=img aria-label='{words}' class={verdict}>"
        f"<rect class=ground y=8 width={WIDTH} height=6 />"
        f"<rect class=bar x={start} y=5 width={max(round(end - start, 1), 2)} height=12 />"
        f"<rect class=mark x={mark} width=2.5 height=22 /></svg>"
    )
