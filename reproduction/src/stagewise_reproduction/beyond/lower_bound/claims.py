"""Claims about the lower bound: it holds for policies that keep the limit, and not for others."""

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
    build_name,
    compute_bound,
)
from stagewise_reproduction.claim import Claim, check_safety, check_smaller, compute_final_regret, to_verdict


def get_worse_regret(policy: str, safety_gap: float, results: dict[str, Result]) -> float:
    """Return the regret on the worse of ν and ν'."""
    return max(compute_final_regret(results[build_name(policy, safety_gap, which)]) for which in INSTANCES)


def compute_safe_regret(safety_gap: float, results: dict[str, Result]) -> float:
    """Return the regret of always playing the safe arm, on the worse instance."""
    family = [results[build_name(POLICIES[0], safety_gap, which)] for which in INSTANCES]
    return max(float(one.rounds[-1]) * (float(one.optimum.mean()) - SAFE_REWARD) for one in family)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    limited = {name: result for name, result in results.items() if result.manifest["cell"]["policy"] in POLICIES}
    claims = [check_safety(limited)]
    for gap in GAPS:
        rounds, lower, safe_regret = (
            int(results[build_name(UNLIMITED, gap, "ν")].rounds[-1]),
            compute_bound(gap),
            compute_safe_regret(gap, results),
        )
        other = arms.compute_bound(ARMS, rounds)
        statement = f"gap {gap:g}, T = {rounds:,}: B is the larger term of the theorem"
        claims.append(Claim(statement, round(lower, 1), f"above {other:,.1f}", to_verdict(lower > other)))
        for policy in POLICIES:
            worse = get_worse_regret(policy, gap, results)
            statement = f"{policy}, gap {gap:g}: regret on the worse of ν and ν' is above the lower bound"
            claims.append(Claim(statement, round(worse, 1), f"at least {lower:,.1f}", to_verdict(worse >= lower), True))
            statement = f"{policy}, gap {gap:g}: and below that of never leaving the safe arm"
            claims.append(
                Claim(statement, round(worse, 1), f"below {safe_regret:,.1f}", to_verdict(worse < safe_regret))
            )
        unlimited = get_worse_regret(UNLIMITED, gap, results)
        statement = f"gap {gap:g}: UCB, which ignores the limit, is below the bound on both instances"
        claims.append(Claim(statement, round(unlimited, 1), f"below {lower:,.1f}", to_verdict(unlimited < lower)))
    gap = GAPS[-1]
    informed, lower = get_worse_regret(INFORMED, gap, results), compute_bound(gap)
    statement = f"gap {gap:g}: who knows all but the cost of arm 3 comes within 60 times the bound"
    claims.append(
        Claim(statement, round(informed / lower, 1), "from 1 to 60", to_verdict(1.0 <= informed / lower <= 60.0))
    )
    statement = f"gap {gap:g}: and regrets less than OPB, which knows the safe arm only"
    claims.append(check_smaller(statement, round(informed, 1), get_worse_regret("OPB", gap, results)))
    return claims
