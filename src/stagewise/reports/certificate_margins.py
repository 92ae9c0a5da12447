"""Sentences on how close runs came to their limits."""

from typing import Any

from stagewise.reports.certificate_text import ROUNDING, format_number, format_percent

TIGHT_NOTE = (
    "A limit that is met exactly is kept: the policy goes as far as the declared bounds allow, which is the limit "
    "itself if a cost is as large as declared."
)


def describe_margins(content: dict[str, Any]) -> list[str]:
    """Return a paragraph for each limit, and one on when limits were first broken."""
    names = list(content["margins"])
    sampled = (content.get("closeness") or {"limits": []})["limits"]
    paragraphs, is_met = [], False
    for index, name in enumerate(names):
        cuts, limit = content["margins"][name]["quantiles"], content["thresholds"][index]
        largest = (
            describe_largest_cost(name, cuts["0"], limit)
            if has_common_limits(content)
            else describe_smallest_margin(name, cuts["0"])
        )
        sentences = [largest, describe_runs(content, cuts)]
        if index < len(sampled):
            sentences.append(describe_rounds(content, sampled[index]))
        is_met = is_met or abs(cuts["0.5"]) < ROUNDING
        paragraphs.append(" ".join(sentences))
    if is_met:
        paragraphs.append(TIGHT_NOTE)
    if content["first_violation"] is not None:
        median = format_number(content["first_violation"]["0.5"])
        paragraphs.append(f"In runs that broke a limit, the first round to do so was {median} (median).")
    return paragraphs


def has_common_limits(content: dict[str, Any]) -> bool:
    """Say whether all runs have the same limits; policies that a function draws may differ."""
    return not content["world"].get("draws_policies", False)


def describe_largest_cost(name: str, left: float, limit: dict[str, Any]) -> str:
    """Return the largest cost of all rounds, and its distance to the limit."""
    is_lower = limit["side"] == "at least"
    cost = limit["value"] + (left if is_lower else -left)
    word = "smallest" if is_lower else "largest"
    where = (
        f"exactly the limit of {format_number(limit['value'])}"
        if abs(left) < ROUNDING
        else f"{format_number(abs(left))} {'inside' if left > 0.0 else 'beyond'} the limit of "
        f"{format_number(limit['value'])}"
    )
    value = "" if abs(left) < ROUNDING else f"{format_number(cost)}, "
    return f"The {word} true expected {name} of any round of any run was {value}{where}."


def describe_smallest_margin(name: str, left: float) -> str:
    """Return the same if each run has its own limits."""
    return f"The smallest distance of any round to the limit of {name} was {format_number(left)}."


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


def describe_rounds(content: dict[str, Any], one: dict[str, Any]) -> str:
    """Return in how many rounds the limit was met exactly, and the mean distance of a round."""
    closeness = content["closeness"]
    runs = "the first run" if closeness["runs"] == 1 else f"the first {closeness['runs']:,} runs"
    share = format_percent(one["met"] / closeness["rounds"]) if one["met"] else "none"
    return (
        f"Of {closeness['rounds']:,} rounds of {runs}, {share} were exactly at the limit, and the mean distance to it "
        f"was {format_number(one['left'])}."
    )
