"""The paper's claims about the unit sphere."""

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, check_safety, check_stored, compute_final_regret, to_verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_2.plan import DIMENSIONS, POLICIES, build_name
from stagewise_reproduction.stored import ROUNDS, STORED


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [check_safety(results, 0.0 if preset == "authors" else DELTA)]
    for dimension in DIMENSIONS:
        ours, theirs = (results[build_name(preset, policy, dimension)] for policy in POLICIES)
        differences = theirs.regret[:, -1] - ours.regret[:, -1]
        statement = f"d = {dimension}: LC-LUCB's mean regret is below Safe-LTS's"
        standard_error = float(differences.std(ddof=1) / len(differences) ** 0.5)
        remark = f"paired difference {differences.mean():,.0f}, standard error {standard_error:,.0f}"
        remark += f", over {len(differences)} instances"
        holds = to_verdict(compute_final_regret(ours) < compute_final_regret(theirs))
        claims.append(
            Claim(
                statement,
                round(compute_final_regret(ours), 1),
                f"below {compute_final_regret(theirs):,.1f}",
                holds,
                False,
                remark,
            )
        )
        if preset == "authors" and int(ours.rounds[-1]) == ROUNDS:
            for policy in POLICIES:
                stored = STORED[policy, dimension, None]
                result = results[build_name(preset, policy, dimension)]
                claims.append(check_stored(f"d = {dimension}: {policy}", result, stored, "; of other instances"))
    return claims
