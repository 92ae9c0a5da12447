"""What Section 3 says of exploring first: regret of order T^(2/3), above that of an algorithm of order √T."""

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.safe_lucb.plan import POLICIES
from stagewise_reproduction.claim import Claim, final, safety, smaller, verdict


def ends(results: dict[str, Result], policy: str) -> dict[int, Result]:
    """Return a policy's results by horizon."""
    own = [result for result in results.values() if result.manifest["cell"]["policy"] == policy]
    return {int(result.rounds[-1]): result for result in sorted(own, key=lambda one: int(one.rounds[-1]))}


def growth(curves: dict[int, Result]) -> float:
    """Return the slope of log regret at the horizon against log horizon."""
    horizons, regrets = np.log(list(curves)), np.log([max(final(one), 1e-9) for one in curves.values()])
    return float(np.polyfit(horizons, regrets, 1)[0])


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    rates = {policy: growth(ends(results, policy)) for policy in POLICIES}
    least = 0.55
    statement = "Safe-LUCB: regret grows with the horizon about as T^(2/3)"
    holds = verdict(least <= rates["Safe-LUCB"] <= 0.78)
    claims.append(Claim(statement, round(rates["Safe-LUCB"], 3), f"exponent from {least:g} to 0.78", holds))
    last = max(ends(results, POLICIES[0]))
    explored = final(ends(results, "Safe-LUCB")[last])
    for policy in POLICIES[1:]:
        statement = f"{policy}: regret grows more slowly than Safe-LUCB's"
        claims.append(smaller(statement, round(rates[policy], 3), rates["Safe-LUCB"]))
        statement = f"{policy}: less regret than Safe-LUCB after {last:,} rounds"
        claims.append(smaller(statement, round(final(ends(results, policy)[last]), 1), explored))
    return claims
