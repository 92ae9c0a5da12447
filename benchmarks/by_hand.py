"""A decision and its learning step from Python, beside plain NumPy and the libraries people use: microseconds a round.

Of processor time, so that what else a machine does counts less. The outcome is read from a table, so that only deciding
and learning are measured.

Run `make bench`, or `python benchmarks/by_hand.py [--rounds N] [--skip-peers]`. Ratios are from one run on one machine.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("STAGEWISE_COMPILE", "always")  # else the first rounds are interpreted

import numpy as np

import stagewise as sw

D, K = 10, 10
OUTCOMES = [tuple(row) for row in (np.random.default_rng(1).normal(size=(1024, 2)) * 0.1).tolist()]
Step = Callable[[int], None]


def problem(d: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets on the sphere, and the true reward and cost parameters."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(count + 2, d))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    return draws[2:], draws[0], draws[1]


def stagewise_round(kind: type, fixed: bool) -> Step:
    """LC-LUCB or ROFUL through Agent; `fixed`: the same Rays object each round, else a fresh array."""
    targets = problem(D, K)[0]
    safe = sw.SafeAction(features=np.zeros(D), reward=0.0, cost=0.0)
    agent = sw.Agent(kind(safe_action=safe, threshold=0.2, noise=0.1, delta=0.01))
    rays, tables = sw.RaySet(targets), [targets, targets[::-1].copy()]

    def step(t: int) -> None:
        decision = agent.decide(rays if fixed else tables[t & 1])
        reward, cost = OUTCOMES[t & 1023]
        agent.learn(decision, reward, cost)

    return step


def mixture_round(kind: type) -> Step:
    """OPLB over the same finite set, or OPB over as many arms, the safe one of which costs nothing, as was declared."""
    safe = {"reward": 0.0, "cost": 0.0}
    if kind is sw.OPB:
        policy, offer = sw.OPB(arms=K, safe_action=sw.SafeAction(arm=0, **safe), threshold=0.2), sw.ArmSet(K)
    else:
        safe_action = sw.SafeAction(features=np.zeros(D), **safe)
        policy, offer = sw.OPLB(safe_action=safe_action, threshold=0.2, noise=0.1), sw.FiniteSet(problem(D, K)[0])
    agent, arms = sw.Agent(policy), kind is sw.OPB

    def step(t: int) -> None:
        decision = agent.decide(offer)
        reward, cost = OUTCOMES[t & 1023]
        if arms:
            reward, cost = min(abs(reward), 1.0), min(abs(cost), 1.0) if decision.action_index else 0.0
        agent.learn(decision, reward, cost)

    return step


def problem_round() -> Step:
    """A `Problem` through Agent: a user's eight numbers by name, and three named signals by the decision's id."""
    names = [f"feature {i}" for i in range(8)]
    result = sw.Problem(
        action_names=["nothing", "digest", "offer", "reminder", "news", "sale"], safe_name="nothing", context=names,
        reward=sw.Reward("click"),
        limits={
            "opt_out": sw.Limit(0.02, safe_bound=0.01, model="rates"),
            "complaint": sw.Limit(0.005, safe_bound=0.002, model="rates"),
        },
    )  # fmt: skip
    rng = np.random.default_rng(1)
    users = [dict(zip(names, row, strict=True)) for row in rng.uniform(-1.0, 1.0, (1024, 8)).tolist()]
    observed = (rng.random((1024, 3)) < (0.2, 0.005, 0.001)).tolist()
    agent = sw.Agent(result)

    def step(t: int) -> None:
        decision = agent.decide(users[t & 1023])
        click, opt_out, complaint = observed[t & 1023]
        agent.learn(decision.id, click=click, opt_out=opt_out, complaint=complaint)

    return step


def numpy_round() -> Step:
    """The same LC-LUCB, vectorised by hand: Sherman-Morrison, closed-form steps, no checks, no record."""
    targets = problem(D, K)[0]
    inverse, fits, log_det = np.eye(D), np.zeros((2, D)), 0.0
    lift = 2.0 / 0.2

    def step(t: int) -> None:
        nonlocal log_det
        radius = np.sqrt(0.01 * (log_det + 2.0 * np.log(200.0)) + 1.0)
        widths = np.sqrt(np.einsum("ij,ij->i", targets @ inverse, targets))
        estimates = targets @ fits.T
        costly = np.minimum(estimates[:, 1] + radius * widths, 1.0)
        steps = np.where(costly <= 0.2, 1.0, 0.2 / np.maximum(costly, 0.2))
        best = int(np.argmax(steps * (estimates[:, 0] + (1.0 + lift) * radius * widths)))
        action = steps[best] * targets[best]
        outcome = np.array(OUTCOMES[t & 1023])
        gain = inverse @ action
        form = 1.0 + action @ gain
        fits[:] += np.outer((outcome - fits @ action) / form, gain)
        inverse[:] -= np.outer(gain, gain) / form
        log_det += np.log(form)

    return step


def mabwiser_round() -> Step:
    """MABWiser's LinUCB: one ridge regression per arm."""
    from mabwiser.mab import MAB, LearningPolicy

    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(256, 1, D))
    mab = MAB(list(range(K)), LearningPolicy.LinUCB(alpha=1.0))
    mab.fit([0], [0.0], contexts[0])

    def step(t: int) -> None:
        context = contexts[t & 255]
        arm = mab.predict(context)
        mab.partial_fit([arm], [OUTCOMES[t & 1023][0]], context)

    return step


