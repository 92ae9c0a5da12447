"""The paper's claims about OPB on random arms."""

from itertools import pairwise

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, check_safety, compute_final_regret, to_verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_3.plan import ARMS, LEAST_THRESHOLDS, PUBLIC_ARMS, THRESHOLDS, build_name

CLIPPING_REMARK = (
    "limits and rewards are counted by the means before outcomes are cut to [0, 1], as in the public code, which stops "
    "where one is broken; an arm that costs nearly 1 is seen to cost less"
)


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    if preset == "authors":
        finals = [compute_final_regret(results[build_name(preset, PUBLIC_ARMS, least)]) for least in LEAST_THRESHOLDS]
        words = f"K = {PUBLIC_ARMS}: OPB's regret grows as the least τ falls, {join_numbers(LEAST_THRESHOLDS)}"
        return [check_safety(results, 0.0)._replace(remark=CLIPPING_REMARK), check_increase(words, finals)]
    claims = [check_safety(results, DELTA)]
    for count in ARMS:
        finals = [compute_final_regret(results[build_name(preset, count, threshold)]) for threshold in THRESHOLDS]
        claims.append(
            check_increase(f"K = {count}: OPB's regret grows as τ falls, τ = {join_numbers(THRESHOLDS)}", finals)
        )
    for threshold in THRESHOLDS:
        finals = [compute_final_regret(results[build_name(preset, count, threshold)]) for count in ARMS]
        words = f"τ = {threshold:g}: OPB's regret grows with K = {join_numbers(ARMS)}"
        claims.append(check_increase(words, finals, "the instances differ from one K to the next"))
    return claims


def join_numbers(values: tuple[float, ...]) -> str:
    """Return numbers, one after another."""
    return ", ".join(f"{value:g}" for value in values)


def check_increase(statement: str, finals: list[float], remark: str = "") -> Claim:
    """Return the claim that the numbers increase."""
    text = ", ".join(f"{value:,.0f}" for value in finals)
    rises = to_verdict(all(one < other for one, other in pairwise(finals)))
    return Claim(statement, text, "rises", rises, False, remark)
