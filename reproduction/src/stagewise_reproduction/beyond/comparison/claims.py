"""Who keeps the limits, and where a sharper or a more exact method pays; where it does not, the verdict says so."""

import math

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, UNSAFE, name_of
from stagewise_reproduction.claim import HOLDS, REMARK, Claim, clearly_smaller, verdict
from stagewise_reproduction.instances import DELTA

# family, who should regret less, than whom
EXPECTED = (
    ("rays", "LC-LUCB", "LC-LUCB, paper's radius"),
    ("rays", "ROFUL", "LC-LUCB"),
    ("rays", "ROFUL, own sets", "ROFUL"),
    ("rays", "CAPS", "ROFUL, own sets"),
    ("rays", "CAPS, mixtures", "OPLB, lp, own sets"),
    ("finite sets", "CAPS, mixtures", "OPLB, socp"),
    ("finite sets", "OPLB, socp", "OPLB, lp"),
    ("finite sets", "OPLB, exact", "OPLB, lp"),
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
    """No more runs break a limit, in whichever round, than δ allows; a chance of 1 in 1000 is left to chance."""
    runs = sum(len(result.runs) for result in results.values())
    broken = sum(int((result.violations > 0).sum()) for result in results.values())
    most = next(k for k in range(runs + 1) if at_most(k, runs) >= 0.999)
    statement = f"of {runs} runs of policies that promise safety, no more than δ = {DELTA:g} allows break a limit"
    return Claim(statement, float(broken), f"at most {most}", verdict(broken <= most), True)


def at_most(count: int, runs: int) -> float:
    """Return the probability that no more than so many runs break a limit if each does with probability δ.

    >>> round(at_most(0, 2), 4)
    0.9801
    """
    return math.fsum(math.comb(runs, k) * DELTA**k * (1.0 - DELTA) ** (runs - k) for k in range(count + 1))


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
