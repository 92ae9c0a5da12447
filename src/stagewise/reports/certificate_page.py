"""The words of a certificate, and one self-contained page of it; the pictures are plotted from its own numbers."""

import html
import json
from itertools import pairwise
from typing import Any

from stagewise.problem.formatting import format_number
from stagewise.problem.signals import Promise, describe_promise
from stagewise.reports import style as plot_style
from stagewise.reports.evidence import REFUTED, SUPPORTED, VERIFY_COMMAND
from stagewise.reports.guarantee import RegretTheorem
from stagewise.reports.style import BAD, GUARDED, escape_label, render_document, render_image, render_table, to_data_uri

MAX_TITLE_LIMITS = 3  # limits that a title names
DISTANCES = [f"distance of the {which}" for which in ("worst run", "worst run of a hundred", "median run", "best run")]


def format_percent(value: float) -> str:
    """Return a probability as a percentage."""
    return "0 %" if value < 5e-6 else f"{100.0 * value:.3g} %"


def get_interval(one: dict[str, Any]) -> tuple[float, float]:
    """Return the interval of a probability: the intersection, if there are two."""
    low, high = one["exact"] or (0.0, 1.0)
    return max(one["anytime"][0], low), min(one["anytime"][1], high)


def format_headline(content: dict[str, Any]) -> str:
    """Return the verdict in a sentence."""
    evidence, claim, verdict = content["violations"], content["claim"], content["verdict"]
    (low, high), allowed = map(format_percent, get_interval(evidence)), format_percent(evidence["allowed"])
    confidence = f"with {format_percent(claim['confidence'])} confidence"
    runs = f"{evidence['runs']:,} simulated runs of {claim['rounds']:,} rounds"
    text = f"{evidence['occurrences']:,} of {runs} broke a limit. "
    if verdict == SUPPORTED:
        text += f"At most {high} of such runs do, {confidence}; {allowed} may."
    elif verdict == REFUTED:
        text += f"At least {low} of all such runs do, {confidence}, and only {allowed} may."
    else:
        text += f"So between {low} and {high} of all such runs do, {confidence}; {allowed} may. At this rate "
        needed = evidence["runs_needed"]
        text += (
            f"about {needed:,} runs would be enough to support it." if needed else "no number of runs would support it."
        )
    broken = [repr(one["signal"]) for one in content["coverage"] if one["verdict"] == REFUTED]
    if broken and verdict == SUPPORTED:
        text += (
            f" But the intervals of {', '.join(broken)}, which the guarantee relies on, fail more often "
            "than allowed: do not rely on this elsewhere."
        )
    if verdict == SUPPORTED and not all(one["kept"] for one in content["assumptions"]):
        text += " But not every assumption was true, as the table shows, so no theorem supports this."
    return text


def format_title(content: dict[str, Any]) -> str:
    """Return the title: the name, if there is one, the policy and its limits."""
    thresholds = content["thresholds"]
    limits = [
        f"{one['name']} {'≥' if one['side'] == 'at least' else '≤'} {format_number(one['value'])}" for one in thresholds
    ]
    kept = ", ".join(limits) if len(limits) <= MAX_TITLE_LIMITS else f"its {len(limits)} limits"
    kind, name = content["policy"]["kind"], content["made"].get("name")
    return f"{name}: does {kind} keep {kept}?" if name else f"Does {kind} keep {kept}?"


def format_claim(content: dict[str, Any]) -> str:
    limits = "; ".join(
        f"the expected {one['name']} of every round is {one['side']} {format_number(one['value'])}"
        for one in content["thresholds"]
    )
    claim = content["claim"]
    promised = [
        f" The limit of {one['name']} is {describe_promise(Promise(one['promise']), 'segment', 'linear')}."
        for one in content["thresholds"]
        if "promise" in one
    ]
    return (
        f"The policy learns online for {claim['rounds']:,} rounds. The claim: {limits}. A run is broken if a single "
        f"round breaks a limit, and at most {format_percent(claim['delta'])} of runs may be broken.{''.join(promised)}"
    )


def describe_worlds(world: dict[str, Any]) -> str:
    """Return a description of the worlds of the runs."""
    spread = world.get("spread")
    means = (
        "from [0, 1]"
        if spread is None
        else f"around the given ones, {format_percent(spread)} less to {format_percent(spread)} more"
    )
    return {
        "fixed": "All runs were played in one and the same world.",
        "random-sphere": "Every run had its own world: directions of reward and cost drawn evenly from the sphere.",
        "random-arms": f"Every run had its own world: means of all arms but the safe one drawn evenly {means}.",
    }.get(world["family"], f"Every run had its own world, drawn by {world.get('name', 'a function')}.")


