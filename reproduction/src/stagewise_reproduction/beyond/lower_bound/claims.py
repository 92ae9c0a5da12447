"""What the lower bound says of whoever keeps the limit, and that it does not hold of whoever does not."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.lower_bound import arms
from stagewise_reproduction.beyond.lower_bound.plan import (
    ARMS,
    GAPS,
    INFORMED,
    INSTANCES,
    POLICIES,
    SAFE_REWARD,
    UNLIMITED,
    bound,
    name_of,
)
from stagewise_reproduction.claim import Claim, final, safety, smaller, verdict


def worse_of(policy: str, gap: float, results: dict[str, Result]) -> float:
    """Return the regret on the worse of ν and ν'."""
    return max(final(results[name_of(policy, gap, which)]) for which in INSTANCES)


def staying(gap: float, results: dict[str, Result]) -> float:
    """Return what never leaving the safe arm costs on the worse instance."""
    own = [results[name_of(POLICIES[0], gap, which)] for which in INSTANCES]
    return max(float(one.rounds[-1]) * (float(one.optimum.mean()) - SAFE_REWARD) for one in own)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    kept = {name: result for name, result in results.items() if result.manifest["cell"]["policy"] in POLICIES}
    claims = [safety(kept)]
    for gap in GAPS:
        rounds, least, stay = int(results[name_of(UNLIMITED, gap, "ν")].rounds[-1]), bound(gap), staying(gap, results)
        other = arms.bound(ARMS, rounds)
        statement = f"gap {gap:g}, T = {rounds:,}: B is the larger term of the theorem"
        claims.append(Claim(statement, round(least, 1), f"above {other:,.1f}", verdict(least > other)))
        for policy in POLICIES:
            worse = worse_of(policy, gap, results)
            statement = f"{policy}, gap {gap:g}: regret on the worse of ν and ν' is above the lower bound"
            claims.append(Claim(statement, round(worse, 1), f"at least {least:,.1f}", verdict(worse >= least), True))
            statement = f"{policy}, gap {gap:g}: and below that of never leaving the safe arm"
            claims.append(Claim(statement, round(worse, 1), f"below {stay:,.1f}", verdict(worse < stay)))
        free = worse_of(UNLIMITED, gap, results)
        statement = f"gap {gap:g}: UCB, which ignores the limit, is below the bound on both instances"
        claims.append(Claim(statement, round(free, 1), f"below {least:,.1f}", verdict(free < least)))
    gap = GAPS[-1]
    known, least = worse_of(INFORMED, gap, results), bound(gap)
    statement = f"gap {gap:g}: who knows all but the cost of arm 3 comes within 60 times the bound"
    claims.append(Claim(statement, round(known / least, 1), "from 1 to 60", verdict(1.0 <= known / least <= 60.0)))
    statement = f"gap {gap:g}: and regrets less than OPB, which knows the safe arm only"
    claims.append(smaller(statement, round(known, 1), worse_of("OPB", gap, results)))
    return claims
