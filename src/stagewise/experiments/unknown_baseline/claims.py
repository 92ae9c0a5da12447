"""What must hold when the safe action's values are estimated: safety from the first round, and learning still."""

from stagewise.experiments.claim import Claim, approach, final, safety, smaller, verdict
from stagewise.experiments.unknown_baseline.plan import KNOWN, POLICIES, name_of
from stagewise.reports.result import Result


def check(experiment: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(experiment, results)]
    for policy in POLICIES:
        first, *_, last = (results[name_of(policy, known)] for known in KNOWN)
        claims.append(
            smaller(
                experiment, f"{policy}: knowing reward and cost of the safe action helps", final(first), final(last)
            )
        )
        share = approach(last)
        statement = f"{policy}: with both unknown the reward still approaches the optimum"
        claims.append(Claim(experiment, statement, f"{share:.1%}", "at least 80 %", verdict(share >= 0.8)))
    return claims