def has_common_limits(content: dict[str, Any]) -> bool:
    """Say whether all runs have the same limits; policies that a function draws may differ."""
    return not content["world"].get("draws_policies", False)


def list_margins(content: dict[str, Any]) -> list[list[str]]:
    """Return rows for each limit: the worst cost of all rounds, how close runs came, and how close rounds were."""
    closeness = content.get("closeness") or {"limits": []}
    rows = []
    for index, (name, margin) in enumerate(content["margins"].items()):
        cuts, limit = margin["quantiles"], content["thresholds"][index]
        sign = 1.0 if limit["side"] == "at least" else -1.0
        left = [cuts[level] for level in ("0", "0.01", "0.5", "1")]
        found = [*zip(DISTANCES, map(format_number, left), strict=True)]
        if has_common_limits(content):
            found.insert(0, ("worst true cost of any round", format_number(limit["value"] + sign * cuts["0"])))
        if index < len(closeness["limits"]):
            one, word = closeness["limits"][index], f"{closeness['rounds']:,} rounds of the first runs"
            found.append((f"exactly at the limit, of {word}", format_percent(one["met"] / closeness["rounds"])))
            found.append((f"mean distance of {word}", format_number(one["left"])))
        rows += [[name if first else "", *row] for first, row in zip([True] + [False] * 9, found, strict=False)]
    return rows


def list_regret(content: dict[str, Any]) -> list[tuple[str, str]]:
    """Return rows on regret, its bound, optimism, the time to become near-optimal, and the first violation."""
    evidence, near_optimal, optimism = (content[name] for name in ("regret", "first_near_optimal_round", "optimism"))
    runs, broken, theorem = (
        content["violations"]["runs"],
        content["first_violation"],
        RegretTheorem(evidence["theorem"]),
    )
    last = [format_number(evidence["quantiles"][level][-1]) for level in ("0.5", "0.99", "1")]
    rows = [("reward lost in all by the median run, one in a hundred, and the worst", ", ".join(last))]
    if evidence["bound"] is None:
        rows.append(("there is no bound to compare with", theorem.template))
    else:
        allowed = f"{format_number(evidence['bound'][-1])} with probability {format_percent(1.0 - evidence['failure'])}"
        rows.append((f"what the theorem allows ({theorem.template})", allowed))
        rows.append(("runs above it in a recorded round", f"{evidence['above']:,}"))
    if optimism is not None:  # the theorem says: in none, while all intervals hold
        found = f"{optimism['rounds']:,} rounds of {optimism['runs']:,} runs" if optimism["rounds"] else "none"
        rows.append(("rounds whose optimistic reward was below what was possible", found))
    median = "none" if near_optimal["quantiles"] is None else format_number(near_optimal["quantiles"]["0.5"])
    rows.append(("first round with nine tenths of the possible gain (median)", median))
    rows.append(("runs that had none", f"{near_optimal['never']:,} of {runs:,}"))
    if broken is not None:
        rows.append(("first round over a limit, of runs that broke one (median)", format_number(broken["0.5"])))
    return rows


