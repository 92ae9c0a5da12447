"""Which policies keep the limits, and where a tighter or a more exact method has less regret."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, UNSAFE, build_name
from stagewise_reproduction.claim import HOLDS, REMARK, Claim, check_clearly_smaller, check_safety, to_verdict

# family, policy with less expected regret, policy with more
EXPECTED = (
    ("rays", "LC-LUCB, ridge 1", "LC-LUCB, paper's radius"),
    ("rays", "LC-LUCB", "LC-LUCB, ridge 1"),
    ("rays", "ROFUL", "LC-LUCB"),
    ("rays", "ROFUL, per-action bounds", "ROFUL"),
    ("rays", "CAPS", "ROFUL, per-action bounds"),
    ("rays", "CAPS, mixtures", "OPLB, lp, per-action bounds"),
    ("finite sets", "CAPS, mixtures", "OPLB, socp"),
    ("finite sets", "OPLB, socp", "OPLB, lp"),
    ("finite sets", "OPLB, lp", "OPLB, lp, ridge 1"),
    ("finite sets", "OPLB, exact, ridge 1", "OPLB, lp, ridge 1"),
    ("finite sets", "OPLB, directional", "OPLB, lp"),
    ("function classes", "OPNLB, pointwise", "OPB, kl"),
    ("function classes", "OPNLB, pointwise", "OPNLB, paper's sets"),
    ("function classes", "OPNLB, rows", "OPNLB, pointwise"),
    ("function classes", "OPNLB, exact", "OPNLB, rows"),
    ("smooth signals", "KernelOPLB, RBF", "KernelOPLB, Matern 5/2"),
    ("rare costs", "CAPS over arms", "OPB, kl"),
    ("rare costs", "OPB, kl", "OPB, hoeffding"),
    ("rare costs", "OPB, hoeffding", "OPB, paper's radius"),
    ("unit ball", "ROFUL", "LC-LUCB"),
)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    unsafe = {build_name(family, policy) for family in FAMILIES for policy in UNSAFE}
    claims = [check_safety({name: result for name, result in results.items() if name not in unsafe})]
    for family, better, worse in EXPECTED:
        one, other = (results[build_name(family, policy)] for policy in (better, worse))
        statement = f"{family}: {better} regrets less than {worse}"
        disclosed = "disclosed: a sharper or more exact optimism need not regret less"
        claims.append(check_clearly_smaller(statement, one, other, disclosed))
    for name in sorted(unsafe & set(results)):
        share = float(results[name].violations.mean() / results[name].rounds[-1])
        word = HOLDS if share > 0.5 else REMARK if share > 0.0 else to_verdict(False)
        claims.append(Claim(f"{name} breaks the limit", f"{share:.1%} of rounds", "more than none", word))
    return claims
