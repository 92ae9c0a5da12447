"""Claims about the cost of safety and the effect of tighter radii."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.price_of_safety.plan import POLICIES, THRESHOLDS, UNSAFE, build_name
from stagewise_reproduction.claim import (
    HOLDS,
    REMARK,
    Claim,
    check_safety,
    check_smaller,
    compute_final_regret,
    to_verdict,
)

SAFE_KINDS = [policy for policy in POLICIES if policy not in UNSAFE]


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    safe_results = {build_name(p, t): results[build_name(p, t)] for p in SAFE_KINDS for t in THRESHOLDS}
    claims = [check_safety(safe_results)]
    for threshold in THRESHOLDS:
        regrets = {policy: compute_final_regret(results[build_name(policy, threshold)]) for policy in POLICIES}
        paper_regret, ours = regrets["LC-LUCB, paper's radius"], regrets["LC-LUCB, joint and clip"]
        statement = f"τ = {threshold:g}: the joint radius and the clip regret less than the paper's radius"
        roful_regret = regrets["ROFUL, joint and clip"]
        ratios = paper_regret / ours, paper_regret / roful_regret
        remark = f"the paper's radius regrets {ratios[0]:.1f} times this, and {ratios[1]:.1f} times ROFUL's"
        claims.append(check_smaller(statement, round(ours), paper_regret, remark))
        sampled = regrets["Safe-LTS, no inflation"]
        statement = f"τ = {threshold:g}: LC-LUCB regrets less than Safe-LTS without inflation, same radius and clip"
        count = check_safety({"": results[build_name("Safe-LTS, no inflation", threshold)]}).value
        remark = f"without inflation Safe-LTS has no regret proof; over the limit: {count}"
        claims.append(check_smaller(statement, round(ours), sampled, remark))
        claims += [check_violations(policy, threshold, results[build_name(policy, threshold)]) for policy in UNSAFE]
    return claims


def check_violations(policy: str, threshold: float, result: Result) -> Claim:
    """Return the claim about how often a policy without a guarantee violates the limit."""
    share = float(result.violations.mean() / result.rounds[-1])
    word = HOLDS if share > 0.5 else REMARK if share > 0.0 else to_verdict(False)
    statement = f"τ = {threshold:g}: {policy.removesuffix(', which violates')} breaks the limit"
    return Claim(statement, f"{share:.1%} of rounds", "more than none", word)
