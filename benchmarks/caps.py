"""CAPS beside the other policies with a proof: regret after T rounds, mean and standard error over runs.

.venv/bin/python benchmarks/caps.py            # every table but the last five: three minutes on two cores
.venv/bin/python benchmarks/caps.py rays       # one: rays long few quiet sphere fresh own finite arms rare speed
.venv/bin/python benchmarks/caps.py more       # two of them with more runs: five minutes
.venv/bin/python benchmarks/caps.py templates  # six templates after a log, by hand
.venv/bin/python benchmarks/caps.py picture    # docs/pictures/caps.png
.venv/bin/python benchmarks/caps.py broken     # how many of 131,072 runs ever break the limit, on a GPU
.venv/bin/python benchmarks/caps.py broken-few # how many of 2,000
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.reports.style import STYLES, write_figure
from stagewise_reproduction.beyond.comparison.plan import draw_finite_world
from stagewise_reproduction.instances import DELTA, at_zero, shifted

SEED = 20261116  # used for nothing else
PAPERS = {"LC-LUCB, ridge 1": partial(sw.LCLUCB, ridge=1.0), "ROFUL, ridge 1": partial(sw.ROFUL, ridge=1.0)}
POLICIES: dict[str, Any] = {**PAPERS, "LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL, "CAPS": sw.SafePosteriorSampling}
TAUS = (0.2, 0.5, 0.8)


def regrets(policy: Any, worlds: Any, rounds: int, runs: int) -> str:
    """Return mean ± standard error of the final regret, and rounds that broke the limit, if any."""
    result = sw.simulate(policy, worlds, rounds=rounds, runs=runs, seed=SEED, progress=False)
    last, broken = result.regret[:, -1], int(result.violations.sum())
    return f"{last.mean():,.0f} ± {last.std(ddof=1) / np.sqrt(runs):,.0f}" + (
        f" ({broken} violating)" if broken else ""
    )


def table(title: str, columns: list[str], rows: dict[str, list[Callable[[], str]]]) -> None:
    """Print a table, row by row."""
    print(f"\n{title}\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}", flush=True)
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cell() for cell in cells)} |", flush=True)


def noisy_world(dimension: int, noise: float) -> sw.LinearWorld:
    """Return the paper's rays with another noise."""
    world = shifted(dimension)
    return sw.LinearWorld(reward=world.parameters[0], cost=world.parameters[1:], actions=world.actions, noise=noise)


def on_shifted(title: str, dimension: int, noise: float, rounds: int, runs: int = 10) -> None:
    """Print regrets on the paper's rays."""
    world, options = (
        noisy_world(dimension, noise),
        {"safe_action": at_zero(dimension), "noise": noise, "delta": DELTA},
    )
    rows = {
        name: [lambda k=kind, t=tau: regrets(k(**options, threshold=t), world, rounds, runs) for tau in TAUS]
        for name, kind in POLICIES.items()
    }
    table(title, [f"τ = {tau:g}" for tau in TAUS], rows)


def with_more_runs() -> None:
    """Print CAPS' regrets where ten runs leave it open on which side of a bar they lie."""
    rows = {
        f"d = {d}, T = {rounds:,}, {runs} runs": [
            lambda d=d, rounds=rounds, runs=runs, t=tau: regrets(
                sw.SafePosteriorSampling(safe_action=at_zero(d), noise=1.0, delta=DELTA, threshold=t),
                noisy_world(d, 1.0),
                rounds,
                runs,
            )
            for tau in TAUS
        ]
        for d, rounds, runs in ((3, 100_000, 100), (10, 1_000_000, 40))
    }
    table("CAPS on the paper's rays, noise 1", [f"τ = {tau:g}" for tau in TAUS], rows)


