"""Who keeps the limits, and where a sharper or a more exact method pays; where it does not, the verdict says so."""

import math
from itertools import accumulate

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, UNSAFE, name_of
from stagewise_reproduction.claim import HOLDS, REMARK, Claim, clearly_smaller, verdict
from stagewise_reproduction.instances import DELTA

CHANCE = 0.01  # of finding fault with a policy that has none
# family, who should regret less, than whom
EXPECTED = (
    ("rays", "LC-LUCB, ridge 1", "LC-LUCB, paper's radius"),
    ("rays", "LC-LUCB", "LC-LUCB, ridge 1"),
    ("rays", "ROFUL", "LC-LUCB"),
    ("rays", "ROFUL, own sets", "ROFUL"),
    ("rays", "CAPS", "ROFUL, own sets"),
    ("rays", "CAPS, mixtures", "OPLB, lp, own sets"),
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
    ("rare costs", "OPB, kl", "OPB, bernstein"),
    ("rare costs", "OPB, bernstein", "OPB, hoeffding"),
    ("rare costs", "OPB, hoeffding", "OPB, paper's radius"),
    ("unit ball", "ROFUL", "LC-LUCB"),
)


def kept(results: dict[str, Result]) -> Claim:
    """No policy breaks a limit, in whichever round, in so many of its runs that its δ is in doubt.

    Policies are judged one by one, since they are shown the same noise: only the runs of one are independent. The
    chance of a false alarm is shared among them, so that it is `CHANCE` for all together.
    """
    least = 1.0 - CHANCE / len(results)
    broken = [int((result.violations > 0).sum()) for result in results.values()]
    most = [allowed(len(result.runs), least) for result in results.values()]
    runs = sum(len(result.runs) for result in results.values())
    statement = f"no policy that promises safety breaks limits in clearly more than δ = {DELTA:g} of its runs"
    criterion = f"at most {max(most)} of any policy's runs; a false alarm has a chance of {CHANCE:g}"
    holds = all(count <= may for count, may in zip(broken, most, strict=True))
    remark = f"{sum(broken)} of all {runs} runs broke a limit"
    return Claim(statement, float(max(broken)), criterion, verdict(holds), True, remark)


def allowed(runs: int, least: float) -> int:
    """Return the fewest runs k such that no more than k break a limit with probability `least`, if each does with δ.

    >>> allowed(10, 0.9), allowed(10, 0.9998), allowed(2, 0.9998)
    (0, 2, 1)
    """
    chances = (math.comb(runs, k) * DELTA**k * (1.0 - DELTA) ** (runs - k) for k in range(runs + 1))
    return next((k for k, sure in enumerate(accumulate(chances)) if sure >= least), runs)


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    unsafe = {name_of(family, policy) for family in FAMILIES for policy in UNSAFE}
    claims = [kept({name: result for name, result in results.items() if name not in unsafe})]
    for family, better, worse in EXPECTED:
        one, other = (results[name_of(family, policy)] for policy in (better, worse))
        statement = f"{family}: {better} regrets less than {worse}"
        disclosed = "disclosed: a sharper or more exact optimism need not regret less"
        claims.append(clearly_smaller(statement, one, other, disclosed))
    for name in sorted(unsafe & set(results)):
        share = float(results[name].violations.mean() / results[name].rounds[-1])
        word = HOLDS if share > 0.5 else REMARK if share > 0.0 else verdict(False)
        claims.append(Claim(f"{name} breaks the limit", f"{share:.1%} of rounds", "more than none", word))
    return claims