WIDTH = 6.0  # inches of a picture
MAX_BARS = 90  # thinner bars are hard to see
LOG_SCALE_RATIO = 30  # ratio of bar heights above which the axis is logarithmic
BODY = """<h1>{title}</h1>
<div class='verdict {verdict}'><b>The claim is {verdict}.</b><p>{headline}</p></div>
{shares}
<h2>Claim</h2>
<p>{claim}</p>
<h2>Assumptions</h2>
{assumptions}
<h2>Evidence</h2>
{events}
<p class=small>{stopping_note}</p>
<h3>Distance to the limits</h3>
<p>The distance of each run is that of its round that came closest; below 0 it broke the limit. A limit that is met
exactly is kept.</p>
{margin_rows}
{margins}
<h3>Regret</h3>
{regret_rows}
{regret}
<h2>Not tested</h2>
<ul>
<li>Worlds other than those simulated: other noise, sizes or shapes.</li>
<li>Worlds that change, outcomes that arrive late or never, and outcomes that are recorded wrongly.</li>
<li>More rounds than were simulated. The theorem covers all rounds; these runs do not.</li>
<li>Single outcomes: a noisy outcome may be above a limit that its expectation keeps.</li>
{mixture_note}
</ul>
<h2>How to verify this page</h2>
<p>Every run is a function of the seed and its number, and the file <code>certificate.json</code> holds a digest and
totals of every batch of runs. This simulates a random part of them again and compares everything else with the totals;
with <code>--fraction 1</code> it simulates all of them, and compares every number on this page, also quantiles and
plots:</p>
<pre>{verify}</pre>
<p>That checks the file, not this page; the page can be made again from it:
<code>stagewise.SimulationCertificate.load("certificate.json").save("again")</code>.</p>
<p class=small>Seed {seed}, runs 0 to {last}.</p>
<p class=small>Not verified by simulation, but stated by its author: its name; that seed and number of runs
({planned} planned) were chosen before looking at any{function}; when, by what and in what time: {day}{seconds};
{packages}; {machine}.</p>
<details class=small><summary>All settings of the policy, and the world it was tested in</summary>
<pre>{settings}</pre></details>"""
STOPPED_NOTE = (
    "The runs were stopped when the verdict was clear; the interval holds at every number of runs at once, so stopping "
    "early is valid."
)
COMPLETE_NOTE = "All planned runs were played, so the exact interval of Clopper and Pearson applies."
MIXTURE_NOTE = (
    "<li>Single actions of a mixture: the guarantee is for the expected cost of the mixture that an action is drawn "
    "from, and a single action may cost more.</li>"
)


def render_page(content: dict[str, Any]) -> str:
    pictures = {
        "shares": render_image(to_data_uri(plot_shares(content)), "Shares of runs against what is allowed"),
        "margins": render_image(to_data_uri(plot_margins(content)), "The largest cost of every run, beside the limits"),
        "regret": render_image(to_data_uri(plot_regret(content)), "Regret over the rounds"),
    }
    title = format_title(content)
    content = escape_values(content)
    plan, made, found, world = content["plan"], content["made"], content["violations"], content["world"]
    seconds = f"{made['seconds']:,} seconds"
    compiling = made.get("compile_seconds")
    seconds += (
        ", compiling included" if compiling is None else f", after {compiling:,} of compiling or loading compiled code"
    )
    body = BODY.format(
        **pictures,
        title=format_title(content),
        verdict=content["verdict"],
        headline=format_headline(content),
        claim=format_claim(content),
        assumptions=render_assumptions(content),
        events=render_events(content),
        stopping_note=STOPPED_NOTE if found["exact"] is None else COMPLETE_NOTE,
        margin_rows=render_table(["limit", "what", "found"], list_margins(content), (2,)),
        regret_rows=render_table(["regret", "found"], [list(row) for row in list_regret(content)]),
        mixture_note=MIXTURE_NOTE if content["mixes"] else "",
        verify=VERIFY_COMMAND,
        seed=plan["seed"],
        last=f"{found['runs'] - 1:,}",
        planned=f"{plan['runs']:,}",
        function=", the name of the function that drew the worlds" if world["family"] == "callable" else "",
        day=f"on {made['day']} (UTC), " if made.get("day") else "",
        seconds=seconds,
        packages=", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        machine=made["machine"],
        settings=json.dumps({"policy": content["policy"], "world": world, "plan": plan}, indent=1),
    )
    return render_document(f"Safety certificate: {title} {content['verdict']}", body, narrow=True)


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
            *(format_numbers(one[name]) for name in ("declared", "real")),
            "<span class=supported>yes</span>" if one["kept"] else "<span class=refuted>no</span>",
        ]
        for one in content["assumptions"]
    ]
    first_run = "" if content["world"]["family"] == "fixed" else " The third column is of the first run."
    table = render_table(["assumption", "declared", "here", "kept"], rows, (1, 2))
    return f"<p>{where} The guarantee holds if the following is true.{first_run}</p>{table}"


def format_numbers(values: list[float]) -> str:
    """Return numbers separated by commas; equal ones once."""
    return ", ".join(map(format_number, values[:1] if len(set(values)) == 1 else values))


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
    return render_table(["event", "occurred", "true share", "allowed", "verdict"], cells, (1, 2, 3))


