"""How close runs came to their limits, in sentences that also say something where limits are met exactly."""

from typing import Any

from stagewise.reports.certificate_words import NOTHING, percent, shown

TIGHT = (
    "Met is not broken: the policy goes as far as what it was told allows, and where a cost is as large as was "
    "declared, that is the limit itself."
)


def how_close(content: dict[str, Any]) -> list[str]:
    """Return a paragraph for each limit, and one on when limits were first broken."""
    names = list(content["margins"])
    sampled = (content.get("closeness") or {"limits": []})["limits"]
    words, met = [], False
    for place, name in enumerate(names):
        cuts, limit = content["margins"][name]["quantiles"], content["thresholds"][place]
        dearest = largest(name, cuts["0"], limit) if shares_limits(content) else worst(name, cuts["0"])
        told = [dearest, in_runs(content, cuts)]
        if place < len(sampled):
            told.append(in_rounds(content, sampled[place]))
        met = met or abs(cuts["0.5"]) < NOTHING
        words.append(" ".join(told))
    if met:
        words.append(TIGHT)
    if content["first_violation"] is not None:
        median = shown(content["first_violation"]["0.5"])
        words.append(f"Where a limit was broken, it first was in round {median} (median).")
    return words


def shares_limits(content: dict[str, Any]) -> bool:
    """Say whether all runs have the same limits: policies that a function draws may have others."""
    return not content["world"].get("draws_policies", False)


def largest(name: str, left: float, limit: dict[str, Any]) -> str:
    """Say what the dearest of all rounds cost, and how far that is from the limit."""
    low = limit["side"] == "at least"
    cost = limit["value"] + (left if low else -left)
    word = "smallest" if low else "largest"
    where = (
        f"exactly the limit of {shown(limit['value'])}"
        if abs(left) < NOTHING
        else f"{shown(abs(left))} {'inside' if left > 0.0 else 'beyond'} the limit of {shown(limit['value'])}"
    )
    told = "" if abs(left) < NOTHING else f"{shown(cost)}, "
    return f"The {word} true expected {name} of any round of any run was {told}{where}."


def worst(name: str, left: float) -> str:
    """Say the same where each run has limits of its own."""
    return f"In the dearest round of all runs what was left to the limit of {name} was {shown(left)}."


def in_runs(content: dict[str, Any], cuts: dict[str, float]) -> str:
    """Say how runs spread, by the round of each that came closest."""
    runs, broken = content["violations"]["runs"], content["violations"]["happened"]
    exact = [level for level, left in cuts.items() if abs(left) < NOTHING]
    if "1" in exact and (broken == 0 or len(content["margins"]) == 1):
        rest = f"All {runs:,} runs" if broken == 0 else f"All {runs - broken:,} runs that did not break it"
        return f"{rest} met it exactly in the round that came closest."
    if exact:
        share = max(map(float, exact)) - min(map(float, exact))
        return (
            f"In the round that came closest, at least {percent(share)} of runs met it exactly; the run with most to "
            f"spare left {shown(cuts['1'])}."
        )
    if cuts["0.5"] < 0.0:
        best = f"{shown(abs(cuts['1']))} {'beyond' if cuts['1'] < 0.0 else 'inside'}"
        return (
            f"In its worst round the middle run was {shown(-cuts['0.5'])} beyond it, and the run that did best {best}."
        )
    return (
        f"In the round of a run that came closest, what was left was {shown(cuts['0.5'])} in the middle run, "
        f"{shown(cuts['0.01'])} or less in one run of a hundred, {shown(cuts['0'])} in the worst."
    )


def in_rounds(content: dict[str, Any], one: dict[str, Any]) -> str:
    """Say in how many rounds the limit was met, and what a round left of it."""
    looked = content["closeness"]
    runs = "the first run" if looked["runs"] == 1 else f"the first {looked['runs']:,} runs"
    share = percent(one["met"] / looked["rounds"]) if one["met"] else "none"
    return (
        f"Of {looked['rounds']:,} rounds of {runs}, {share} were exactly at the limit, and a round left "
        f"{shown(one['left'])} to it on average."
    )
