"""What the paper says of OPB on random arms."""

from itertools import pairwise

from stagewise.experiments.claim import Claim, final, safety, verdict
from stagewise.experiments.random_arms.plan import ARMS, THRESHOLDS, name_of
from stagewise.reports.result import Result


def check(experiment: str, preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(experiment, results)]
    for count in ARMS:
        finals = [final(results[name_of(preset, count, threshold)]) for threshold in THRESHOLDS]
        statement = f"K = {count}: OPB's regret grows as τ falls, τ = .8, .5, .2"
        claims.append(growing(experiment, statement, finals))
    for threshold in THRESHOLDS:
        finals = [final(results[name_of(preset, count, threshold)]) for count in ARMS]
        claims.append(growing(experiment, f"τ = {threshold:g}: OPB's regret grows with K = 5, 10, 20", finals))
    return claims


def growing(experiment: str, statement: str, finals: list[float]) -> Claim:
    """Say whether the numbers rise."""
    holds = verdict(all(one < other for one, other in pairwise(finals)))
    return Claim(experiment, statement, ", ".join(f"{value:,.0f}" for value in finals), "rises", holds)
