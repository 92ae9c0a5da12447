"""How far the recursions drift: widths and log-determinant after up to 10⁷ updates, by the root we keep and without it.

Run `python benchmarks/drift.py [--rounds 10000000]`. Three rays in ten dimensions are played at odds of 1000 : 10 : 1,
so that some directions are known a million times better than others. The truth comes from the exact numbers of plays,
in extended precision. "Root": any candidate, by the triangular root. "Followed": the rays and the probes as candidates
that come back, by their columns. "Plain": V⁻¹ by Sherman and Morrison's formula, which is also what a Gram matrix of
fixed rays keeps.
"""

import argparse
import math

import numba
import numpy as np
from stagewise.kernels.radius import MIXTURE, Belief
from stagewise.kernels.ridge import ELSEWHERE, Anchor, Followed, Regression, Ridge, follow, learn, tally_size

from stagewise.kernels.compile import Floats
from stagewise.kernels.draw import ACTIONS, uniform

D = 10
NOTHING = np.empty(0)


def model_of(ridge: float, probes: Floats) -> Regression:
    """Return a regression that has seen nothing and follows the probes."""
    anchor, belief = Anchor(NOTHING, 0.0, NOTHING, NOTHING), Belief(MIXTURE, ridge, 1.0, NOTHING, NOTHING, NOTHING)
    kept = Followed(np.zeros((D, len(probes))), np.zeros((0, len(probes))), np.zeros(len(probes)))
    model = Regression(
        Ridge(np.eye(D) / math.sqrt(ridge), np.zeros((0, D)), np.zeros(tally_size(0))), kept, anchor, belief
    )
    follow(probes, model, np.empty(D))
    return model


@numba.njit
def play(model: Regression, inverse: Floats, logs: Floats, rays: Floats, plays: Floats, first: int, last: int) -> None:
    """Absorb rounds `first` to `last` into the root, and into V⁻¹ by Sherman and Morrison's formula."""
    work, gain, nothing = np.empty(4 * D + 64), np.empty(D), np.empty(0)
    for t in range(first, last):
        dice = uniform(1, 0, t, ACTIONS, 0) * 1011.0
        ray = 0 if dice < 1000.0 else 1 if dice < 1010.0 else 2
        plays[ray] += 1.0
        learn(model, rays[ray], ELSEWHERE, 1.0, False, nothing, work)
        form = 0.0
        for i in range(D):
            gain[i] = 0.0
            for j in range(D):
                gain[i] += inverse[i, j] * rays[ray, j]
            form += gain[i] * rays[ray, i]
        for i in range(D):
            for j in range(D):
                inverse[i, j] -= gain[i] * gain[j] / (1.0 + form)
        logs[0] += math.log1p(form)


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return V⁻¹b by Gauss elimination in extended precision (V is positive definite: no pivoting)."""
    rows, b = matrix.copy(), right.copy()
    for k in range(D):
        for i in range(k + 1, D):
            factor = rows[i, k] / rows[k, k]
            rows[i, k:] -= factor * rows[k, k:]
            b[i] -= factor * b[k]
    for k in reversed(range(D)):
        b[k] = (b[k] - rows[k, k + 1 :] @ b[k + 1 :]) / rows[k, k]
    return b


def log_determinant(matrix: np.ndarray) -> float:
    """Return log det V by the same elimination."""
    rows, total = matrix.copy(), np.longdouble(0)
    for k in range(D):
        total += np.log(rows[k, k])
        for i in range(k + 1, D):
            rows[i, k:] -= rows[i, k] / rows[k, k] * rows[k, k:]
    return float(total)


def main() -> None:
    """Print the largest relative errors at every power of ten."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000_000)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    rays = rng.normal(size=(3, D))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    probes = np.vstack([rays, rng.normal(size=(20, D))])
    exact_rays, exact_probes = rays.astype(np.longdouble), probes.astype(np.longdouble)
    print("largest relative error of widths / of the log-determinant")
    print(f"{'ridge':>8} {'rounds':>12} {'root':>20} {'followed':>20} {'plain':>20}")
    for ridge in (1.0, 1e-2, 1e-4):
        model = model_of(ridge, probes)
        inverse, logs, plays, first = np.eye(D) / ridge, np.zeros(1), np.zeros(3), 0
        for last in (10**k for k in range(3, 8) if 10**k <= rounds):
            play(model, inverse, logs, rays, plays, first, last)
            first = last
            v = np.eye(D, dtype=np.longdouble) * np.longdouble(ridge)
            for count, ray in zip(plays, exact_rays, strict=True):
                v += np.longdouble(count) * np.outer(ray, ray)
            truth = np.array([float(np.sqrt(p @ solved(v, p))) for p in exact_probes])
            volume = log_determinant(v) - D * math.log(ridge)
            kept = np.linalg.norm(probes @ np.tril(model.ridge.root).T, axis=1)
            followed = np.sqrt(model.followed.forms)
            plain = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", probes, inverse, probes), 0.0))
            errors = [np.abs(w / truth - 1.0).max() for w in (kept, followed, plain)]
            drifts = [abs(w / volume - 1.0) for w in (model.ridge.tally[0], model.ridge.tally[0], logs[0])]
            cells = " ".join(f"{f'{e:.1e} / {x:.1e}':>20}" for e, x in zip(errors, drifts, strict=True))
            print(f"{ridge:>8g} {last:>12,} {cells}", flush=True)


if __name__ == "__main__":
    main()
