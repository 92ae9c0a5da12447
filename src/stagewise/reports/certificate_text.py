"""The sentences of a certificate's page."""

from typing import Any

from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.regret_bound import THEOREMS, RegretTheorem

MAX_TITLE_LIMITS = 3  # limits that a title names
ROUNDING = 1e-9  # below it numbers are rounding
STOPPING_NOTES = (  # by whether the runs were stopped before all were played
    "All planned runs were played, so the exact interval of Clopper and Pearson applies.",
    "The runs were stopped when the verdict was clear; the interval holds at every number of runs at once, so stopping "
    "early is valid.",
)
MIXTURE_NOTE = (
    "Single actions of a mixture: the guarantee is for the expected cost of the mixture that an action is drawn from, "
    "and a single action may cost more."
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
    return (
        f"The policy learns online for {claim['rounds']:,} rounds. The claim: {limits}. A run is broken if a single "
        f"round breaks a limit, and at most {format_percent(claim['delta'])} of runs may be broken."
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
    evidence, first_near_optimal_round, optimism = (
        content["regret"],
        content["first_near_optimal_round"],
        content["optimism"],
    )
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
    runs = content["violations"]["runs"]
    if first_near_optimal_round["quantiles"] is None:
        text.append("No run reached nine tenths of the possible gain in any round.")
    else:
        text.append(
            f"Nine tenths of the possible gain over the safe action were first reached in round "
            f"{format_number(first_near_optimal_round['quantiles']['0.5'])} (median; "
            f"{first_near_optimal_round['never']:,} of {runs:,} runs never did)."
        )
    return " ".join(text)


def format_duration(made: dict[str, Any]) -> str:
    """Return the time of the simulation, and of compiling if it was measured."""
    if made.get("compile_seconds") is None:
        return f"{made['seconds']:,} seconds, compiling included"
    return f"{made['seconds']:,} seconds, after {made['compile_seconds']:,} of compiling or loading compiled code"
