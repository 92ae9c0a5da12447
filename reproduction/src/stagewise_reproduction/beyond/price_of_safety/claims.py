"""What safety costs, what tighter radii give back, and what has to be disclosed."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.price_of_safety.plan import POLICIES, THRESHOLDS, UNSAFE, name_of
from stagewise_reproduction.claim import HOLDS, REMARK, Claim, final, safety, smaller, verdict

SAFE_KINDS = [policy for policy in POLICIES if policy not in UNSAFE]


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    guarded = {name_of(p, t): results[name_of(p, t)] for p in SAFE_KINDS for t in THRESHOLDS}
    claims = [safety(guarded)]
    for threshold in THRESHOLDS:
        regrets = {policy: final(results[name_of(policy, threshold)]) for policy in POLICIES}
        papers, ours = regrets["LC-LUCB, paper's radius"], regrets["LC-LUCB, joint and clip"]
        statement = f"τ = {threshold:g}: the joint radius and the clip regret less than the paper's radius"
        rofuls = regrets["ROFUL, joint and clip"]
        remark = f"the paper's radius regrets {papers / ours:.1f} times this, and {papers / rofuls:.1f} times ROFUL's"
        claims.append(smaller(statement, round(ours), papers, remark))
        sampled = regrets["Safe-LTS, no inflation"]
        statement = f"τ = {threshold:g}: LC-LUCB regrets less than Safe-LTS without inflation, same radius and clip"
        over = safety({"": results[name_of("Safe-LTS, no inflation", threshold)]}).value
        remark = f"without inflation Safe-LTS has no regret proof; over the limit: {over}"
        claims.append(smaller(statement, round(ours), sampled, remark))
        claims += [breaks(policy, threshold, results[name_of(policy, threshold)]) for policy in UNSAFE]
    return claims


def breaks(policy: str, threshold: float, result: Result) -> Claim:
    """Return how often a policy without a guarantee breaks the limit."""
    share = float(result.violations.mean() / result.rounds[-1])
    word = HOLDS if share > 0.5 else REMARK if share > 0.0 else verdict(False)
    statement = f"τ = {threshold:g}: {policy.removesuffix(', which violates')} breaks the limit"
    return Claim(statement, f"{share:.1%} of rounds", "more than none", word)
