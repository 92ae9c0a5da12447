"""Rare costs with 54 features that never come back: for how many users is nothing sent, after 500,000 logged rows?

.venv/bin/python benchmarks/rare.py             # the table: two minutes on one core, and as much to compile first
.venv/bin/python benchmarks/rare.py growth      # six blocks after 100,000 to 1,000,000 rows
.venv/bin/python benchmarks/rare.py speed       # how long rows and decisions take
.venv/bin/python benchmarks/rare.py 50000       # another number of rows

Six templates for users with eight features and a constant. Opt-outs are limited to 2 %, complaints to 0.5 %; sending
nothing is safe. All means are linear in the user, per template, and for no user more than half off the template's own.
"""

import math
import sys
import time
from typing import Any

import numpy as np
from scipy.optimize import brentq, linprog  # type: ignore[import-untyped]

import stagewise as sw
from stagewise.models.rare_events import compute_log_loss, fit_likelihood
from stagewise.policies.policy import PlayedAction

SEED, USERS, DELTA, TEMPLATES, WIDE = 20261117, 500, 0.05, 6, 9
LIMITS = {"opt_out": 0.02, "complaint": 0.005}
RATES = np.array(
    [
        [0.040, 0.050, 0.060, 0.070, 0.080, 0.090],  # clicks
        [0.006, 0.009, 0.012, 0.016, 0.010, 0.012],  # opt-outs
        [0.0010, 0.0015, 0.0020, 0.0035, 0.0020, 0.0025],  # complaints
    ]
)
BOUND, SHARE = 0.1, 0.75  # ‖μ‖ ≤ 0.1 is declared of the costs; their share of δ


def truth(chance: np.random.Generator) -> np.ndarray:
    """Return the parameters (3, 6, 9) of all signals, linear in the user."""
    sway = chance.uniform(-1.0, 1.0, size=(3, TEMPLATES, WIDE - 1))
    sway /= np.abs(sway).sum(axis=2, keepdims=True)  # from −½ to ½ over all users
    return RATES[:, :, None] * np.concatenate([1.0 - 0.5 * sway.sum(axis=2, keepdims=True), sway], axis=2)


def users(chance: np.random.Generator, count: int) -> np.ndarray:
    """Return users (n, 9): a constant, four yes or no, four shares."""
    given = chance.uniform(size=(count, WIDE - 1))
    given[:, :4] = given[:, :4] < 0.5
    return np.column_stack([np.ones(count), given])


def crossed(people: np.ndarray, templates: np.ndarray) -> np.ndarray:
    """Return template × user, (n, 54)."""
    features = np.zeros((len(people), TEMPLATES, WIDE))
    features[np.arange(len(people)), templates] = people
    return features.reshape(len(people), -1)


