"""What a certificate says, in sentences for people who decide and do not compute."""

from typing import Any

from stagewise.reports.evidence import REFUTED, SUPPORTED

FEW = 3  # limits that a title names
NOTHING = 1e-9  # below it numbers are rounding
STOPPED = (  # by whether the runs were stopped before all were played
    "All planned runs were played, so the exact interval of Clopper and Pearson applies.",
    "The runs were stopped when the answer was clear; the interval holds at every number of runs at once, "
    "so looking at it and stopping is allowed.",
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


def ends_of(one: dict[str, Any]) -> tuple[float, float]:
    """Return between which ends a probability lies: of both intervals, where there are two."""
    low, high = one["exact"] or (0.0, 1.0)
    return max(one["anytime"][0], low), min(one["anytime"][1], high)


def headline(content: dict[str, Any]) -> str:
    """Return the verdict in a sentence."""
    found, claim, verdict = content["violations"], content["claim"], content["verdict"]
    (low, high), may = map(percent, ends_of(found)), percent(found["allowed"])
    sure = f"with {percent(claim['confidence'])} confidence"
    words = f"{found['happened']:,} of {found['runs']:,} simulated runs of {claim['rounds']:,} rounds broke a limit. "
    if verdict == SUPPORTED:
        words += f"At most {high} of such runs do, {sure}; {may} may."
    elif verdict == REFUTED:
        words += f"At least {low} of all such runs do, {sure}, and only {may} may."
    else:
        words += f"So between {low} and {high} of all such runs do, {sure}; {may} may. At this rate "
        needed = found["needed"]
        words += (
            f"about {needed:,} runs would be enough to support it." if needed else "no number of runs would support it."
        )
    broken = [repr(one["signal"]) for one in content["coverage"] if one["verdict"] == REFUTED]
    if broken and verdict == SUPPORTED:
        words += (
            f" But the intervals of {', '.join(broken)}, which the promise rests on, fail more often than "
            "they may: do not rely on this elsewhere."
        )
    if verdict == SUPPORTED and not all(one["kept"] for one in content["assumptions"]):
        words += " But not all that was assumed was so, as the table says, and then no theorem stands behind this."
    return words


def title(content: dict[str, Any]) -> str:
    """Return what the page is about: the campaign, where it has a name, the policy and its limits."""
    told = content["thresholds"]
    limits = [f"{one['name']} {'≥' if one['side'] == 'at least' else '≤'} {shown(one['value'])}" for one in told]
    kept = ", ".join(limits) if len(limits) <= FEW else f"its {len(limits)} limits"
    kind, name = content["policy"]["kind"], content["made"].get("name")
    return f"{name}: does {kind} keep {kept}?" if name else f"Does {kind} keep {kept}?"


def promised(content: dict[str, Any]) -> str:
    """Return the claim."""
    limits = "; ".join(
        f"the expected {one['name']} of every round is {one['side']} {shown(one['value'])}"
        for one in content["thresholds"]
    )
    claim = content["claim"]
    return (
        f"In {claim['rounds']:,} rounds the policy learns by doing. The claim: {limits}. A run in which even one round "
        f"breaks a limit counts as broken as a whole, and at most {percent(claim['delta'])} of runs may be."
    )


def played_in(world: dict[str, Any]) -> str:
    """Return which worlds the runs were played in."""
    spread = world.get("spread")
    means = (
        "from [0, 1]" if spread is None else f"around the given ones, {percent(spread)} less to {percent(spread)} more"
    )
    return {
        "fixed": "All runs were played in one and the same world.",
        "random-sphere": "Every run had its own world: directions of reward and cost drawn evenly from the sphere.",
        "random-arms": f"Every run had its own world: means of all arms but the safe one drawn evenly {means}.",
    }.get(world["family"], f"Every run had its own world, drawn by {world.get('name', 'a function')}.")


def what_caution_cost(content: dict[str, Any]) -> str:
    """Return regret, its bound, optimism and the time to become useful."""
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
    return " ".join(words)


def took(made: dict[str, Any]) -> str:
    """Return how long it took: to play, and before that to compile, where the two were measured apart."""
    if made.get("compiling") is None:
        return f"{made['seconds']:,} seconds, compiling included"
    return f"{made['seconds']:,} seconds of playing, after {made['compiling']:,} of compiling (or of loading what was)"