def river_round() -> Step:
    """The LinUCB (disjoint) of river: one Bayesian regression per arm."""
    from river import bandit

    rng = np.random.default_rng(1)
    contexts = [dict(enumerate(row)) for row in rng.normal(size=(256, D)).tolist()]
    policy = bandit.LinUCBDisjoint(alpha=1.0, seed=1)
    arms = list(range(K))

    def step(t: int) -> None:
        context = contexts[t & 255]
        arm = policy.pull(arms, context=context)
        policy.update(arm, context, OUTCOMES[t & 1023][0])

    return step


def wabbit_round() -> Step:
    """Vowpal Wabbit's contextual bandit with action features, through its Python binding."""
    import vowpalwabbit

    targets = problem(D, K)[0]
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --epsilon 0.1 --quiet")
    lines = ["| " + " ".join(f"f{i}:{v:.6f}" for i, v in enumerate(row)) for row in targets]

    def step(t: int) -> None:
        chances = workspace.predict(lines)
        arm = int(np.argmax(chances))
        cost = -OUTCOMES[t & 1023][0]
        workspace.learn(
            [f"0:{cost:.6f}:{chances[arm]:.6f} {line}" if i == arm else line for i, line in enumerate(lines)]
        )

    return step


def contextualbandits_round() -> Step:
    """LinUCB of contextualbandits: binary rewards, one row at a time."""
    from contextualbandits.online import LinUCB

    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(256, 1, D))
    model = LinUCB(nchoices=K, alpha=1.0)
    model.fit(contexts[:, 0], rng.integers(K, size=256), rng.integers(2, size=256).astype(float))

    def step(t: int) -> None:
        context = contexts[t & 255]
        arm = model.predict(context)
        model.partial_fit(context, np.asarray(arm), np.array([float(t & 1)]))

    return step


def per_round(step: Step, rounds: int) -> float:
    """Return microseconds of processor time a round: the best of twenty stretches after a warm-up."""
    for t in range(max(5, rounds // 20)):
        step(t)
    best, each = np.inf, max(1, rounds // 20)
    for _ in range(20):
        started = time.process_time()
        for t in range(each):
            step(t)
        best = min(best, (time.process_time() - started) / each)
    return best * 1e6


def large_decision() -> tuple[float, float]:
    """Return microseconds for one LC-LUCB decision with K = 1,000 in d = 50, and for the NumPy products it needs."""
    d, count = 50, 1000
    targets, theta, mu = problem(d, count)
    agent = sw.Agent(sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(d)), threshold=0.2, noise=0.1))
    inverse, fits = np.eye(d), np.vstack([theta, mu])

    def products(_: int) -> None:
        np.einsum("ij,ij->i", targets @ inverse, targets)
        targets @ fits.T

    def decide(_: int) -> None:
        agent.decide(targets)

    pairs = [(per_round(decide, 500), per_round(products, 500)) for _ in range(3)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def starting() -> tuple[float, float]:
    """Return seconds for `import stagewise` and from there to the first decision, in a fresh process, kernels warm."""
    code = (
        "import time; a = time.perf_counter(); import stagewise as sw; b = time.perf_counter(); import numpy as np;"
        "p = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=.2, noise=.1);"
        "sw.Agent(p).decide(np.eye(10)); c = time.perf_counter(); print(b - a, c - b)"
    )
    shown = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    best = min((tuple(map(float, one.stdout.split())) for one in shown), key=sum)
    return best[0], best[1]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--skip-peers", action="store_true")
    options = parser.parse_args()
    ours = {
        "stagewise LC-LUCB, same Rays": stagewise_round(sw.LCLUCB, True),
        "stagewise LC-LUCB, fresh array": stagewise_round(sw.LCLUCB, False),
        "stagewise ROFUL, same Rays": stagewise_round(sw.ROFUL, True),
        "stagewise OPLB, same FiniteSet": mixture_round(sw.OPLB),
        "stagewise OPB, arms": mixture_round(sw.OPB),
        "stagewise Problem, all by name": problem_round(),
        "NumPy LC-LUCB, by hand": numpy_round(),
    }
    peers = (
        {}
        if options.skip_peers
        else {
            "Vowpal Wabbit cb_explore_adf": wabbit_round(),
            "river LinUCBDisjoint": river_round(),
            "MABWiser LinUCB": mabwiser_round(),
        }
    )
    if peers and importlib.util.find_spec("contextualbandits"):
        peers["contextualbandits LinUCB"] = contextualbandits_round()
    times = {name: per_round(step, options.rounds) for name, step in ours.items()}
    times |= {name: per_round(step, options.rounds // 20) for name, step in peers.items()}
    base = times["stagewise LC-LUCB, same Rays"]
    print(f"decide + learn, d = {D}, K = {K}: microseconds a round, ratio to the first line")
    for name, value in times.items():
        print(f"  {name:<32} {value:>9.1f} {value / base:>8.2f}")
    decision, products = large_decision()
    print(
        f"one decision, d = 50, K = 1,000: {decision:.0f} µs; the NumPy products it needs: {products:.0f} µs; "
        f"ratio {decision / products:.2f}"
    )
    importing, first = starting()
    print(f"import stagewise: {importing:.2f} s; from there to the first decision, kernels warm: {first:.2f} s")


if __name__ == "__main__":
    main()
