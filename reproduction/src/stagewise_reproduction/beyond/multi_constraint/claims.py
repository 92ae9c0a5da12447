"""What the multi-constraint theorems say: every constraint holds in every round, and the optimum is approached."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.multi_constraint.plan import COUNTS, POLICIES, name_of
from stagewise_reproduction.claim import Claim, approach, safety, verdict


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    for policy in POLICIES:
        shares = [approach(results[name_of(policy, count)]) for count in COUNTS]
        statement = f"{policy}: at the end the reward is near the optimum, for m = 1, 2, 3 constraints"
        shown = ", ".join(f"{share:.1%}" for share in shares)
        claims.append(Claim(statement, shown, "at least 80 %", verdict(min(shares) >= 0.8)))
    return claims
