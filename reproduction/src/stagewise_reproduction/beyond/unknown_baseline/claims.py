"""Claims for an estimated safe action: safety from the first round, and learning."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.unknown_baseline.plan import KNOWN, POLICIES, build_name
from stagewise_reproduction.claim import (
    Claim,
    check_safety,
    check_smaller,
    compute_approach,
    compute_final_regret,
    to_verdict,
)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [check_safety(results)]
    for policy in POLICIES:
        first, last = (results[build_name(policy, known)] for known in (KNOWN[0], KNOWN[-1]))
        statement = f"{policy}: knowing reward and cost of the safe action helps"
        claims.append(check_smaller(statement, compute_final_regret(first), compute_final_regret(last)))
        share = compute_approach(last)
        statement = f"{policy}: with both unknown the reward still approaches the optimum"
        claims.append(Claim(statement, f"{share:.1%}", "at least 80 %", to_verdict(share >= 0.8)))
    return claims
