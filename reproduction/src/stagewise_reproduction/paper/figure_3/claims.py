"""What the paper says of OPB on random arms."""

from itertools import pairwise

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, final, safety, verdict
from stagewise_reproduction.paper.figure_3.plan import ARMS, THRESHOLDS, name_of


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    for count in ARMS:
        finals = [final(results[name_of(preset, count, threshold)]) for threshold in THRESHOLDS]
        statement = f"K = {count}: OPB's regret grows as τ falls, τ = .8, .5, .2"
        claims.append(growing(preset, statement, finals))
    for threshold in THRESHOLDS:
        finals = [final(results[name_of(preset, count, threshold)]) for count in ARMS]
        claims.append(growing(preset, f"τ = {threshold:g}: OPB's regret grows with K = 5, 10, 20", finals))
    return claims


def growing(preset: str, statement: str, finals: list[float]) -> Claim:
    """Say whether the numbers rise; if not, what we know of the reason."""
    rises, remark = all(one < other for one, other in pairwise(finals)), ""
    if not rises and preset == "authors":
        remark = (
            "the published code cuts hoped rewards at 1: not optimistic, linear regret on some instances (errata, E33)"
        )
    elif not rises:
        remark = "few random instances, which differ from one K to the next"
    shown = ", ".join(f"{value:,.0f}" for value in finals)
    return Claim(statement, shown, "rises", verdict(rises), False, remark)
