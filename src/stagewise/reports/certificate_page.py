"""Render a certificate as one self-contained page."""

import html
import json
from pathlib import Path
from string import Template
from typing import Any

from stagewise.reports import certificate_plots as pictures
from stagewise.reports import pages
from stagewise.reports.certificate_margins import describe_margins
from stagewise.reports.certificate_text import (
    MIXTURE_NOTE,
    STOPPING_NOTES,
    describe_regret,
    describe_worlds,
    format_claim,
    format_duration,
    format_headline,
    format_number,
    format_percent,
    format_title,
    get_interval,
)
from stagewise.reports.evidence import VERIFY_COMMAND

TEMPLATE = Template(Path(__file__).with_name("certificate.html").read_text(encoding="utf-8"))
PICTURES = {
    "shares": "Shares of runs against what is allowed",
    "margins": "The largest cost of every run, beside the limits",
    "regret": "Regret over the rounds",
}


def render_page(content: dict[str, Any]) -> str:
    """Return the page."""
    images = {}
    for name, alt_text in PICTURES.items():
        wide, phone = pictures.draw_both_widths(getattr(pictures, name), content)
        images[name] = pages.render_image(wide, alt_text, phone)
    content = escape_values(content)
    plan, made, found, world = content["plan"], content["made"], content["violations"], content["world"]
    return TEMPLATE.substitute(
        images,
        css=pages.CSS,
        title=format_title(content),
        verdict=content["verdict"],
        headline=format_headline(content),
        claim=format_claim(content),
        assumptions=render_assumptions(content),
        events=render_events(content),
        stopping_note=STOPPING_NOTES[found["exact"] is None],
        margins_text="".join(f"<p>{text}</p>" for text in describe_margins(content)),
        regret_text=describe_regret(content),
        mixture_note=f"<li>{MIXTURE_NOTE}</li>" if content["mixes"] else "",
        verify=VERIFY_COMMAND,
        seed=plan["seed"],
        last=f"{found['runs'] - 1:,}",
        planned=f"{plan['runs']:,}",
        function=", the name of the function that drew the worlds" if world["family"] == "callable" else "",
        day=f"on {made['day']} (UTC), " if made.get("day") else "",
        seconds=format_duration(made),
        packages=", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        machine=made["machine"],
        settings=json.dumps({"policy": content["policy"], "world": world, "plan": plan}, indent=1),
    )


def escape_values(value: Any) -> Any:
    """Return the content with all texts escaped for HTML; this is the only place where that is done."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {escape_values(name): escape_values(entry) for name, entry in value.items()}
    return [escape_values(entry) for entry in value] if isinstance(value, list) else value


def render_assumptions(content: dict[str, Any]) -> str:
    """Return the table of assumptions, with declared and true values."""
    where = describe_worlds(content["world"])
    if not content["assumptions"]:
        return f"<p>{where} The policy assumes only that the safe action is safe.</p>"
    rows = [
        [
            one["assumption"],
            format_numbers(one["declared"]),
            format_numbers(one["real"]),
            f"<span class={'supported' if one['kept'] else 'refuted'}>{'yes' if one['kept'] else 'no'}</span>",
        ]
        for one in content["assumptions"]
    ]
    first_run = "" if content["world"]["family"] == "fixed" else " The third column is of the first run."
    table = pages.render_table(["assumption", "declared", "here", "kept"], rows, (1, 2))
    return f"<p>{where} The guarantee holds if the following is true.{first_run}</p>{table}"


def format_numbers(values: list[float]) -> str:
    """Return numbers separated by commas; equal ones once."""
    return ", ".join(format_number(value) for value in (values[:1] if len(set(values)) == 1 else values))


def render_events(content: dict[str, Any]) -> str:
    """Return the table of events: how often they occurred, and how often they may."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"in some round an interval of {one['signal']!r} fails", one) for one in content["coverage"]]
    cells = [
        [
            name,
            f"{one['occurrences']:,} / {one['runs']:,}",
            " to ".join(map(format_percent, get_interval(one))),
            format_percent(one["allowed"]),
            f"<span class='{one['verdict']}'>{one['verdict']}</span>",
        ]
        for name, one in rows
    ]
    return pages.render_table(["event", "occurred", "true share", "allowed", "verdict"], cells, (1, 2, 3))
