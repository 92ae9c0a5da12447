"""What the paper says of OPB on four arms."""

from itertools import pairwise

from stagewise.reports.result import Result
from stagewise_reproduction.claim import REMARK, Claim, approach, final, safety, verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_4.plan import COSTS, name_of

BEST_COST = COSTS[3]


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(results, 0.0 if preset == "authors" else DELTA)]
    thresholds = [result.manifest["cell"]["tau"] for result in results.values()]
    ordered = sorted(thresholds, reverse=True)
    finals = [final(results[name_of(preset, threshold)]) for threshold in ordered]
    rising = verdict(all(one < other for one, other in pairwise(finals)))
    words = ", ".join(f"{threshold:g}" for threshold in ordered)
    shown = ", ".join(f"{value:,.0f}" for value in finals)
    claims.append(Claim(f"OPB's regret grows as τ falls, τ = {words}", shown, "rises", rising))
    for threshold in thresholds:
        result = results[name_of(preset, threshold)]
        share, spent = approach(result), float(result.cost[:, -40:, 0].mean())
        statement = f"τ = {threshold:g}: OPB's reward approaches the optimum 0.7, and its cost 0.2"
        value = f"{share:.1%} of it, cost {spent:.3f}"
        tight = threshold <= BEST_COST
        least = 0.5 if tight else 0.95
        remark = "arm 4 costs exactly τ: it can only be certified in the limit, so half is asked for" if tight else ""
        word = REMARK if tight and share >= least else verdict(share >= least)
        claims.append(Claim(statement, value, f"at least {least:.0%}", word, False, remark))
    return claims
