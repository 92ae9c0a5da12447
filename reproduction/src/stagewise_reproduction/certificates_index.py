"""The page that leads to all certificates: a card each, with its verdict and how near the truth may lie to it."""

import html
from typing import Any

from stagewise.reports import pages
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_words import ends_of, percent
from stagewise.reports.evidence import REFUTED, SUPPORTED

WIDTH = 240  # of the bar in a card
CSS = """
.card h3 { margin: 0 0 .2rem; } .card p { margin: .25rem 0; } .card svg { display: block; width: 100%; height: 22px; }
.card .bar { fill: currentColor; opacity: .55; } .card .ground { fill: var(--line); } .card .mark { fill: var(--ink); }
"""
ABOUT = (
    "Does a policy keep its limits while it learns? Each page says what was promised, assumed, found and not tested. "
    "In a card the bar is where the share of runs that break a limit may lie, and the mark is what was allowed."
)
CONTROLS = "A test that these passed would prove nothing: they must be refuted."


def index(certificates: dict[str, Certificate], expected: dict[str, str]) -> str:
    """Return the page; certificates by their folders, `expected` verdicts of those that are tested against one."""
    kept = {name: one for name, one in certificates.items() if expected.get(name, SUPPORTED) == SUPPORTED}
    controls = {name: one for name, one in certificates.items() if name not in kept}
    device = {name: one for name, one in kept.items() if one.content["plan"]["backend"] == "cuda"}
    wrong = sum(certificates[name].verdict != verdict for name, verdict in expected.items())
    words = "All verdicts are as they must be." if not wrong else f"{wrong} verdicts are not as they must be."
    parts = [
        "<h1>Safety certificates</h1>",
        f"<div class='verdict {'no' if wrong else 'yes'}'><b>{words}</b><p>{ABOUT}</p></div>",
        group("Policies that keep their limits", "", {name: one for name, one in kept.items() if name not in device}),
        group("A hundred thousand runs on a GPU", "", device),
        group("Controls", CONTROLS, controls),
    ]
    return pages.document("stagewise: safety certificates", "\n".join(parts), css=CSS)


def group(title: str, words: str, certificates: dict[str, Certificate]) -> str:
    """Return some cards under a heading; nothing where there are none."""
    if not certificates:
        return ""
    cards = "".join(card(folder, one.content) for folder, one in certificates.items())
    return f"<h2>{title}</h2>{f'<p class=small>{words}</p>' if words else ''}<div class=cards>{cards}</div>"


def card(folder: str, content: dict[str, Any]) -> str:
    """Return one certificate in a few words."""
    found, verdict = content["violations"], content["verdict"]
    low, high = ends_of(found)
    name = html.escape(content["made"].get("name") or f"{content['policy']['kind']} ({folder})")
    truth = f"at least {percent(low)} do" if verdict == REFUTED else f"at most {percent(high)} do"
    words = f"{found['happened']:,} of {found['runs']:,} runs of {content['claim']['rounds']:,} rounds broke a limit"
    words = f"{words}; {truth}, {percent(found['allowed'])} may.".replace(" %", "&nbsp;%")
    return (
        f"<a class=card href='{html.escape(folder, quote=True)}/certificate.html'><h3>{name}</h3>"
        f"<p class={verdict}><b>{verdict}</b></p>{bar(low, high, found['allowed'], verdict)}"
        f"<p class=small>{words}</p></a>\n"
    )


def bar(low: float, high: float, allowed: float, verdict: str) -> str:
    """Return a bar from one end of an interval to the other, and a mark at what is allowed."""
    most = max(1.6 * allowed, min(1.0, 1.05 * high)) or 1.0
    start, end, mark = (round(WIDTH * value / most, 1) for value in (low, high, allowed))
    words = f"between {percent(low)} and {percent(high)}, allowed {percent(allowed)}"
    return (
        f"<svg viewBox='0 0 {WIDTH} 22' preserveAspectRatio=none role=img aria-label='{words}' class={verdict}>"
        f"<rect class=ground y=8 width={WIDTH} height=6 />"
        f"<rect class=bar x={start} y=5 width={max(round(end - start, 1), 2)} height=12 />"
        f"<rect class=mark x={mark} width=2.5 height=22 /></svg>"
    )
