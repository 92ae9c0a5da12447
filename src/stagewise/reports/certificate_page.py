"""A certificate as one page that needs nothing else, for people who decide and do not compute."""

import html
import json
from typing import Any

from stagewise.reports import certificate_pictures as pictures
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.weighing import VERIFY

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
NOTHING = 1e-9  # below it numbers are rounding
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


def shown(value: float) -> str:
    """Return a number as people read it."""
    if abs(value) < NOTHING:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(value: float) -> str:
    """Return a probability as people read it."""
    return "0 %" if value < 5e-6 else f"{100.0 * value:.3g} %"


def high_of(one: dict[str, Any]) -> float:
    """Return the upper end that counts."""
    return float(min(one["anytime"][1], one["exact"][1] if one["exact"] else 1.0))


def low_of(one: dict[str, Any]) -> float:
    """Return the lower end that counts."""
    return float(max(one["anytime"][0], one["exact"][0] if one["exact"] else 0.0))


def headline(content: dict[str, Any]) -> str:
    """Return the verdict in a sentence."""
    found, claim = content["violations"], content["claim"]
    seen = f"{found['happened']:,} of {found['runs']:,} simulated runs of {claim['rounds']:,} rounds broke a limit."
    sure = f"with {percent(claim['confidence'])} confidence"
    if content["verdict"] == SUPPORTED:
        words = f"{seen} At most {percent(high_of(found))} of such runs do, {sure}; {percent(found['allowed'])} may."
    elif content["verdict"] == REFUTED:
        words = (
            f"{seen} At least {percent(low_of(found))} of all such runs do, {sure}, "
            f"and only {percent(found['allowed'])} may."
        )
    else:
        more = (
            f"At this rate about {found['needed']:,} runs would be enough to support it."
            if found["needed"]
            else "At this rate no number of runs would support it."
        )
        words = (
            f"{seen} So between {percent(low_of(found))} and {percent(high_of(found))} of all such runs do, {sure}; "
            f"{percent(found['allowed'])} may. {more}"
        )
    broken = [one["signal"] for one in content["coverage"] if one["verdict"] == REFUTED]
    if broken and content["verdict"] == SUPPORTED:
        words += (
            f" But the intervals of {', '.join(map(repr, broken))}, which the promise rests on, fail more often than "
            "they may: do not rely on this elsewhere."
        )
    if content["verdict"] == SUPPORTED and not all(one["kept"] for one in content["assumptions"]):
        words += " But not all that was assumed was so, as the table says, and then no theorem stands behind this."
    return words


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
    title = f"Safety certificate: {kind}, {verdict}"
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>",
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>Does {kind} keep its limits?</h1>",
        f"<div class='verdict {verdict}'><b>The claim is {verdict}.</b><p>{headline(content)}</p></div>",
        "<h2>What was promised</h2>",
        promised(content),
        "<h2>What was assumed</h2>",
        assumed(content),
        "<h2>What was found</h2>",
        found_in(content, drawn),
        "<h2>What was not tested</h2>",
        not_tested(content),
        "<h2>How to check this page</h2>",
        checked(content),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def promised(content: dict[str, Any]) -> str:
    """Return the claim in words."""
    limits = "; ".join(
        f"the expected {one['name']} of every round is {one['side']} {shown(one['value'])}"
        for one in content["thresholds"]
    )
    claim = content["claim"]
    return (
        f"<p>In {claim['rounds']:,} rounds the policy learns by doing. The claim: {limits}. A run in which even one "
        f"round breaks a limit counts as broken as a whole, and at most {percent(claim['delta'])} of runs may be.</p>"
    )


