"""Claims of Section 3 about exploring first: regret of order T^(2/3), above that of an algorithm of order √T."""

import math

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.safe_lucb.plan import POLICIES
from stagewise_reproduction.claim import Claim, check_safety, check_smaller, compute_final_regret, to_verdict


def group_by_horizon(results: dict[str, Result], policy: str) -> dict[int, Result]:
    """Return a policy's results by horizon."""
    ours = [result for result in results.values() if result.manifest["cell"]["policy"] == policy]
    return {int(result.rounds[-1]): result for result in sorted(ours, key=lambda one: int(one.rounds[-1]))}


def compute_growth(curves: dict[int, Result]) -> float:
    """Return the slope of log regret against log horizon between the last two horizons."""
    (first, one), (last, other) = list(curves.items())[-2:]
    return math.log(max(compute_final_regret(other), 1e-9) / max(compute_final_regret(one), 1e-9)) / math.log(
        last / first
    )


def compute_exploration_share(result: Result) -> float:
    """Return the share of the regret from the forced exploration, T^(2/3) rounds of T."""
    rounds = int(result.rounds[-1])
    end = int(result.rounds.searchsorted(math.ceil(math.pow(rounds, 2.0 / 3.0))))
    return float((result.regret[:, end] / result.regret[:, -1]).mean())


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    ours, theirs = (
        check_safety({str(horizon): one for horizon, one in group_by_horizon(results, name).items()})
        for name in POLICIES[::-1]
    )
    claims = [
        ours._replace(name=f"LC-LUCB: {ours.name}"),
        theirs._replace(name=f"Safe-LUCB: {theirs.name}", must_hold=False),
    ]
    rates = {policy: compute_growth(group_by_horizon(results, policy)) for policy in POLICIES}
    statement = "Safe-LUCB: between the last two horizons its regret grows faster than √T"
    value = rates["Safe-LUCB"]
    claims.append(Claim(statement, round(value, 3), "exponent above 1/2, towards 2/3", to_verdict(value > 0.5)))
    last = max(group_by_horizon(results, POLICIES[0]))
    longest = group_by_horizon(results, "Safe-LUCB")[last]
    statement = f"Safe-LUCB: forced exploration makes most of the regret after {last:,} rounds"
    share = compute_exploration_share(longest)
    claims.append(Claim(statement, f"{share:.0%}", "above 50 %", to_verdict(share > 0.5)))
    statement = "LC-LUCB: its regret grows more slowly"
    claims.append(check_smaller(statement, round(rates["LC-LUCB"], 3), value))
    statement = f"LC-LUCB: less regret after {last:,} rounds"
    claims.append(
        check_smaller(
            statement,
            round(compute_final_regret(group_by_horizon(results, "LC-LUCB")[last]), 1),
            compute_final_regret(longest),
        )
    )
    return claims
