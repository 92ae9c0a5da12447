"""What the paper says of OPB on random arms."""

from itertools import pairwise

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, final, safety, verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_3.plan import ARMS, LEAST, PUBLIC_ARMS, THRESHOLDS, name_of

CUT = (
    "limits and rewards are counted by the means before outcomes are cut to [0, 1], as in the public code, which stops "
    "where one is broken; an arm that costs nearly 1 is seen to cost less"
)


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    if preset == "authors":
        finals = [final(results[name_of(preset, PUBLIC_ARMS, least)]) for least in LEAST]
        words = f"K = {PUBLIC_ARMS}: OPB's regret grows as the least τ falls, {listed(LEAST)}"
        return [safety(results, 0.0)._replace(remark=CUT), growing(words, finals)]
    claims = [safety(results, DELTA)]
    for count in ARMS:
        finals = [final(results[name_of(preset, count, threshold)]) for threshold in THRESHOLDS]
        claims.append(growing(f"K = {count}: OPB's regret grows as τ falls, τ = {listed(THRESHOLDS)}", finals))
    for threshold in THRESHOLDS:
        finals = [final(results[name_of(preset, count, threshold)]) for count in ARMS]
        words = f"τ = {threshold:g}: OPB's regret grows with K = {listed(ARMS)}"
        claims.append(growing(words, finals, "the instances differ from one K to the next"))
    return claims


def listed(values: tuple[float, ...]) -> str:
    """Return numbers, one after another."""
    return ", ".join(f"{value:g}" for value in values)


def growing(statement: str, finals: list[float], remark: str = "") -> Claim:
    """Say whether the numbers rise."""
    shown = ", ".join(f"{value:,.0f}" for value in finals)
    rises = verdict(all(one < other for one, other in pairwise(finals)))
    return Claim(statement, shown, "rises", rises, False, remark)