def best(clicks: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the mixture (6,) with the most clicks whose costs (2, 6) are within the limits; the rest is nothing."""
    limits = [1.0, *LIMITS.values()]
    found = linprog(-clicks, np.vstack([np.ones(TEMPLATES), costs]), limits, bounds=(0.0, 1.0), method="highs")
    return np.asarray(found.x)


def row(name: str, mixtures: np.ndarray, means: np.ndarray, highs: np.ndarray | None) -> None:
    """Print what a method certifies: mixtures (n, 6) of the users' templates, beside the true means (n, 3, 6)."""
    nothing, clicks = 1.0 - mixtures.sum(axis=1).mean(), (mixtures * means[:, 0]).sum(axis=1).mean()
    worst = (mixtures[:, None] * means[:, 1:]).sum(axis=2).max(axis=0) / list(LIMITS.values())
    above = (
        "" if highs is None else " / ".join(f"{value:.1f}" for value in np.median(highs / means[:, 1:], axis=(0, 2)))
    )
    print(f"| {name} | {nothing:.0%} | {clicks:.4f} | {above} | {worst[0]:.2f} / {worst[1]:.2f} |", flush=True)


def by_bounds(name: str, highs: np.ndarray, means: np.ndarray) -> None:
    """Print what upper bounds (n, 2, 6) certify, with the clicks known."""
    row(name, np.array([best(mean[0], high) for mean, high in zip(means, highs, strict=True)]), means, highs)


def ellipsoid(people: np.ndarray, fit: np.ndarray, gram: np.ndarray, radius: float) -> np.ndarray:
    """Return <x, fit> + radius ‖x‖ in the inverse of `gram`."""
    return people @ fit + radius * np.sqrt(np.einsum("ij,ji->i", people, np.linalg.solve(gram, people.T)))


def noisy(rows: np.ndarray, observed: np.ndarray, people: np.ndarray, confidence: float, others: float) -> np.ndarray:
    """Return upper ends by ridge regression with noise ½; `others` is what other templates add to the determinant."""
    ridge = 0.25 * rows.shape[1] / BOUND**2
    gram = ridge * np.eye(rows.shape[1]) + rows.T @ rows
    growth = np.linalg.slogdet(gram / ridge)[1] + others
    radius = math.sqrt(0.25 * (growth + 2.0 * confidence) + ridge * BOUND**2)
    return ellipsoid(people, np.linalg.solve(gram, rows.T @ observed), gram, radius)


def weighted(rows: np.ndarray, observed: np.ndarray, people: np.ndarray, confidence: float, least: float) -> np.ndarray:
    """Return upper ends by ridge regression with weights 1/v, v the mean's upper end before (at least `least`).

    Boundary: Faury et al. (2020), Theorem 1, for features x least/(vL) of length at most 1, with the best fixed λ.
    """
    g, longest = rows.shape[1], 3.0
    cost = BOUND * longest / least
    ridge = 2.0 * (0.5 * g * 6.0 + confidence + g * math.log(2.0)) / cost
    unit = ridge * (longest / least) ** 2
    gram, sums, first = unit * np.eye(g), np.zeros(g), 0
    while first < len(rows):
        last = min(max(2 * first, 64), len(rows))
        here = rows[first:last]
        weights = 1.0 / np.clip(bernstein(here, gram, sums, ridge, unit, confidence), least, 1.0)
        gram, sums, first = (
            gram + (here * weights[:, None]).T @ here,
            sums + here.T @ (weights * observed[first:last]),
            last,
        )
    return bernstein(people, gram, sums, ridge, unit, confidence)


def bernstein(
    people: np.ndarray, gram: np.ndarray, sums: np.ndarray, ridge: float, unit: float, log: float
) -> np.ndarray:
    """Return the upper ends of the weighted ridge regression."""
    g, growth = gram.shape[0], np.linalg.slogdet(gram / unit)[1]
    noise = 0.5 * math.sqrt(ridge) + 2.0 / math.sqrt(ridge) * (0.5 * growth + log + g * math.log(2.0))
    return ellipsoid(people, np.linalg.solve(gram, sums), gram, noise + math.sqrt(unit) * BOUND)


def concordant(
    rows: np.ndarray, observed: np.ndarray, people: np.ndarray, confidence: float, guess: float
) -> np.ndarray:
    """Return upper ends by the ellipsoid that self-concordance alone gives: ‖μ − fit‖_H ≤ w⁻¹(excess + log 1/δ)."""
    hit, sums = observed > 0.0, rows.sum(axis=0)
    rate = observed.mean()
    fit = fit_likelihood(rows[hit], observed[hit], sums, rate, BOUND)
    means = rows[hit] @ fit
    if not np.all(means > 0.0):
        return np.ones(len(people))
    excess = compute_log_loss(rows, observed, BOUND, guess) + confidence + 0.5 - float(sums @ fit - np.log(means).sum())
    if not excess > 0.0:
        return np.ones(len(people))
    radius = brentq(lambda z: z - math.log1p(z) - excess, 0.0, 2.0 * excess + 10.0)
    gram = (rows[hit] / means[:, None] ** 2).T @ rows[hit] + np.eye(WIDE) / BOUND**2
    return ellipsoid(people, fit, gram, radius)


def caps(blocks: int, bound: float = BOUND) -> sw.SafePosteriorSampling:
    """Return the policy."""
    safe = sw.SafeAction(features=np.zeros(TEMPLATES * WIDE), reward=0.0, cost=[0.0, 0.0])
    return sw.SafePosteriorSampling(
        safe_action=safe, threshold=LIMITS, noise=0.5, norm_bound=[1.0, bound, bound], mean_cost_bound=1.0, delta=DELTA,
        mixtures=True, rare_costs=True, blocks=blocks,
    )  # fmt: skip


def logged(count: int) -> tuple[np.ndarray, ...]:
    """Return parameters, users, templates and outcomes (3, n) of a log with templates drawn by lot."""
    chance = np.random.default_rng(SEED)
    parameters, people, templates = truth(chance), users(chance, count), chance.integers(TEMPLATES, size=count)
    means = np.einsum("nd,knd->kn", people, parameters[:, templates])
    return parameters, people, templates, (chance.uniform(size=means.shape) < means).astype(float)


def table(count: int) -> None:
    """Print all methods."""
    parameters, people, templates, observed = logged(count)
    fresh = users(np.random.default_rng(SEED + 1), USERS)
    means = np.einsum("nd,kad->nka", fresh, parameters)
    print(f"{count:,} rows; events a template: {observed[1:].sum(axis=1) / TEMPLATES}\n")
    print("| set | users sent nothing | clicks a user | upper end / mean: opt-out, complaint | dearest user / limit |")
    print("|---|---|---|---|---|")
    by_bounds("the truth", means[:, 1:], means)
    confidence, split = math.log(2.0 / (SHARE * DELTA)), math.log(2.0 * TEMPLATES / (SHARE * DELTA))
    parts = [(people[templates == a], observed[:, templates == a]) for a in range(TEMPLATES)]

    def all_of(method: Any, *settings: Any) -> np.ndarray:
        return np.stack(
            [
                np.stack([method(rows, values[1 + j], fresh, *(t[j] if isinstance(t, list) else t for t in settings))
                          for rows, values in parts], axis=1)
                for j in range(2)
            ], axis=1,
        )  # fmt: skip

    ridge = 0.25 * TEMPLATES * WIDE / BOUND**2
    growth = sum(np.linalg.slogdet(np.eye(WIDE) + rows.T @ rows / ridge)[1] for rows, _ in parts)
    by_bounds("noise ½, 54 features", all_of(noisy, confidence, growth * (1.0 - 1.0 / TEMPLATES)), means)
    by_bounds("noise ½, six times 9", all_of(noisy, split, 0.0), means)
    by_bounds("(b) weights 1/v, six times 9", all_of(weighted, split, [limit / 10 for limit in LIMITS.values()]), means)
    by_bounds("(a) self-concordant ellipsoid, six times 9", all_of(concordant, split, list(LIMITS.values())), means)
    offers = [sw.FiniteSet(crossed(np.tile(user, (TEMPLATES, 1)), np.arange(TEMPLATES))) for user in fresh]
    features = crossed(people, templates)
    shared, blocks = "(a) `rare_costs`, 54 features", "(a) `rare_costs`, six blocks of 9"
    for name, policy in {
        shared: caps(1),
        blocks: caps(TEMPLATES),
        f"{blocks}, `norm_bound` 1": caps(TEMPLATES, 1.0),
    }.items():
        agent = sw.Agent(policy, seed=SEED)
        agent.learn_log(features, observed[0], observed[1:].T)
        row(name, np.array([agent.decide(offer).probabilities[:-1] for offer in offers]), means, None)
    policy = caps(TEMPLATES)
    state = policy.start()
    for action, values in zip(features, np.ascontiguousarray(observed.T), strict=True):
        state = policy.learn_in_place(state, PlayedAction(action), values)
    chosen = [
        policy.decide(state, offer, sw.RandomKey(SEED, 0, t)).probabilities[:-1] for t, offer in enumerate(offers)
    ]
    row(f"{blocks}, learned row by row", np.array(chosen), means, None)
    safe = sw.SafeAction(arm=0, reward=0.0, cost=[0.0, 0.0])
    agent = sw.Agent(
        sw.SafeArmPosteriorSampling(arms=1 + TEMPLATES, safe_action=safe, threshold=LIMITS, delta=DELTA), seed=SEED
    )
    agent.learn_log(1 + templates, observed[0], observed[1:].T)
    rates = np.array([agent.decide(sw.ArmSet(1 + TEMPLATES)).probabilities[1 : 1 + TEMPLATES] for _ in fresh])
    row("(c) rates by template (limits hold for the average user)", rates, means, None)


def growth() -> None:
    """Print what six blocks leave after more and more rows."""
    for count in (100_000, 200_000, 300_000, 1_000_000):
        parameters, people, templates, observed = logged(count)
        fresh = users(np.random.default_rng(SEED + 1), USERS)
        means = np.einsum("nd,kad->nka", fresh, parameters)
        agent = sw.Agent(caps(TEMPLATES), seed=SEED)
        agent.learn_log(crossed(people, templates), observed[0], observed[1:].T)
        offers = [sw.FiniteSet(crossed(np.tile(user, (TEMPLATES, 1)), np.arange(TEMPLATES))) for user in fresh]
        name = f"{count:,} rows, {observed[2].sum() / TEMPLATES:.0f} complaints a template"
        row(name, np.array([agent.decide(offer).probabilities[:-1] for offer in offers]), means, None)


def speed(count: int) -> None:
    """Print how long a row of a log, a row learned by itself and a decision take."""
    _, people, templates, observed = logged(count)
    features = crossed(people, templates)
    for blocks in (1, TEMPLATES):
        agent = sw.Agent(caps(blocks), seed=SEED)
        agent.learn_log(features[:2000], observed[0, :2000], observed[1:, :2000].T)
        started = time.perf_counter()
        agent.learn_log(features[2000:], observed[0, 2000:], observed[1:, 2000:].T)
        settings, started = (time.perf_counter() - started) / (count - 2000), time.perf_counter()
        offers = [sw.FiniteSet(crossed(np.tile(user, (TEMPLATES, 1)), np.arange(TEMPLATES))) for user in people[:2000]]
        agent.decide(offers[0])
        started = time.perf_counter()
        decisions = [agent.decide(offer) for offer in offers]
        decided, started = (time.perf_counter() - started) / len(offers), time.perf_counter()
        for decision, outcome in zip(decisions, observed.T, strict=False):
            agent.learn(decision, reward=outcome[0], cost=outcome[1:])
        learned = (time.perf_counter() - started) / len(offers)
        print(f"{blocks} block(s): {1e6 * settings:.1f} us a logged row, {1e6 * decided:.0f} us a decision, "
              f"{1e6 * learned:.0f} us an outcome")  # fmt: skip


if __name__ == "__main__":
    asked = sys.argv[1:]
    count = next((int(word) for word in asked if word.isdigit()), 500_000)
    if "speed" in asked:
        speed(min(count, 100_000))
    elif "growth" in asked:
        growth()
    else:
        table(count)
