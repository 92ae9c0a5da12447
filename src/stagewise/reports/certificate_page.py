"""A certificate as one page that needs nothing else, for people who decide and do not compute."""

import html
import json
from typing import Any

from stagewise.reports import certificate_pictures as pictures
from stagewise.reports.certificate_words import (
    ends_of,
    headline,
    how_close,
    percent,
    played_in,
    promised,
    shown,
    what_caution_cost,
)
from stagewise.reports.evidence import VERIFY

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem 1rem 4rem; color: #111; }
h1 { margin: 1.2rem 0 .3rem; line-height: 1.25; } h2 { margin-top: 2.4rem; border-bottom: 2px solid #111; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; } tr { border-bottom: 1px solid #ccc; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.verdict { border-left: .5rem solid; padding: .6rem 1rem; font-size: 1.1rem; background: #f6f6f6; }
.supported { color: #005a32; } .refuted { color: #a02000; } .undecided { color: #7a5200; }
.verdict p { color: #111; margin: .3rem 0 0; font-size: 1rem; }
img { width: 100%; min-width: 34rem; height: auto; } td:first-child { min-width: 9rem; }
.small { font-size: .88rem; color: #333; }
pre { background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: .85rem; }
code { overflow-wrap: anywhere; }
"""
NOT_TESTED = (
    "Worlds other than those played in: nothing is said of noise, sizes or shapes that were not drawn.",
    "Worlds that change while they are learned from, outcomes that come late or not at all, outcomes recorded wrongly.",
    "More rounds than were played. The theorem behind the policy speaks of all rounds; these runs do not.",
    "The step from expected to seen costs: a single noisy outcome may lie above a limit that its expectation keeps.",
)
MIXED = (
    "Single actions of a mixture: the promise is for the expected cost of the mixture that an action is drawn from, "
    "and one action in it may cost more."
)


def escaped(value: Any) -> Any:
    """Return plain values with every word in them as a page may hold it: the one place where that is done."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {escaped(name): escaped(entry) for name, entry in value.items()}
    return [escaped(entry) for entry in value] if isinstance(value, list) else value


def page(content: dict[str, Any]) -> str:
    """Return the page."""
    drawn = (pictures.promises(content), pictures.margins(content), pictures.regret(content))
    content = escaped(content)
    kind, verdict = content["policy"]["kind"], content["verdict"]
    sections = {
        "What was promised": f"<p>{promised(content)}</p>",
        "What was assumed": assumed(content),
        "What was found": found_in(content, drawn),
        "What was not tested": not_tested(content),
        "How to check this page": checked(content),
    }
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>",
        f"<title>Safety certificate: {kind}, {verdict}</title><style>{STYLE}</style></head><body>",
        f"<h1>Does {kind} keep its limits?</h1>",
        f"<div class='verdict {verdict}'><b>The claim is {verdict}.</b><p>{headline(content)}</p></div>",
        *(f"<h2>{title}</h2>\n{body}" for title, body in sections.items()),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def assumed(content: dict[str, Any]) -> str:
    """Return what the policy was told, beside what was so."""
    where = played_in(content["world"])
    if not content["assumptions"]:
        return f"<p>{where} The policy rests on nothing but the safe action being safe.</p>"
    rows = "".join(
        f"<tr><td>{one['assumption']}</td><td class=n>{numbers(one['declared'])}</td>"
        f"<td class=n>{numbers(one['real'])}</td>"
        f"<td class={'supported' if one['kept'] else 'refuted'}>{'yes' if one['kept'] else 'no'}</td></tr>"
        for one in content["assumptions"]
    )
    drawn = "" if content["world"]["family"] == "fixed" else " The third column is that of the first run."
    return (
        f"<p>{where} The promise holds where the following is so.{drawn}</p><div class=scroll><table>"
        f"<tr><th>assumption<th class=n>declared<th class=n>here<th>kept</tr>{rows}</table></div>"
    )


def numbers(values: list[float]) -> str:
    """Return numbers side by side; equal ones once."""
    return ", ".join(shown(value) for value in (values[:1] if len(set(values)) == 1 else values))


def found_in(content: dict[str, Any], drawn: tuple[str, str, str]) -> str:
    """Return what the runs say, with three pictures of it."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"in some round an interval of {one['signal']!r} fails", one) for one in content["coverage"]]
    table = "".join(
        f"<tr><td>{name}</td><td class=n>{one['happened']:,} / {one['runs']:,}</td>"
        f"<td class=n>{' to '.join(map(percent, ends_of(one)))}</td><td class=n>{percent(one['allowed'])}</td>"
        f"<td class='{one['verdict']}'>{one['verdict']}</td></tr>"
        for name, one in rows
    )
    exact = content["violations"]["exact"] is not None
    kind = (
        "All planned runs were played, so the exact interval of Clopper and Pearson applies."
        if exact
        else "The runs were stopped when the answer was clear; the interval holds at every number of runs at once, "
        "so looking at it and stopping is allowed."
    )
    return (
        f"<div class=scroll><table><tr><th>event<th class=n>seen<th class=n>true share<th class=n>allowed<th></tr>"
        f"{table}</table></div><p class=small>{kind}</p>"
        f"{image('Shares of runs against what is allowed', drawn[0])}"
        f"<h3>How close it came</h3><p>{how_close(content)}</p>"
        f"{image('Histogram of what was left to the limits', drawn[1])}"
        f"<h3>What caution cost</h3><p>{what_caution_cost(content)}</p>"
        f"{image('Regret over the rounds', drawn[2])}"
    )


def image(words: str, address: str) -> str:
    """Return a picture that can be moved sideways where the window is narrow."""
    return f"<div class=scroll><img alt='{words}' src='{address}'></div>"


def not_tested(content: dict[str, Any]) -> str:
    """Return what nobody should read into this."""
    words = (*NOT_TESTED, MIXED) if content["mixes"] else NOT_TESTED
    return f"<ul>{''.join(f'<li>{one}</li>' for one in words)}</ul>"


def checked(content: dict[str, Any]) -> str:
    """Return how to play the runs again, and what that cannot show."""
    plan, made = content["plan"], content["made"]
    packages = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    told = {"policy": content["policy"], "world": content["world"], "plan": plan}
    day = f"on {made['day']} (UTC), " if made.get("day") else ""
    function = ", the name of the function that drew the worlds" if content["world"]["family"] == "callable" else ""
    return (
        "<p>Every run is a function of the seed and its number, and the file <code>certificate.json</code> holds a "
        "digest and totals of every batch of runs. This plays a random part of them again and compares everything else "
        "with the totals; with <code>--part 1</code> it plays all of them, and every number on this page is compared, "
        f"quantiles and pictures too:</p><pre>{VERIFY}</pre>"
        "<p>That checks the file, not this page; the page can be made again from it: "
        '<code>stagewise.Certificate.load("certificate.json").save("again")</code>.</p>'
        f"<p class=small>Seed {plan['seed']}, runs 0 to {content['violations']['runs'] - 1:,}.</p>"
        "<p class=small>Not verified by playing again, but told by those who made it: that seed and number of runs "
        f"({plan['runs']:,} planned) were chosen before looking at any{function}; when, by what and in what time: {day}"
        f"{made['seconds']:,} seconds; {packages}; {made['machine']}.</p>"
        "<details class=small><summary>All settings of the policy, and the world it was tested in</summary>"
        f"<pre>{json.dumps(told, indent=1)}</pre></details>"
    )