def assumed(content: dict[str, Any]) -> str:
    """Return what the policy was told, beside what was so."""
    family, spread = content["world"]["family"], content["world"].get("spread")
    means = (
        "from [0, 1]" if spread is None else f"around the given ones, {percent(spread)} less to {percent(spread)} more"
    )
    where = {
        "fixed": "All runs were played in one and the same world.",
        "random-sphere": "Every run had its own world: directions of reward and cost drawn evenly from the sphere.",
        "random-arms": f"Every run had its own world: means of all arms but the safe one drawn evenly {means}.",
    }.get(family, f"Every run had its own world, drawn by {content['world'].get('name', 'a function')}.")
    if not content["assumptions"]:
        return f"<p>{where} The policy rests on nothing but the safe action being safe.</p>"
    rows = "".join(
        f"<tr><td>{one['assumption']}</td><td class=n>{numbers(one['declared'])}</td>"
        f"<td class=n>{numbers(one['real'])}</td>"
        f"<td class={'supported' if one['kept'] else 'refuted'}>{'yes' if one['kept'] else 'no'}</td></tr>"
        for one in content["assumptions"]
    )
    drawn = "" if family == "fixed" else " The third column is that of the first run."
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
        f"<td class=n>{percent(low_of(one))} to {percent(high_of(one))}</td><td class=n>{percent(one['allowed'])}</td>"
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
        f"<h3>How close it came</h3>{margin_words(content)}"
        f"{image('Histogram of what was left to the limits', drawn[1])}"
        f"<h3>What caution cost</h3>{regret_words(content)}"
        f"{image('Regret over the rounds', drawn[2])}"
    )


def image(words: str, address: str) -> str:
    """Return a picture that can be moved sideways where the window is narrow."""
    return f"<div class=scroll><img alt='{words}' src='{address}'></div>"


def margin_words(content: dict[str, Any]) -> str:
    """Return the margins, and when limits were first broken, in words."""
    words = [
        f"In the round of a run that came closest to the limit of {name!r}, what was left was "
        f"{shown(one['quantiles']['0.5'])} in the middle run, {shown(one['quantiles']['0.01'])} or less in one run "
        f"of a hundred, {shown(one['quantiles']['0'])} in the worst."
        for name, one in content["margins"].items()
    ]
    if content["first_violation"] is not None:
        words.append(
            f"Where a limit was broken, it first was in round {shown(content['first_violation']['0.5'])} (median)."
        )
    return f"<p>{' '.join(words)}</p>"


def regret_words(content: dict[str, Any]) -> str:
    """Return regret, its bound, optimism and the time to become useful in words."""
    found, settled, hope = content["regret"], content["settled"], content["optimism"]
    last = {level: row[-1] for level, row in found["quantiles"].items()}
    words = [
        f"Against one who knows the world, the middle run lost {shown(last['0.5'])} in all, one run of a hundred "
        f"{shown(last['0.99'])} or more, the worst {shown(last['1'])}."
    ]
    if found["bound"] is None:
        words.append(f"There is no bound to compare with: {found['theorem']}.")
    else:
        words.append(
            f"The theorem ({found['theorem']}) allows {shown(found['bound'][-1])}, with probability "
            f"{percent(1.0 - found['failure'])}; {found['above']:,} runs were above it in a recorded round."
        )
    if hope is not None and hope["rounds"] == 0:
        words.append("In no round did the policy hope for less than was possible, as its theorem says.")
    elif hope is not None:
        words.append(
            f"The policy hoped for less than was possible in {hope['rounds']:,} rounds of {hope['runs']:,} runs"
            " (its theorem says: in none, while all intervals hold)."
        )
    runs = content["violations"]["runs"]
    if settled["quantiles"] is None:
        words.append("No run gained nine tenths of what was possible in any round.")
    else:
        words.append(
            f"Nine tenths of what was possible over the safe action were first gained in round "
            f"{shown(settled['quantiles']['0.5'])} (median; {settled['never']:,} of {runs:,} runs never did)."
        )
    return f"<p>{' '.join(words)}</p>"


def not_tested(content: dict[str, Any]) -> str:
    """Return what nobody should read into this."""
    words = (*NOT_TESTED, MIXED) if content["mixes"] else NOT_TESTED
    items = "".join(f"<li>{one}</li>" for one in words)
    return f"<ul>{items}</ul>"


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
