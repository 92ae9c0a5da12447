"""What the paper says of LC-LUCB on the shifted vectors, checked against the result files."""

import math

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.claim import Claim, exponent, final, safety, smaller, verdict
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.paper.figure_1.plan import THRESHOLDS, name_of

# Final regrets that the authors' stored results hold at d = 10, T = 10⁶: mean and standard deviation over ten runs.
PUBLISHED = {
    ("LC-LUCB", 0.2): (226_775.0, 2_034.0),
    ("Safe-LTS", 0.2): (233_568.0, 1_692.0),
    ("LC-LUCB", 0.5): (144_974.0, 8_416.0),
    ("Safe-LTS", 0.5): (372_915.0, 2_161.0),
    ("LC-LUCB", 0.8): (33_380.0, 11_294.0),
    ("Safe-LTS", 0.8): (175_321.0, 676.0),
}
PUBLISHED_RUNS = 10
FULL = 1_000_000


def theorem_bound(rounds: int, dimension: int, threshold: float) -> float:
    """Return (α_r + 1) β_T √(2Td log(1 + T)): the paper's bound with its constant corrected (errata, E11)."""
    scale = 1.0 + 2.0 / threshold
    radius = math.sqrt(dimension * math.log((1.0 + (rounds - 1)) / (DELTA / 2.0))) + 1.0
    return (scale + 1.0) * radius * math.sqrt(2.0 * rounds * dimension * math.log1p(rounds))


def check(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""
    claims, relative = [safety(results)], []
    first = next(iter(results.values()))
    rounds, dimension = int(first.rounds[-1]), int(first.manifest["cell"]["d"])
    for threshold in THRESHOLDS:
        ours, theirs = (results[name_of(preset, policy, threshold)] for policy in ("LC-LUCB", "Safe-LTS"))
        statement = f"τ = {threshold:g}: LC-LUCB regrets less than Safe-LTS ({inflation(preset)})"
        claims.append(smaller(statement, final(ours), final(theirs)))
        relative.append(final(ours) / float(ours.optimum.mean() * rounds))
        if preset == "text":
            bound, largest = theorem_bound(rounds, dimension, threshold), float(ours.regret[:, -1].max())
            statement = f"τ = {threshold:g}: LC-LUCB's regret is under the theorem's bound in every run"
            holds = verdict(largest <= bound)
            claims.append(Claim(statement, largest, f"at most {bound:,.0f}", holds, True))
            statement = f"τ = {threshold:g}: LC-LUCB's regret grows like a power of T, over the last half"
            value = exponent(ours)
            remark = "" if value <= 0.6 else "still above the theorem's 1/2: the safe set is growing at this horizon"
            word = verdict(value < 1.0) if not remark or value >= 1.0 else "holds with a remark"
            claims.append(Claim(statement, round(value, 3), "below 1, towards 1/2", word, False, remark))
    falling = bool(np.all(np.diff(relative) < 0.0))
    claims.append(
        Claim(
            "harder as τ falls: LC-LUCB's regret relative to T times the optimum, τ = .2, .5, .8",
            ", ".join(f"{share:.3f}" for share in relative),
            "falls as τ rises",
            verdict(falling),
            False,
            "absolute regret is not monotone: with a small τ there is less to lose (errata, E67)",
        )
    )
    if dimension == 10 and rounds == FULL:
        claims += at_full_size(preset, results)
    return claims


def inflation(preset: str) -> str:
    """Say how Safe-LTS is inflated."""
    return "the authors' inflation" if preset == "authors" else "the theory's inflation"


def at_full_size(preset: str, results: dict[str, Result]) -> list[Claim]:
    """Return what is only claimed of the paper's own size."""
    claims = []
    settled = float(results[name_of(preset, "LC-LUCB", 0.8)].cost[:, -20:, 0].mean())
    inside = verdict(0.55 <= settled <= 0.61)
    claims.append(Claim("τ = .8: LC-LUCB's cost settles near 0.561", round(settled, 4), "in [.55, .61]", inside))
    if preset != "authors":
        return claims
    for (policy, threshold), (mean, spread) in PUBLISHED.items():
        result = results[name_of(preset, policy, threshold)]
        value, room = final(result), 3.0 * spread * math.sqrt(1.0 / PUBLISHED_RUNS + 1.0 / len(result.runs))
        words = f"{room:,.0f}, three standard errors of the difference"
        statement = f"τ = {threshold:g}: {policy}'s final regret is the published {mean:,.0f} (sd {spread:,.0f})"
        close = verdict(abs(value - mean) <= room)
        claims.append(Claim(statement, round(value), f"within {words}; ratio {value / mean:.3f}", close))
    return claims
