"""Who keeps the limit in every round, who on average, and who has less regret."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import build_name
from stagewise_reproduction.beyond.rivals.plan import FAMILIES, ON_AVERAGE, PER_ROUND
from stagewise_reproduction.claim import Claim, check_clearly_smaller, check_safety, to_verdict


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    by_policy = {
        name: result for name, result in results.items() if result.manifest["cell"]["policy"].startswith(PER_ROUND)
    }
    kept = {name: result for name, result in by_policy.items() if result.manifest["cell"]["policy"] != "CAPS, rates"}
    claims = [check_safety(kept)]
    for family in FAMILIES:
        for name in ON_AVERAGE:
            result = results.get("rivals-" + build_name(family, name))
            if result is not None:
                share = float(result.violations.mean() / result.rounds[-1])
                statement = f"{family}: {name} exceeds the limit in some rounds"
                claims.append(Claim(statement, f"{share:.1%} of rounds", "more than none", to_verdict(share > 0.0)))
    disclosed = "the rival wins here"
    for family in list(FAMILIES)[:3]:
        ours = results["rivals-" + build_name(family, "CAPS")]
        for name in ("S-COLTS", "S-COLTS, posterior noise", "Safe-PE"):
            other = results["rivals-" + build_name(family, name)]
            claims.append(check_clearly_smaller(f"{family}: CAPS regrets less than {name}", ours, other, disclosed))
    return claims
