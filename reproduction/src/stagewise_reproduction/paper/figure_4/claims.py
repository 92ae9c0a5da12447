"""The paper's claims about OPB on four arms."""

from itertools import pairwise

from stagewise.reports.result import Result
from stagewise_reproduction.claim import REMARK, Claim, check_safety, compute_approach, compute_final_regret, to_verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_4.plan import COSTS, build_name

BEST_COST = COSTS[3]


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [check_safety(results, 0.0 if preset == "authors" else DELTA)]
    thresholds = [result.manifest["cell"]["tau"] for result in results.values()]
    ordered = sorted(thresholds, reverse=True)
    finals = [compute_final_regret(results[build_name(preset, threshold)]) for threshold in ordered]
    rising = to_verdict(all(one < other for one, other in pairwise(finals)))
    words = ", ".join(f"{threshold:g}" for threshold in ordered)
    text = ", ".join(f"{value:,.0f}" for value in finals)
    claims.append(Claim(f"OPB's regret grows as τ falls, τ = {words}", text, "rises", rising))
    for threshold in thresholds:
        result = results[build_name(preset, threshold)]
        share, final_cost = compute_approach(result), float(result.cost[:, -40:, 0].mean())
        statement = f"τ = {threshold:g}: OPB's reward approaches the optimum 0.7, and its cost 0.2"
        value = f"{share:.1%} of it, cost {final_cost:.3f}"
        is_binding = threshold <= BEST_COST
        required = 0.5 if is_binding else 0.95
        remark = (
            "arm 4 costs exactly τ: it can only be certified in the limit, so half is asked for" if is_binding else ""
        )
        word = REMARK if is_binding and share >= required else to_verdict(share >= required)
        claims.append(Claim(statement, value, f"at least {required:.0%}", word, False, remark))
    return claims
