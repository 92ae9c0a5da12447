"""What must hold when the safe action's values are estimated: safety from the first round, and learning still."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.unknown_baseline.plan import KNOWN, POLICIES, name_of
from stagewise_reproduction.claim import Claim, approach, final, safety, smaller, verdict


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    for policy in POLICIES:
        first, last = (results[name_of(policy, known)] for known in (KNOWN[0], KNOWN[-1]))
        statement = f"{policy}: knowing reward and cost of the safe action helps"
        claims.append(smaller(statement, final(first), final(last)))
        share = approach(last)
        statement = f"{policy}: with both unknown the reward still approaches the optimum"
        claims.append(Claim(statement, f"{share:.1%}", "at least 80 %", verdict(share >= 0.8)))
    return claims
