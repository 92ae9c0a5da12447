"""The sentences of a certificate: its title, headline, claim, worlds, regret and distance to the limits."""

from typing import Any

from stagewise.problem.promise import Promise, describe_promise
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.regret_bound import THEOREMS, RegretTheorem

MAX_TITLE_LIMITS = 3  # limits that a title names
ROUNDING = 1e-9  # below it numbers are rounding
TIGHT_NOTE = (
    "A limit that is met exactly is kept: the policy goes as far as the declared bounds allow, which is the limit "
    "itself if a cost is as large as declared."
)


def format_number(value: float) -> str:
    """Return a number for a sentence."""
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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
    """Return the claim."""
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


def describe_regret(content: dict[str, Any]) -> str:
    """Return sentences on regret, its bound, optimism and the time to become near-optimal."""
    evidence, near_optimal, optimism = (content[name] for name in ("regret", "first_near_optimal_round", "optimism"))
    last = {level: row[-1] for level, row in evidence["quantiles"].items()}
    text = [
        f"Against an oracle, the median run lost {format_number(last['0.5'])} in all, one run of a hundred "
        f"{format_number(last['0.99'])} or more, and the worst {format_number(last['1'])}."
    ]
    theorem = THEOREMS[RegretTheorem(evidence["theorem"])]
    if evidence["bound"] is None:
        text.append(f"There is no bound to compare with: {theorem}.")
    else:
        text.append(
            f"The theorem ({theorem}) allows {format_number(evidence['bound'][-1])}, with probability "
            f"{format_percent(1.0 - evidence['failure'])}; {evidence['above']:,} runs were above it in a recorded "
            "round."
        )
    if optimism is not None and optimism["rounds"] == 0:
        text.append("In no round was the optimistic reward below what was possible, as the theorem says.")
    elif optimism is not None:
        text.append(
            f"The optimistic reward was below what was possible in {optimism['rounds']:,} rounds of "
            f"{optimism['runs']:,} runs (the theorem says: in none, while all intervals hold)."
        )
    if near_optimal["quantiles"] is None:
        text.append("No run reached nine tenths of the possible gain in any round.")
    else:
        text.append(
            f"Nine tenths of the possible gain over the safe action were first reached in round "
            f"{format_number(near_optimal['quantiles']['0.5'])} (median; "
            f"{near_optimal['never']:,} of {content['violations']['runs']:,} runs never did)."
        )
    return " ".join(text)


def has_common_limits(content: dict[str, Any]) -> bool:
    """Say whether all runs have the same limits; policies that a function draws may differ."""
    return not content["world"].get("draws_policies", False)


def describe_margins(content: dict[str, Any]) -> list[str]:
    """Return a paragraph for each limit on how close runs came to it, and one on when limits were first broken."""
    closeness = content.get("closeness") or {"limits": []}
    paragraphs = []
    for index, (name, margin) in enumerate(content["margins"].items()):
        cuts, limit = margin["quantiles"], content["thresholds"][index]
        sentences = [
            describe_largest_cost(name, cuts["0"], limit)
            if has_common_limits(content)
            else f"The smallest distance of any round to the limit of {name} was {format_number(cuts['0'])}.",
            describe_runs(content, cuts),
        ]
        if index < len(closeness["limits"]):
            sentences.append(describe_rounds(closeness, closeness["limits"][index]))
        paragraphs.append(" ".join(sentences))
    if any(abs(margin["quantiles"]["0.5"]) < ROUNDING for margin in content["margins"].values()):
        paragraphs.append(TIGHT_NOTE)
    if content["first_violation"] is not None:
        median = format_number(content["first_violation"]["0.5"])
        paragraphs.append(f"In runs that broke a limit, the first round to do so was {median} (median).")
    return paragraphs


def describe_largest_cost(name: str, left: float, limit: dict[str, Any]) -> str:
    """Return the largest cost of all rounds, and its distance to the limit."""
    word, sign = ("smallest", 1.0) if limit["side"] == "at least" else ("largest", -1.0)
    text = f"The {word} true expected {name} of any round of any run was "
    value = format_number(limit["value"])
    if abs(left) < ROUNDING:
        return f"{text}exactly the limit of {value}."
    side = "inside" if left > 0.0 else "beyond"
    cost = format_number(limit["value"] + sign * left)
    return f"{text}{cost}, {format_number(abs(left))} {side} the limit of {value}."


def describe_runs(content: dict[str, Any], cuts: dict[str, float]) -> str:
    """Return the distribution over runs of the round that came closest."""
    runs, broken = content["violations"]["runs"], content["violations"]["occurrences"]
    exact = [level for level, left in cuts.items() if abs(left) < ROUNDING]
    if "1" in exact and (broken == 0 or len(content["margins"]) == 1):
        rest = f"All {runs:,} runs" if broken == 0 else f"All {runs - broken:,} runs that did not break it"
        return f"{rest} met it exactly in the round that came closest."
    if exact:
        share = max(map(float, exact)) - min(map(float, exact))
        return (
            f"In the round that came closest, at least {format_percent(share)} of runs met it exactly; the largest "
            f"distance was {format_number(cuts['1'])}."
        )
    if cuts["0.5"] < 0.0:
        best = f"{format_number(abs(cuts['1']))} {'beyond' if cuts['1'] < 0.0 else 'inside'}"
        return (
            f"In its worst round the median run was {format_number(-cuts['0.5'])} beyond it, and the best run {best}."
        )
    return (
        f"In the round of a run that came closest, the distance was {format_number(cuts['0.5'])} in the median run, "
        f"{format_number(cuts['0.01'])} or less in one run of a hundred, and {format_number(cuts['0'])} in the worst."
    )


def describe_rounds(closeness: dict[str, Any], one: dict[str, Any]) -> str:
    """Return in how many rounds the limit was met exactly, and the mean distance of a round."""
    runs = "the first run" if closeness["runs"] == 1 else f"the first {closeness['runs']:,} runs"
    share = format_percent(one["met"] / closeness["rounds"]) if one["met"] else "none"
    return (
        f"Of {closeness['rounds']:,} rounds of {runs}, {share} were exactly at the limit, and the mean distance to it "
        f"was {format_number(one['left'])}."
    )
