"""What the paper says of the unit sphere."""

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, final, safety, verdict
from stagewise_reproduction.paper.figure_2.plan import DIMENSIONS, name_of


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results)]
    for dimension in DIMENSIONS:
        ours, theirs = (results[name_of(preset, policy, dimension)] for policy in ("LC-LUCB", "Safe-LTS"))
        paired = theirs.regret[:, -1] - ours.regret[:, -1]
        statement = f"d = {dimension}: LC-LUCB's mean regret is below Safe-LTS's"
        spread = float(paired.std(ddof=1) / len(paired) ** 0.5)
        remark = f"paired difference {paired.mean():,.0f}, standard error {spread:,.0f}, over {len(paired)} instances"
        holds = verdict(final(ours) < final(theirs))
        claims.append(Claim(statement, round(final(ours), 1), f"below {final(theirs):,.1f}", holds, False, remark))
    return claims
