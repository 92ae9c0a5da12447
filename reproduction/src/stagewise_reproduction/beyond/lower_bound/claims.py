"""What the lower bound says: on one of the two instances the regret is at least B."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.lower_bound.plan import GAPS, INSTANCES, POLICIES, bound, name_of
from stagewise_reproduction.claim import Claim, final, safety, verdict


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    for policy in POLICIES:
        for gap in GAPS:
            pair = [results[name_of(policy, gap, which)] for which in INSTANCES]
            worse, least = max(map(final, pair)), bound(gap)
            statement = f"{policy}, gap {gap:g}: regret on the worse of ν and ν' is above the lower bound"
            holds = verdict(worse >= least)
            claims.append(Claim(statement, round(worse, 1), f"at least {least:,.1f}", holds, True))
    return claims
