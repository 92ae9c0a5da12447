"""The paper's claims about LC-LUCB on the shifted vectors."""

import math

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.claim import (
    REMARK,
    Claim,
    check_safety,
    check_smaller,
    check_stored,
    compute_exponent,
    compute_final_regret,
    to_verdict,
)
from stagewise_reproduction.instances import DELTA, compute_best_end
from stagewise_reproduction.paper.figure_1.plan import THRESHOLDS, build_name, build_world
from stagewise_reproduction.stored import ROUNDS as FULL
from stagewise_reproduction.stored import STORED

PRINTED_COST = 0.561  # of an optimal unconstrained action, in the caption of Figure 1


def compute_theorem_bound(rounds: int, dimension: int, threshold: float) -> float:
    """Return (α_r + 1) β_T √(2Td log(1 + T)): the paper's bound with its constant corrected (errata, E11)."""
    scale = 1.0 + 2.0 / threshold
    radius = math.sqrt(dimension * math.log((1.0 + (rounds - 1)) / (DELTA / 2.0))) + 1.0
    return (scale + 1.0) * radius * math.sqrt(2.0 * rounds * dimension * math.log1p(rounds))


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims, relative, absolute = [check_safety(results, 0.0 if preset == "authors" else DELTA)], [], []
    first = next(iter(results.values()))
    rounds, dimension = int(first.rounds[-1]), int(first.manifest["cell"]["d"])
    for threshold in THRESHOLDS:
        ours, theirs = (results[build_name(preset, policy, threshold)] for policy in ("LC-LUCB", "Safe-LTS"))
        statement = f"τ = {threshold:g}: LC-LUCB regrets less than Safe-LTS ({describe_inflation(preset)})"
        claims.append(check_smaller(statement, compute_final_regret(ours), compute_final_regret(theirs)))
        relative.append(compute_final_regret(ours) / float(ours.optimum.mean() * rounds))
        absolute.append(compute_final_regret(ours))
        if preset == "text":
            bound, largest = compute_theorem_bound(rounds, dimension, threshold), float(ours.regret[:, -1].max())
            statement = f"τ = {threshold:g}: LC-LUCB's regret is under the theorem's bound in every run"
            holds = to_verdict(largest <= bound)
            claims.append(Claim(statement, largest, f"at most {bound:,.0f}", holds, True))
            statement = f"τ = {threshold:g}: LC-LUCB's regret grows like a power of T, over the last half"
            value = compute_exponent(ours)
            remark = "" if value <= 0.6 else "above the theorem's 1/2 at this horizon"
            word = to_verdict(value < 1.0) if not remark or value >= 1.0 else REMARK
            claims.append(Claim(statement, round(value, 3), "below 1, towards 1/2", word, False, remark))
    falling, monotone = bool(np.all(np.diff(relative) < 0.0)), bool(np.all(np.diff(absolute) < 0.0))
    listed = ", ".join(f"{value:,.0f}" for value in absolute)
    claims.append(
        Claim(
            "harder as τ falls: LC-LUCB's regret relative to T times the optimum, τ = .2, .5, .8",
            ", ".join(f"{share:.3f}" for share in relative),
            "falls as τ rises",
            to_verdict(falling),
            False,
            f"regret itself {'falls too' if monotone else 'does not'}: {listed} (errata, E67)",
        )
    )
    if dimension == 10:
        claims.append(check_unconstrained(preset))
    if rounds == FULL:
        claims += check_full_size(preset, dimension, results)
    return claims


def compute_best_cost(preset: str) -> float:
    """Return the cost of the best action of Figure 1 without a limit."""
    return compute_best_end(build_world(preset, 10))[1]


def check_unconstrained(preset: str) -> Claim:
    """Return the claim that the best action without a limit costs what the caption says, up to rounding."""
    value = compute_best_cost(preset)
    rounded = PRINTED_COST <= value < PRINTED_COST + 0.001
    remark = f"{PRINTED_COST:g} is {value:.4f} rounded down" if rounded else ""
    word = REMARK if rounded else to_verdict(value < PRINTED_COST)
    statement = f"there is an optimal unconstrained action that costs less than {PRINTED_COST:g}"
    return Claim(statement, round(value, 4), f"below {PRINTED_COST:g}", word, False, remark)


def describe_inflation(preset: str) -> str:
    """Return how Safe-LTS is inflated."""
    return "the authors' inflation" if preset == "authors" else "the theory's inflation"


def check_full_size(preset: str, dimension: int, results: dict[str, Result]) -> list[Claim]:
    """Return the claims that need the paper's full size: the final cost, and the stored regrets."""
    claims = []
    if dimension == 10:
        final_cost, target = (
            float(results[build_name(preset, "LC-LUCB", 0.8)].cost[:, -20:, 0].mean()),
            compute_best_cost(preset),
        )
        inside, criterion = (
            to_verdict(-0.01 <= final_cost - target <= 0.05),
            f"from {target - 0.01:.3f} to {target + 0.05:.3f}",
        )
        statement = f"τ = .8: LC-LUCB's cost settles near that of the best action, {target:.3f}"
        claims.append(Claim(statement, round(final_cost, 4), criterion, inside))
    if preset == "authors":
        for policy, own, threshold in STORED:
            if own == dimension and threshold:
                result = results[build_name(preset, policy, threshold)]
                statement = f"τ = {threshold:g}: {policy}"
                claims.append(check_stored(statement, result, STORED[policy, own, threshold]))
    return claims
