"""How far the recursions drift: widths and log-determinant after up to 10⁷ updates, by the root we keep and without it.

Run `python benchmarks/drift.py [--rounds 10000000]`. Three rays in ten dimensions are played at odds of 1000 : 10 : 1,
so that some directions are known a million times better than others. The truth comes from the exact numbers of plays,
in extended precision. "Root": any candidate, by the triangular root. "Followed": the rays and the probes as candidates
that come back, by their columns. "Plain": V⁻¹ by Sherman and Morrison's formula, which is also what a Gram matrix of
fixed rays keeps.
"""

import argparse
import math

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import ELSEWHERE
from stagewise.engine.random import ACTIONS, uniform
from stagewise.engine.round import change_memory, memory_size, start_memory
from stagewise.models.regression import LOG_DET, Regression, learn_ridge
from stagewise.models.ridge import RIDGE, LinearModel, view_ridge
from stagewise.policies.rounds import assemble_arrays

D = 10
MODELS, PART_OF = (RIDGE,), as_python(view_ridge)


def model_of(ridge: float, probes: Floats) -> tuple[Ints, Floats, Floats]:
    """Return layout, settings and memory of a regression that has seen nothing and follows the probes."""
    one = np.ones(1)
    assumed = {"noise": one, "norm_bound": one, "action_bound": 1.0, "ridge": ridge, "confidence": one}
    model = LinearModel(safe=np.zeros(D), names=("reward",), reward=None, costs=None, radius="joint", **assumed)
    layout, settings = assemble_arrays((0, 0, -1), np.zeros(3), model.safe, tuple(model.build_blocks()))
    started = np.empty(memory_size(MODELS, layout, 0, 0))
    memory = np.empty(memory_size(MODELS, layout, len(probes), 0))
    start_memory(MODELS, layout, settings, 0, started)
    change_memory(MODELS, layout, settings, started, probes, 0, memory)
    return layout, settings, memory


@kernel
def play(
    part: Regression, settings: Floats, memory: Floats, inverse: Floats, logs: Floats, rays: Floats, plays: Floats,
    value: Floats, work: Floats, gain: Floats, first: int, last: int,
) -> None:  # fmt: skip
    """Take rounds `first` to `last` into the root, and into V⁻¹ by Sherman and Morrison's formula."""
    for t in range(first, last):
        dice = uniform(1, 0, t, ACTIONS, 0) * 1011.0
        ray = 0 if dice < 1000.0 else 1 if dice < 1010.0 else 2
        plays[ray] += 1.0
        learn_ridge(part, rays[ray], ELSEWHERE, 1.0, False, value, settings, memory, work)
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
        layout, settings, memory = model_of(ridge, probes)
        part = PART_OF(layout, memory, 0)
        work = (np.zeros(1), np.empty(3 * D + part.width + 1), np.empty(D))
        inverse, logs, plays, first = np.eye(D) / ridge, np.zeros(1), np.zeros(3), 0
        for last in (10**k for k in range(3, 8) if 10**k <= rounds):
            play(part, settings, memory, inverse, logs, rays, plays, *work, first, last)
            first = last
            v = np.eye(D, dtype=np.longdouble) * np.longdouble(ridge)
            for count, ray in zip(plays, exact_rays, strict=True):
                v += np.longdouble(count) * np.outer(ray, ray)
            truth = np.array([float(np.sqrt(p @ solved(v, p))) for p in exact_probes])
            volume = log_determinant(v) - D * math.log(ridge)
            kept = np.linalg.norm(probes @ np.tril(part.learned[:D]).T, axis=1)
            cached = np.sqrt(part.rows[-1, : len(probes)])
            base = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", probes, inverse, probes), 0.0))
            errors = [np.abs(w / truth - 1.0).max() for w in (kept, cached, base)]
            drifts = [abs(w / volume - 1.0) for w in (part.tally[LOG_DET], part.tally[LOG_DET], logs[0])]
            cells = " ".join(f"{f'{e:.1e} / {x:.1e}':>20}" for e, x in zip(errors, drifts, strict=True))
            print(f"{ridge:>8g} {last:>12,} {cells}", flush=True)


if __name__ == "__main__":
    main()
