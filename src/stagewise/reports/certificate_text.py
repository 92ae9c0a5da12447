"""The words of a certificate: its title, headline, claim and worlds, and its tables of margins and regret."""

from typing import Any

from stagewise.problem.formatting import format_number
from stagewise.problem.promise import Promise, describe_promise
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.regret_bound import RegretTheorem

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
