"""What the paper says of LC-LUCB on the shifted vectors, checked against the result files."""

import math

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.claim import REMARK, Claim, exponent, final, like_stored, safety, smaller, verdict
from stagewise_reproduction.instances import DELTA, best_end
from stagewise_reproduction.paper.figure_1.plan import THRESHOLDS, name_of, world_of
from stagewise_reproduction.stored import ROUNDS as FULL
from stagewise_reproduction.stored import STORED

PRINTED_COST = 0.561  # of an optimal unconstrained action, in the caption of Figure 1


def theorem_bound(rounds: int, dimension: int, threshold: float) -> float:
    """Return (α_r + 1) β_T √(2Td log(1 + T)): the paper's bound with its constant corrected (errata, E11)."""
    scale = 1.0 + 2.0 / threshold
    radius = math.sqrt(dimension * math.log((1.0 + (rounds - 1)) / (DELTA / 2.0))) + 1.0
    return (scale + 1.0) * radius * math.sqrt(2.0 * rounds * dimension * math.log1p(rounds))


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims, relative, absolute = [safety(results, 0.0 if preset == "authors" else DELTA)], [], []
    first = next(iter(results.values()))
    rounds, dimension = int(first.rounds[-1]), int(first.manifest["cell"]["d"])
    for threshold in THRESHOLDS:
        ours, theirs = (results[name_of(preset, policy, threshold)] for policy in ("LC-LUCB", "Safe-LTS"))
        statement = f"τ = {threshold:g}: LC-LUCB regrets less than Safe-LTS ({inflation(preset)})"
        claims.append(smaller(statement, final(ours), final(theirs)))
        relative.append(final(ours) / float(ours.optimum.mean() * rounds))
        absolute.append(final(ours))
        if preset == "text":
            bound, largest = theorem_bound(rounds, dimension, threshold), float(ours.regret[:, -1].max())
            statement = f"τ = {threshold:g}: LC-LUCB's regret is under the theorem's bound in every run"
            holds = verdict(largest <= bound)
            claims.append(Claim(statement, largest, f"at most {bound:,.0f}", holds, True))
            statement = f"τ = {threshold:g}: LC-LUCB's regret grows like a power of T, over the last half"
            value = exponent(ours)
            remark = "" if value <= 0.6 else "above the theorem's 1/2 at this horizon"
            word = verdict(value < 1.0) if not remark or value >= 1.0 else REMARK
            claims.append(Claim(statement, round(value, 3), "below 1, towards 1/2", word, False, remark))
    falling, monotone = bool(np.all(np.diff(relative) < 0.0)), bool(np.all(np.diff(absolute) < 0.0))
    listed = ", ".join(f"{value:,.0f}" for value in absolute)
    claims.append(
        Claim(
            "harder as τ falls: LC-LUCB's regret relative to T times the optimum, τ = .2, .5, .8",
            ", ".join(f"{share:.3f}" for share in relative),
            "falls as τ rises",
            verdict(falling),
            False,
            f"regret itself {'falls too' if monotone else 'does not'}: {listed} (errata, E67)",
        )
    )
    if dimension == 10:
        claims.append(unconstrained(preset))
    if rounds == FULL:
        claims += at_full_size(preset, dimension, results)
    return claims


def best_cost(preset: str) -> float:
    """Return what the best action of Figure 1 costs without a limit."""
    return best_end(world_of(preset, 10))[1]


def unconstrained(preset: str) -> Claim:
    """The best action without a limit costs what the caption says, up to its rounding."""
    value = best_cost(preset)
    rounded = PRINTED_COST <= value < PRINTED_COST + 0.001
    remark = f"{PRINTED_COST:g} is {value:.4f} rounded down" if rounded else ""
    word = REMARK if rounded else verdict(value < PRINTED_COST)
    statement = f"there is an optimal unconstrained action that costs less than {PRINTED_COST:g}"
    return Claim(statement, round(value, 4), f"below {PRINTED_COST:g}", word, False, remark)


def inflation(preset: str) -> str:
    """Say how Safe-LTS is inflated."""
    return "the authors' inflation" if preset == "authors" else "the theory's inflation"


def at_full_size(preset: str, dimension: int, results: dict[str, Result]) -> list[Claim]:
    """Return what is only claimed of the paper's own size: where the cost settles, and the regrets that are stored."""
    claims = []
    if dimension == 10:
        settled, target = float(results[name_of(preset, "LC-LUCB", 0.8)].cost[:, -20:, 0].mean()), best_cost(preset)
        inside, room = verdict(-0.01 <= settled - target <= 0.05), f"from {target - 0.01:.3f} to {target + 0.05:.3f}"
        statement = f"τ = .8: LC-LUCB's cost settles near that of the best action, {target:.3f}"
        claims.append(Claim(statement, round(settled, 4), room, inside))
    if preset == "authors":
        for policy, own, threshold in STORED:
            if own == dimension and threshold:
                result = results[name_of(preset, policy, threshold)]
                statement = f"τ = {threshold:g}: {policy}"
                claims.append(like_stored(statement, result, STORED[policy, own, threshold]))
    return claims
