"""What Section 3 says of exploring first: regret of order T^(2/3), above that of an algorithm of order √T."""

import math

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.safe_lucb.plan import POLICIES
from stagewise_reproduction.claim import Claim, final, safety, smaller, verdict


def ends(results: dict[str, Result], policy: str) -> dict[int, Result]:
    """Return a policy's results by horizon."""
    own = [result for result in results.values() if result.manifest["cell"]["policy"] == policy]
    return {int(result.rounds[-1]): result for result in sorted(own, key=lambda one: int(one.rounds[-1]))}


def growth(curves: dict[int, Result]) -> float:
    """Return the slope of log regret against log horizon between the last two horizons."""
    (first, one), (last, other) = list(curves.items())[-2:]
    return math.log(max(final(other), 1e-9) / max(final(one), 1e-9)) / math.log(last / first)


def explored(result: Result) -> float:
    """Return the share of the regret that the forced exploration makes, T^(2/3) rounds of T."""
    rounds = int(result.rounds[-1])
    end = int(result.rounds.searchsorted(math.ceil(math.pow(rounds, 2.0 / 3.0))))
    return float((result.regret[:, end] / result.regret[:, -1]).mean())


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    own, theirs = (safety({str(place): one for place, one in ends(results, name).items()}) for name in POLICIES[::-1])
    claims = [
        own._replace(name=f"LC-LUCB: {own.name}"),
        theirs._replace(name=f"Safe-LUCB: {theirs.name}", must_hold=False),
    ]
    rates = {policy: growth(ends(results, policy)) for policy in POLICIES}
    statement = "Safe-LUCB: between the last two horizons its regret grows faster than √T"
    value = rates["Safe-LUCB"]
    claims.append(Claim(statement, round(value, 3), "exponent above 1/2, towards 2/3", verdict(value > 0.5)))
    last = max(ends(results, POLICIES[0]))
    longest = ends(results, "Safe-LUCB")[last]
    statement = f"Safe-LUCB: forced exploration makes most of the regret after {last:,} rounds"
    share = explored(longest)
    claims.append(Claim(statement, f"{share:.0%}", "above 50 %", verdict(share > 0.5)))
    statement = "LC-LUCB: its regret grows more slowly"
    claims.append(smaller(statement, round(rates["LC-LUCB"], 3), value))
    statement = f"LC-LUCB: less regret after {last:,} rounds"
    claims.append(smaller(statement, round(final(ends(results, "LC-LUCB")[last]), 1), final(longest)))
    return claims
