"""The simulated numbers of the pages under docs/theory that no other benchmark prints.

.venv/bin/python benchmarks/theory.py
"""

import math

import numpy as np

import stagewise as sw
from stagewise.engine.pair import find_best_pair

DELTA = 0.01


def radii_at_dimension_one(
    noise: float, norm: float, truth: float, ridge: float, rounds: int, runs: int
) -> list[float]:
    """Return the share of runs in which ‖θ̂ − θ*‖_V ever leaves the radius: the paper's, logdet, mixture.

    The action is 1 in every round, so V = λ + k and ‖θ̂ − θ*‖_V = |Σξ − λθ*|/√V after k observations.
    """
    rng, k = np.random.default_rng(1), np.arange(1, rounds + 1)
    growth = np.log1p(k / ridge)
    deviation = growth + 2.0 * math.log(1.0 / DELTA)
    radii = (
        noise * np.sqrt(growth + math.log(1.0 / DELTA)) + math.sqrt(ridge) * norm,
        noise * np.sqrt(deviation) + math.sqrt(ridge) * norm,
        np.sqrt(noise**2 * deviation + ridge * norm**2),
    )
    missed = np.zeros(3)
    for _ in range(runs // 100):
        sums = np.cumsum(noise * rng.standard_normal((100, rounds)), axis=1)
        distance = np.abs(sums - ridge * truth) / np.sqrt(ridge + k)
        missed += [np.sum(np.any(distance > radius, axis=1)) for radius in radii]
    return (missed / (runs // 100 * 100)).tolist()


def pulls_of_the_best(clipped: bool, rounds: int, seed: int) -> tuple[int, int]:
    """Return how often arm 3 is pulled, and in how many rounds OPB hopes for 1 or more, its reward.

    r = (0, .9, 1), c = (0, .2, .2), τ = .2. Clipped: OPB's own bounds, the hoped rewards cut at 1, in the same program.
    """
    rewards, costs, rng = np.array([0.0, 0.9, 1.0]), np.array([0.0, 0.2, 0.2]), np.random.default_rng(seed)
    policy = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.2, interval="hoeffding")
    confidence, lift = policy.model.confidence, 2.0 / 0.2
    n, sums, best, hopeful = np.zeros(3), np.zeros((2, 3)), 0, 0
    for _ in range(rounds):
        count = np.maximum(n, 1.0)
        half = 0.5 * np.sqrt((1 + 1 / count) * (np.log1p(count) + 2 * confidence) / count)
        half[n == 0] = np.maximum(half[n == 0], 1.0)
        optimistic, pessimistic_cost = sums[0] / count + half + lift * half, np.minimum(sums[1] / count + half, 1.0)
        optimistic = np.minimum(optimistic, 1.0) if clipped else optimistic
        optimistic[0] = -math.inf  # the safe arm stands beside the list
        pair = find_best_pair(optimistic, pessimistic_cost, 0.0, 0.0, 0.2)
        parts = [(pair.cheap, 1.0 - pair.share), (pair.costly, pair.share)]
        hopeful += sum(share * (optimistic[arm] if arm >= 0 else 0.0) for arm, share in parts) >= 1.0 - 1e-9
        arm = max(pair.costly if rng.uniform() < pair.share else pair.cheap, 0)
        n[arm] += 1.0
        sums[:, arm] += rng.uniform(size=2) < [rewards[arm], costs[arm]]
        best += arm == 2
    return best, int(hopeful)


def unknown_baseline(cases: int) -> tuple[int, int, int, int, int]:
    """Return in how many cases the best action was not certified, and in how many of these each statement failed.

    The statements: the rule of docs/theory/unknown-baseline.md hopes for enough; so does the lemma's scaling with exact
    gaps; so does the paper's ratio with exact gaps, raised to 1 where it is below; ‖γx* + (1−γ)x₀‖ ≥ γ‖x*‖.
    """
    rng, found, failed = np.random.default_rng(2), 0, np.zeros(4, dtype=int)
    while found < cases:
        d, m = int(rng.integers(2, 5)), int(rng.integers(1, 3))
        safe, end = rng.normal(size=(2, d)) * rng.uniform(0.3, 1.0, size=(2, 1)) / math.sqrt(d)
        past = np.vstack(
            [np.tile(safe, (int(rng.integers(1, 400)), 1)), rng.normal(size=(int(rng.integers(1, 40)), d))]
        )
        gram, beta = np.eye(d) + past.T @ past, rng.uniform(0.5, 2.0)
        inverse, root = np.linalg.inv(gram), np.linalg.inv(np.linalg.cholesky(gram)).T
        truths = rng.normal(size=(1 + m, d))
        offsets = rng.normal(size=(1 + m, d))
        offsets /= np.linalg.norm(offsets, axis=1, keepdims=True)
        lengths = np.where(rng.uniform(size=1 + m) < 0.5, 1.0, rng.uniform(size=1 + m))
        estimates = truths + (beta * lengths[:, None] * offsets) @ root.T
        shift = (truths[0] @ end - 1.0) if rng.uniform() < 0.5 else max(truths[0] @ end, truths[0] @ safe) - 1.0
        reward_safe, reward_end = truths[0] @ safe - shift, truths[0] @ end - shift  # rewards are at most 1
        costs_safe, costs_end = truths[1:] @ safe, truths[1:] @ end
        if reward_end <= reward_safe or reward_safe > 1.0 or np.any(costs_end <= costs_safe):
            continue
        limits = costs_end + rng.exponential(0.02, size=m) * (rng.uniform(size=m) < 0.5)  # x* = the end, often tight

        def width(x: np.ndarray, inverse: np.ndarray = inverse, beta: float = beta) -> float:
            return beta * math.sqrt(x @ inverse @ x)

        certain = limits - estimates[1:] @ safe - width(safe)
        if np.any(certain <= 0.0) or np.all(estimates[1:] @ end + width(end) <= limits):
            continue
        low, high = 0.0, 1.0
        for _ in range(60):
            step = 0.5 * (low + high)
            point = safe + step * (end - safe)
            low, high = (step, high) if np.all(estimates[1:] @ point + width(point) <= limits) else (low, step)
        found += 1
        ends = (safe, safe + low * (end - safe))
        base = [estimates[0] @ x - shift + width(x) for x in ends]
        gap, short = float(np.min(limits - costs_safe)), 1.0 - reward_safe
        doubt = max(0.0, 1.0 - (estimates[0] @ safe - shift) + width(safe))
        ours = max(p + 2.0 * doubt / float(certain.min()) * width(x) for p, x in zip(base, ends, strict=True))
        lemma = max(p + 2.0 * short / gap * width(x) for p, x in zip(base, ends, strict=True))
        ratio = max(p + (max(short / gap, 1.0) - 1.0) * width(x) for p, x in zip(base, ends, strict=True))
        failed += [
            ours < reward_end - 1e-9,
            lemma < reward_end - 1e-9,
            ratio < reward_end - 1e-9,
            width(ends[1]) < low * width(end) - 1e-12,
        ]
    return (found, *(int(count) for count in failed))


def main() -> None:
    """Print everything."""
    print("joint-radius.md, failures in dimension one: paper, logdet, mixture")
    for setting in ((5.0, 1.0, 1.0, 1.0, 10_000, 20_000), (1.0, 0.001, 0.0, 100.0, 60_000, 10_000)):
        print("  ", [f"{share:.2%}" for share in radii_at_dimension_one(*setting)])
    print("tractable-oplb.md, 200,000 rounds, three seeds: pulls of the best arm, optimistic rounds")
    for clipped in (True, False):
        print(
            "  ", "clipped" if clipped else "as it is", [pulls_of_the_best(clipped, 200_000, seed) for seed in range(3)]
        )
    print(
        "unknown-baseline.md: cases; failures of the rule, of the lemma's scaling, of the paper's ratio, of the norms"
    )
    print("  ", unknown_baseline(50_000))


if __name__ == "__main__":
    main()