def plot_shares(content: dict[str, Any]) -> Any:
    """Plot every allowed probability with its interval, which must end left of the mark."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"intervals of {escape_label(one['signal'])} fail", one) for one in content["coverage"]]
    figure, grid = plot_style.make_figure(1, 1, WIDTH, 1.0 + 0.5 * len(rows))
    axes = grid[0, 0]
    for position, (name, one) in enumerate(rows):
        low, high = one["exact"] or one["anytime"]
        colour = BAD if low > one["allowed"] else GUARDED
        axes.barh(position, high - low, left=low, height=0.34, color=colour, alpha=0.45)
        axes.plot([one["occurrences"] / one["runs"]], [position], "o", color=colour, markersize=5)
        axes.plot([one["allowed"]] * 2, [position - 0.25, position + 0.25], color="black", linewidth=2.5)
        axes.annotate(name, (0.0, position - 0.27), fontsize=9, va="bottom")
    key = "dot: observed; bar: confidence interval; black: allowed"
    plot_style.format_axes(axes, x=f"share of runs ({key})")
    axes.xaxis.label.set_size(9)
    axes.set(yticks=[], ylim=(len(rows) - 0.5, -0.75))
    axes.xaxis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
    axes.set_xlim(left=0.0)
    axes.spines["left"].set_visible(False)
    return figure


def plot_margins(content: dict[str, Any]) -> Any:
    """Plot the largest cost of every run beside the limit, or its distance if runs have their own limits."""
    figure, grid = plot_style.make_figure(len(content["margins"]), 1, WIDTH, 2.4)
    for axes, (name, one), limit in zip(grid[:, 0], content["margins"].items(), content["thresholds"], strict=False):
        is_lower, label = limit["side"] == "at least", escape_label(name)
        side, value, words = (
            (1.0 if is_lower else -1.0),
            limit["value"],
            f"the limit, {label} {'≥' if is_lower else '≤'}",
        )
        words, x = f"{words} {value:g}", f"{'smallest' if is_lower else 'largest'} true {label} of a run"
        if not has_common_limits(content):
            side, value, words, x = 1.0, 0.0, "the limit", f"left to the limit of {label}"
        draw_histogram(axes, [(side * edge + value, side * nxt + value) for edge, nxt in pairwise(one["edges"])], one)
        axes.axvline(value, color="black", linestyle="--", linewidth=1.2)
        axes.annotate(words, (value, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), fontsize=8,
                      textcoords="offset points", ha="center")  # fmt: skip
        plot_style.format_axes(axes, x=x, y="runs")
    return figure


def draw_histogram(axes: Any, bars: list[tuple[float, float]], one: dict[str, Any]) -> None:
    """Draw a histogram of runs, with counts on the bars if they are few."""
    filled = [
        (0.5 * (a + b), count, BAD if edge <= 0.0 else GUARDED)
        for (a, b), count, edge in zip(bars, one["counts"], one["edges"][1:], strict=True)
        if count
    ]
    positions, counts, colours = zip(*filled, strict=True)
    ends = [end for bar in bars for end in bar]
    low, high = min(ends), max(ends)
    scale = max(0.5 * abs(low + high), high - low)  # includes 0, so that a limit that is met exactly has a scale
    axes.set_xlim(low - 0.1 * scale, high + 0.1 * scale)
    axes.bar(positions, counts, max(abs(bars[0][1] - bars[0][0]), (high - low + 0.2 * scale) / MAX_BARS), color=colours)
    if max(counts) > LOG_SCALE_RATIO * min(counts):
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    for position, count, colour in filled if len(filled) <= 6 else []:
        axes.annotate(f"{count:,}", (position, count), xytext=(-4, -1), textcoords="offset points", ha="right",
                      va="top", fontsize=8, color=colour)  # fmt: skip


def plot_regret(content: dict[str, Any]) -> Any:
    """Plot regret over rounds, and the theorem's bound."""
    found = content["regret"]
    rounds, cuts = found["rounds"], found["quantiles"]
    figure, grid = plot_style.make_figure(1, 1, WIDTH, 3.0)
    axes = grid[0, 0]
    plot_style.draw_band(
        axes, rounds, cuts["0.1"], cuts["0.5"], cuts["0.9"], GUARDED, "the median run, and eight in ten"
    )
    axes.plot(rounds, cuts["1"], color=GUARDED, linestyle=":", label="the worst run")
    if found["bound"] is not None:
        axes.plot(rounds, found["bound"], color="black", linestyle="--", label="the theorem's bound")
        if min(cuts["0"]) > 0.0:
            axes.set_yscale("log")
    plot_style.format_axes(axes, y="reward lost so far")
    plot_style.format_round_axis(axes)
    plot_style.add_legend_below(figure, axes, 2)
    return figure
