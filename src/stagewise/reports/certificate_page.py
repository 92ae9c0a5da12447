"""A certificate as one page that needs nothing else, for people who decide and do not compute."""

import html
import json
from pathlib import Path
from string import Template
from typing import Any

from stagewise.reports import certificate_pictures as pictures
from stagewise.reports import pages
from stagewise.reports.certificate_nearness import how_close
from stagewise.reports.certificate_words import (
    MIXED,
    STOPPED,
    ends_of,
    headline,
    percent,
    played_in,
    promised,
    shown,
    title,
    took,
    what_caution_cost,
)
from stagewise.reports.evidence import VERIFY

TEMPLATE = Template(Path(__file__).with_name("certificate.html").read_text(encoding="utf-8"))
PICTURES = {
    "shares": "Shares of runs against what is allowed",
    "margins": "What the dearest round of every run cost, beside the limits",
    "regret": "Regret over the rounds",
}


def page(content: dict[str, Any]) -> str:
    """Return the page."""
    drawn = {}
    for name, words in PICTURES.items():
        wide, phone = pictures.both(getattr(pictures, name), content)
        drawn[name] = pages.picture(wide, words, phone)
    content = escaped(content)
    plan, made, found, world = content["plan"], content["made"], content["violations"], content["world"]
    return TEMPLATE.substitute(
        drawn,
        css=pages.CSS,
        title=title(content),
        verdict=content["verdict"],
        headline=headline(content),
        promised=promised(content),
        assumed=assumed(content),
        found=events(content),
        stopped=STOPPED[found["exact"] is None],
        how_close="".join(f"<p>{words}</p>" for words in how_close(content)),
        what_caution_cost=what_caution_cost(content),
        mixed=f"<li>{MIXED}</li>" if content["mixes"] else "",
        verify=VERIFY,
        seed=plan["seed"],
        last=f"{found['runs'] - 1:,}",
        planned=f"{plan['runs']:,}",
        function=", the name of the function that drew the worlds" if world["family"] == "callable" else "",
        day=f"on {made['day']} (UTC), " if made.get("day") else "",
        seconds=took(made),
        packages=", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        machine=made["machine"],
        settings=json.dumps({"policy": content["policy"], "world": world, "plan": plan}, indent=1),
    )


def escaped(value: Any) -> Any:
    """Return plain values with every word in them as a page may hold it: the one place where that is done."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {escaped(name): escaped(entry) for name, entry in value.items()}
    return [escaped(entry) for entry in value] if isinstance(value, list) else value


def assumed(content: dict[str, Any]) -> str:
    """Return what the policy was told, beside what was so."""
    where = played_in(content["world"])
    if not content["assumptions"]:
        return f"<p>{where} The policy rests on nothing but the safe action being safe.</p>"
    rows = [
        [
            one["assumption"],
            numbers(one["declared"]),
            numbers(one["real"]),
            f"<span class={'supported' if one['kept'] else 'refuted'}>{'yes' if one['kept'] else 'no'}</span>",
        ]
        for one in content["assumptions"]
    ]
    drawn = "" if content["world"]["family"] == "fixed" else " The third column is that of the first run."
    table = pages.table(["assumption", "declared", "here", "kept"], rows, (1, 2))
    return f"<p>{where} The promise holds where the following is so.{drawn}</p>{table}"


def numbers(values: list[float]) -> str:
    """Return numbers side by side; equal ones once."""
    return ", ".join(shown(value) for value in (values[:1] if len(set(values)) == 1 else values))


def events(content: dict[str, Any]) -> str:
    """Return the table of what may happen in a run: how often it did, and how often it may."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"in some round an interval of {one['signal']!r} fails", one) for one in content["coverage"]]
    cells = [
        [
            name,
            f"{one['happened']:,} / {one['runs']:,}",
            " to ".join(map(percent, ends_of(one))),
            percent(one["allowed"]),
            f"<span class='{one['verdict']}'>{one['verdict']}</span>",
        ]
        for name, one in rows
    ]
    return pages.table(["event", "seen", "true share", "allowed", "verdict"], cells, (1, 2, 3))
