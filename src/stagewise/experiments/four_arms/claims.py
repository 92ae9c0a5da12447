"""What the paper says of OPB on four arms."""

from itertools import pairwise

from stagewise.experiments.claim import REMARK, Claim, approach, final, safety, verdict
from stagewise.experiments.four_arms.plan import name_of
from stagewise.reports.result import Result


def check(experiment: str, preset: str, results: dict[str, Result], thresholds: tuple[float, ...]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims = [safety(experiment, results)]
    ordered = sorted(thresholds, reverse=True)
    finals = [final(results[name_of(preset, threshold)]) for threshold in ordered]
    rising = verdict(all(one < other for one, other in pairwise(finals)))
    words = ", ".join(f"{threshold:g}" for threshold in ordered)
    shown = ", ".join(f"{value:,.0f}" for value in finals)
    claims.append(Claim(experiment, f"OPB's regret grows as τ falls, τ = {words}", shown, "rises", rising))
    for threshold in thresholds:
        result = results[name_of(preset, threshold)]
        share, spent = approach(result), float(result.cost[:, -40:, 0].mean())
        statement = f"τ = {threshold:g}: OPB's reward approaches the optimum 0.7, and its cost 0.2"
        value = f"{share:.1%} of it, cost {spent:.3f}"
        remark = "" if share >= 0.95 else "arm 4 costs exactly τ: it can only be certified in the limit"
        word = verdict(share >= 0.95) if threshold > 0.2 else (REMARK if share >= 0.5 else verdict(share >= 0.95))
        claims.append(Claim(experiment, statement, value, "at least 95 %", word, False, remark))
    return claims
