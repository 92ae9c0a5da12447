"""Claims about several constraints: all hold in every round, and the reward approaches the optimum."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.multi_constraint.plan import COUNTS, POLICIES, build_name
from stagewise_reproduction.claim import Claim, check_safety, compute_approach, to_verdict


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [check_safety(results)]
    for policy in POLICIES:
        shares = [compute_approach(results[build_name(policy, count)]) for count in COUNTS]
        statement = f"{policy}: at the end the reward is near the optimum, for m = 1, 2, 3 constraints"
        text = ", ".join(f"{share:.1%}" for share in shares)
        claims.append(Claim(statement, text, "at least 80 %", to_verdict(min(shares) >= 0.8)))
    return claims
