"""What the paper says of the unit sphere."""

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, final, like_stored, safety, verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_2.plan import DIMENSIONS, POLICIES, name_of
from stagewise_reproduction.stored import ROUNDS, STORED


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results, 0.0 if preset == "authors" else DELTA)]
    for dimension in DIMENSIONS:
        ours, theirs = (results[name_of(preset, policy, dimension)] for policy in POLICIES)
        paired = theirs.regret[:, -1] - ours.regret[:, -1]
        statement = f"d = {dimension}: LC-LUCB's mean regret is below Safe-LTS's"
        spread = float(paired.std(ddof=1) / len(paired) ** 0.5)
        remark = f"paired difference {paired.mean():,.0f}, standard error {spread:,.0f}, over {len(paired)} instances"
        holds = verdict(final(ours) < final(theirs))
        claims.append(Claim(statement, round(final(ours), 1), f"below {final(theirs):,.1f}", holds, False, remark))
        if preset == "authors" and int(ours.rounds[-1]) == ROUNDS:
            for policy in POLICIES:
                stored = STORED[policy, dimension, None]
                result = results[name_of(preset, policy, dimension)]
                claims.append(like_stored(f"d = {dimension}: {policy}", result, stored, "; of other instances"))
    return claims