def directions(random: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Return points uniform on the unit sphere."""
    points = random.normal(size=(count, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def sphere_world(dimension: int, run: int) -> sw.LinearWorld:
    """Return a hundred fixed rays on the sphere, and a truth on it, both of this run."""
    random = np.random.default_rng([SEED, dimension, run])
    reward, cost = directions(random, 2, dimension)
    return sw.LinearWorld(reward=reward, cost=cost, actions=sw.RaySet(directions(random, 100, dimension)), noise=0.1)


def on_spheres() -> None:
    """Print regrets on a hundred fixed rays."""
    rows: dict[str, list[Callable[[], str]]] = {}
    for name, kind in POLICIES.items():
        rows[name] = [
            lambda k=kind, d=d: regrets(
                k(safe_action=at_zero(d), threshold=0.2, noise=0.1, delta=DELTA),
                lambda run: sphere_world(d, run),
                100_000,
                10,
            )
            for d in (3, 5, 10)
        ]
    table(
        "100 fixed rays on the sphere, a truth a run, noise .1, τ = .2, T = 100,000", ["d = 3", "d = 5", "d = 10"], rows
    )


def on_fresh() -> None:
    """Print regrets on rays that are drawn anew every round."""
    base = shifted(10)
    world = sw.LinearWorld(
        reward=base.parameters[0], cost=base.parameters[1:], actions=sw.RandomRaySet(count=10, dimension=10), noise=1.0
    )
    options = {"safe_action": at_zero(10), "noise": 1.0, "delta": DELTA}
    rows = {
        name: [lambda k=kind, t=tau: regrets(k(**options, threshold=t), world, 100_000, 10) for tau in (0.2, 0.5)]
        for name, kind in POLICIES.items()
    }
    table("fresh rays each round, d = 10, noise 1, T = 100,000", ["τ = .2", "τ = .5"], rows)


def with_own_sets() -> None:
    """Print what the ridge and sets of their own are worth to the older policies, and cost where nothing comes back."""
    base, options = shifted(10), {"safe_action": at_zero(10), "noise": 1.0, "delta": DELTA}
    fresh = sw.LinearWorld(
        reward=base.parameters[0], cost=base.parameters[1:], actions=sw.RandomRaySet(count=10, dimension=10), noise=1.0
    )
    plays = [*((base, tau) for tau in TAUS), (fresh, 0.2), (fresh, 0.5)]
    settings = {
        ", ridge=1": {"ridge": 1.0},  # as in the paper
        "": {},
        ", own_sets=True": {"per_action_bounds": True},
    }
    rows = {
        name + more: [
            lambda k=kind, s=extra, w=w, t=t: regrets(k(**options, **s, threshold=t), w, 100_000, 10) for w, t in plays
        ]
        for name, kind in {"LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL, "OPLB": sw.OPLB}.items()
        for more, extra in settings.items()
    }
    columns = [*(f"τ = {tau:g}" for tau in TAUS), "fresh, τ = .2", "fresh, τ = .5"]
    table("the paper's rays and fresh ones, d = 10, noise 1, T = 100,000", columns, rows)


def on_finite_sets() -> None:
    """Print regrets of mixtures on small finite sets."""
    options = {"safe_action": at_zero(4), "threshold": 0.2, "noise": 0.1, "delta": DELTA}
    players = {
        "OPLB, lp": sw.OPLB(**options),
        "OPLB, lp, ridge=1": sw.OPLB(**options, ridge=1.0),
        "OPLB, lp, own_sets=True": sw.OPLB(**options, per_action_bounds=True),
        "CAPS, mixtures": sw.SafePosteriorSampling(**options, mixtures=True),
    }
    rows = {
        name: [lambda p=p: regrets(p, lambda run: draw_finite_world(1000 + run), 2_000, 20)]
        for name, p in players.items()
    }
    table("twelve actions, d = 4, τ = .2, noise .1, T = 2,000", ["regret"], rows)


def on_arms() -> None:
    """Print regrets over four arms with rare costs."""
    world = sw.ArmsWorld(reward=[0.1, 0.3, 0.5, 0.6], cost=[0.0, 0.005, 0.01, 0.03])
    options = {"arms": 4, "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.02, "delta": DELTA}
    players = {
        "OPB": sw.OPB(**options),
        "CAPS over arms, kl": sw.SafeArmPosteriorSampling(**options, interval="kl"),
        "CAPS over arms": sw.SafeArmPosteriorSampling(**options),
    }
    rows = {name: [lambda p=p: regrets(p, world, 100_000, 40)] for name, p in players.items()}
    table("four arms that cost 0, .005, .01, .03, τ = .02, coins, T = 100,000", ["regret"], rows)


CLICKS = np.array([0.04, 0.05, 0.06, 0.075, 0.09, 0.085])
OPT_OUTS = np.array([0.004, 0.01, 0.012, 0.015, 0.018, 0.03])
COMPLAINTS = np.array([0.0005, 0.002, 0.001, 0.003, 0.004, 0.002])
TEMPLATES = np.array([CLICKS, OPT_OUTS, COMPLAINTS])


def campaign(policy: Any, offered: Any, today: float, run: int) -> tuple[float, int]:
    """Return clicks a user, expected given what is sent, and users for whom a limit was broken.

    50,000 logged rows, of which `today` are the safe template's and the others anyone's.
    """
    random, agent, rows, users = np.random.default_rng([SEED, run]), sw.Agent(policy, seed=run), 50_000, 150_000
    sent = np.where(random.uniform(size=rows) < today, 0, random.integers(0, 6, rows))
    observed = (random.uniform(size=(rows, 3)) < TEMPLATES[:, sent].T).astype(float)
    agent.learn_log(sent, observed[:, 0], observed[:, 1:])
    clicks, broken, luck = 0.0, 0, random.uniform(size=(users, 3))
    for user in range(users):
        decision = agent.decide(offered)
        shares = decision.probabilities[:6] + np.eye(6)[0] * decision.probabilities[6]
        clicks += float(CLICKS @ shares)
        broken += bool(np.any(TEMPLATES[1:] @ shares > decision.thresholds * (1.0 + 1e-12)))
        outcome = (luck[user] < TEMPLATES[:, decision.action]).astype(float)
        agent.learn(decision, reward=float(outcome[0]), cost=outcome[1:])
    return clicks / users, broken


def on_templates(runs: int = 10) -> None:
    """Print clicks a user of six templates, at most 2 % opt-outs and .5 % complaints; .09 is possible."""
    safe = sw.SafeAction(arm=0, reward=0.04, cost=[0.004, 0.0005])
    options = {"arms": 6, "safe_action": safe, "threshold": {"opt_out": 0.02, "complaint": 0.005}, "delta": 0.05}
    every, best = sw.ArmSet(6), sw.ArmSet(6).only([0, 4])
    players = {
        "OPB, hoeffding": (sw.OPB(**options, interval="hoeffding"), every),
        "OPB": (sw.OPB(**options), every),
        "CAPS over arms": (sw.SafeArmPosteriorSampling(**options), every),
        "the same, told which is best": (sw.SafeArmPosteriorSampling(**options), best),
    }

    def cell(name: str, today: float) -> str:
        policy, offered = players[name]
        clicks, broken = np.array([campaign(policy, offered, today, run) for run in range(runs)]).T
        return f"{clicks.mean():.4f} ± {clicks.std(ddof=1) / np.sqrt(runs):.4f}, {int(broken.sum())} violating"

    rows = {name: [lambda n=name: cell(n, 0.0), lambda n=name: cell(n, 0.9)] for name in players}
    title = f"six templates, 50,000 logged rows, then 150,000 users: clicks a user, {runs} runs"
    table(title, ["log of all templates alike", "nine in ten of today's"], rows)


def on_one_ray() -> None:
    """Print when one ray that costs one in a hundred is played to its end, at τ = .02."""
    world = sw.LinearWorld(reward=[0.5], cost=[0.01], actions=sw.RaySet([[1.0]]), outcomes="bernoulli")
    options = {"safe_action": sw.SafeAction(features=[0.0]), "threshold": 0.02, "noise": 0.5, "delta": 0.05}
    for name, more in {"noise ½": {}, "bounded_outcomes": {"bounded_outcomes": True}}.items():
        rounds = 20_000 if more else 400_000
        result = sw.simulate(
            sw.SafePosteriorSampling(**options, **more),
            world,
            rounds=rounds,
            runs=20,
            seed=SEED,
            record_points=rounds // 10,
            progress=False,
        )
        full = result.reward >= 0.5 * (1.0 - 1e-9)
        first = [int(result.rounds[row.argmax()]) if row.any() else rounds for row in full]
        print(f"| {name} | {np.mean(first):,.0f} | {max(first):,} | {int(full.any(axis=1).sum())} of 20 |", flush=True)


def speed() -> None:
    """Print nanoseconds of processor time a round on the paper's ten rays, and on twelve actions: least of six runs."""
    rays, options = (
        shifted(10),
        {"safe_action": at_zero(10), "threshold": 0.5, "noise": 1.0, "delta": DELTA},
    )
    per_action = {"per_action_bounds": True}
    players: dict[str, Any] = {name: kind(**options) for name, kind in POLICIES.items()}
    players |= {
        "LC-LUCB, per-action bounds": sw.LCLUCB(**options, **per_action),
        "ROFUL, per-action bounds": sw.ROFUL(**options, **per_action),
    }
    players |= {"OPLB": sw.OPLB(**options), "OPLB, per-action bounds": sw.OPLB(**options, **per_action)}
    plays = {name: (policy, rays) for name, policy in players.items()}
    few = {"safe_action": at_zero(4), "threshold": 0.2, "noise": 0.1, "delta": DELTA}
    plays["OPLB, lp, twelve actions"] = (sw.OPLB(**few), draw_finite_world(1000))
    plays["OPLB, lp, per-action bounds, twelve actions"] = (sw.OPLB(**few, **per_action), draw_finite_world(1000))
    plays["CAPS, mixtures, twelve actions"] = (sw.SafePosteriorSampling(**few, mixtures=True), draw_finite_world(1000))
    for name, (policy, world) in plays.items():
        seconds = []
        for seed in range(7):
            started = time.process_time()
            sw.simulate(policy, world, rounds=1_000_000, runs=1, seed=seed, progress=False)
            seconds.append(time.process_time() - started)
        print(f"| {name} | {1e3 * min(seconds[1:]):,.0f} ns |", flush=True)


def broken(runs: int, backend: str) -> None:
    """Print which share of runs ever breaks the limit at δ = .05: on the paper's rays, and where one set decides."""
    options: dict[str, Any] = {"noise": 1.0, "delta": 0.05}
    plays = {
        f"ten rays, τ = {tau:g}": (
            sw.SafePosteriorSampling(**options, safe_action=at_zero(10), threshold=tau),
            shifted(10),
        )
        for tau in TAUS
    }
    for name, kind in {"LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL, "OPLB": sw.OPLB}.items():
        for tau in TAUS:
            policy = kind(**options, safe_action=at_zero(10), threshold=tau, per_action_bounds=True)
            plays[f"{name} with per-action bounds, τ = {tau:g}"] = (policy, shifted(10))
    alone = {**options, "safe_action": at_zero(1), "threshold": 0.6, "mean_cost_bound": None}
    for name, actions in {"one ray": sw.RaySet([[1.0]]), "one action": sw.FiniteSet([[1.0]])}.items():
        world = sw.LinearWorld(reward=[0.9], cost=[0.9], actions=actions, noise=1.0)
        plays[name] = (sw.SafePosteriorSampling(**alone, mixtures=name == "one action"), world)
        kind = sw.OPLB if name == "one action" else sw.LCLUCB
        plays[f"{name}, {kind.__name__}"] = (kind(**alone, per_action_bounds=True), world)
    for name, (policy, world) in plays.items():
        result = sw.simulate(
            policy, world, rounds=10_000, runs=runs, seed=SEED, backend=backend, record_points=1, progress=False
        )
        print(f"| {name} | {int((result.violations > 0).sum())} of {runs:,} |", flush=True)


def picture() -> None:
    """Draw regret and the cost of a round on the paper's rays, other papers' policies with their ridge, 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 5.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    world = noisy_world(10, 1.0)
    players = {"LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL, "CAPS": sw.SafePosteriorSampling, "Safe-LTS": sw.SafeLTS}
    for column, tau in enumerate(TAUS):
        for name, kind in players.items():
            options = {"safe_action": at_zero(10), "threshold": tau, "noise": 1.0, "delta": DELTA}
            policy = kind(**options) if kind is sw.SafePosteriorSampling else kind(**options, ridge=1.0)
            result = sw.simulate(policy, world, rounds=1_000_000, runs=10, seed=SEED, progress=False)
            style = {"color": STYLES[list(players).index(name)][0], "linewidth": 2.4 if name == "CAPS" else 1.3}
            panels[0, column].plot(result.rounds, result.regret.mean(axis=0), label=name, **style)
            panels[1, column].plot(result.rounds, result.cost[:, :, 0].mean(axis=0), **style)
        panels[1, column].axhline(tau, color="black", linestyle="--", linewidth=1)
        panels[1, column].annotate("limit", (0.0, tau), (4, 3), textcoords="offset points", fontsize=8)
        panels[1, column].set_ylim(0.0, 1.15 * tau)
        panels[0, column].set_title(f"limit {tau:g}")
        panels[1, column].set_xlabel("round")
    panels[0, 0].set_ylabel("regret")
    panels[1, 0].set_ylabel("expected cost of a round")
    panels[0, 0].legend(frameon=False)
    write_figure(figure, Path(__file__).parents[1] / "docs" / "pictures" / "caps.png")


TABLES: dict[str, Callable[[], None]] = {
    "rays": lambda: on_shifted("the paper's rays, d = 10, noise 1, T = 100,000", 10, 1.0, 100_000),
    "long": lambda: on_shifted("the same, T = 1,000,000", 10, 1.0, 1_000_000),
    "few": lambda: [on_shifted(f"the same, d = {d}, T = 100,000", d, 1.0, 100_000) for d in (3, 5)] and None,
    "quiet": lambda: on_shifted("d = 10, noise .1, T = 100,000", 10, 0.1, 100_000),
    "sphere": on_spheres,
    "fresh": on_fresh,
    "own": with_own_sets,
    "finite": on_finite_sets,
    "arms": on_arms,
    "rare": on_one_ray,
    "speed": speed,
    "more": with_more_runs,
    "templates": on_templates,
    "picture": picture,
    "broken": lambda: broken(2**17, "cuda"),
    "broken-few": lambda: broken(2_000, "cpu"),
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(TABLES)[:-5]:
        TABLES[chosen]()
