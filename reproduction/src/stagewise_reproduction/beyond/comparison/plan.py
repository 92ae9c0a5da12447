"""Every policy on six families of problems: regret, time, and violations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.models.similarity import RBF, LinearKernel, Matern
from stagewise.policies.arms import OPB, SafeArmPosteriorSampling
from stagewise.policies.baselines import UCB, AlwaysSafe, LinUCB, SafeLTS
from stagewise.policies.caps import SafePosteriorSampling
from stagewise.policies.lclucb import DOSLB, LCLUCB, ROFUL
from stagewise.policies.oplb import OPLB, KernelOPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.problem.actions import FiniteSet
from stagewise.problem.convex import BallSet
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld, FiniteSetWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import Cell, build_play
from stagewise_reproduction.exact.oplb import ExactOPLB
from stagewise_reproduction.exact.opnlb import ExactOPNLB
from stagewise_reproduction.instances import DELTA, at_zero, make_slug, shifted

Builder = Callable[[int], tuple[Any, Any]]  # number of a run → its policy and world
UNSAFE = ("DOSLB, which violates", "LinUCB", "UCB")
SEED = 20260915


@dataclass(frozen=True)
class Family:
    """Some policies in worlds of one kind."""

    words: str
    sizes: dict[str, tuple[int, int]]  # smoke, quick, full → rounds, runs
    policies: Callable[[str], dict[str, Builder]]  # size → by name


def draw_directions(random: np.random.Generator, count: int, dimension: int) -> Floats:
    """Return points uniform on the unit sphere."""
    points = random.normal(size=(count, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def on_rays(size: str) -> dict[str, Builder]:
    """Return the policies on the ten rays of the authors' code at τ = .5."""
    world = shifted(10)
    options: dict[str, Any] = {"safe_action": at_zero(10), "threshold": 0.5}
    noisy: dict[str, Any] = {**options, "noise": 1.0, "delta": DELTA}
    players: dict[str, Any] = {
        "LC-LUCB, paper's radius": LCLUCB(**noisy, ridge=1.0, radius="paper", mean_cost_bound=None),
        "LC-LUCB, ridge 1": LCLUCB(**noisy, ridge=1.0),
        "LC-LUCB": LCLUCB(**noisy),
        "LC-LUCB, per-action bounds": LCLUCB(**noisy, per_action_bounds=True),
        "ROFUL": ROFUL(**noisy),
        "ROFUL, per-action bounds": ROFUL(**noisy, per_action_bounds=True),
        "CAPS": SafePosteriorSampling(**noisy),
        "Safe-LTS, theory's inflation": SafeLTS(**noisy, inflation="theory"),
        "Safe-LTS, no inflation": SafeLTS(**noisy, inflation="none"),
        "OPLB, lp": OPLB(**noisy),
        "OPLB, lp, per-action bounds": OPLB(**noisy, per_action_bounds=True),
        "CAPS, mixtures": SafePosteriorSampling(**noisy, mixtures=True),
        "OPLB, directional": OPLB(**noisy, optimism="directional"),
        **({"OPLB, socp": OPLB(**noisy, method="socp")} if size == "full" else {}),
        "DOSLB, which violates": DOSLB(**noisy),
        "LinUCB": LinUCB(**noisy),
        "always safe": AlwaysSafe(**options),
    }
    return {name: partial(pair_with_world, player, lambda _: world) for name, player in players.items()}


def draw_finite_world(run: int) -> LinearWorld:
    """Draw twelve actions in four dimensions, and a cost that rises with the reward."""
    random = np.random.default_rng([SEED, 1, run])
    theta = draw_directions(random, 1, 4)[0]
    mu = theta + draw_directions(random, 1, 4)[0]
    return LinearWorld(
        reward=theta, cost=mu / np.linalg.norm(mu), actions=FiniteSet(draw_directions(random, 12, 4)), noise=0.1
    )


def build_finite_policies(size: str) -> dict[str, Builder]:
    """Return the mixing policies on random finite sets."""
    noisy: dict[str, Any] = {"safe_action": at_zero(4), "threshold": 0.2, "noise": 0.1, "delta": DELTA}
    players: dict[str, Any] = {
        "OPLB, lp, ridge 1": OPLB(**noisy, ridge=1.0),
        "OPLB, lp": OPLB(**noisy),
        "OPLB, lp, per-action bounds": OPLB(**noisy, per_action_bounds=True),
        "CAPS, mixtures": SafePosteriorSampling(**noisy, mixtures=True),
        "OPLB, directional": OPLB(**noisy, optimism="directional"),
        "OPLB, socp": OPLB(**noisy, method="socp"),
        "OPLB, exact, ridge 1": ExactOPLB(**noisy, ridge=1.0, budget=60),
        "KernelOPLB, linear kernel, ridge 1": KernelOPLB(kernel=LinearKernel(), norm_bound=1.0, **noisy),
        "DOSLB, which violates": DOSLB(**noisy),
        "always safe": AlwaysSafe(safe_action=at_zero(4), threshold=0.2),
    }
    return {name: partial(pair_with_world, player, draw_finite_world) for name, player in players.items()}


def pair_with_world(player: Any, world: Callable[[int], Any], run: int) -> tuple[Any, Any]:
    """Return a policy and the world of a run."""
    return player, world(run)


FUNCTIONS, ARMS = 20, 8


def draw_class_instance(run: int) -> tuple[Floats, Floats, ArmsWorld]:
    """Draw twenty reward and twenty cost functions of eight arms, equal at the safe arm 0; the first are the truth."""
    random = np.random.default_rng([SEED, 2, run])
    rewards, costs = random.uniform(size=(2, FUNCTIONS, ARMS))
    rewards[:, 0], costs[:, 0] = 0.2, 0.1
    return rewards, costs, ArmsWorld(reward=rewards[0], cost=costs[0])


def build_class_policies(size: str) -> dict[str, Builder]:
    """Return the policies with and without knowledge of the function class, at τ = .3."""
    options: dict[str, Any] = {"safe_action": SafeAction(arm=0, reward=0.2, cost=0.1), "threshold": 0.3}
    settings: dict[str, tuple[Any, dict[str, Any]]] = {
        "OPNLB, pointwise": (OPNLB, {}),
        "OPNLB, directional": (OPNLB, {"optimism": "directional"}),
        "OPNLB, rows": (OPNLB, {"method": "rows"}),
        "OPNLB, exact": (ExactOPNLB, {}),
        "OPNLB, paper's sets": (ExactOPNLB, {"method": "pointwise", "sets": "paper"}),
    }

    def build_informed(kind: Any, changes: dict[str, Any], run: int) -> tuple[Any, Any]:
        rewards, costs, world = draw_class_instance(run)
        return kind(reward_class=rewards, cost_class=costs, delta=DELTA, **options, **changes), world

    def build_uninformed(kind: Any, changes: dict[str, Any], run: int) -> tuple[Any, Any]:
        return kind(**options, **changes), draw_class_instance(run)[2]

    return {
        **{name: partial(build_informed, kind, changes) for name, (kind, changes) in settings.items()},
        "OPB, hoeffding": partial(build_uninformed, OPB, {"arms": ARMS, "delta": DELTA, "interval": "hoeffding"}),
        "OPB, kl": partial(build_uninformed, OPB, {"arms": ARMS, "delta": DELTA, "interval": "kl"}),
        "CAPS over arms": partial(build_uninformed, SafeArmPosteriorSampling, {"arms": ARMS, "delta": DELTA}),
        "UCB": partial(build_uninformed, UCB, {"arms": ARMS, "delta": DELTA, "interval": "hoeffding"}),
        "always safe": partial(build_uninformed, AlwaysSafe, {}),
    }


POINTS = np.linspace(0.1, 1.0, 30)[:, None]


def draw_smooth_world(run: int) -> tuple[FiniteSetWorld, SafeAction]:
    """Draw a reward and a cost of norm 1 in the space of RBF(lengthscale=0.3), on thirty points."""
    random, kernel = np.random.default_rng([SEED, 3, run]), RBF(lengthscale=0.3)
    centres = random.uniform(size=(5, 1))
    scale = 1.0 / (2.0 * kernel.lengthscale**2)
    gram = np.exp(-scale * (centres - centres.T) ** 2)
    means = []
    for _ in range(2):
        weights = random.normal(size=5)
        weights /= np.sqrt(weights @ gram @ weights)
        means.append(0.9 * np.exp(-scale * (POINTS - centres.T) ** 2) @ weights)
    safe = int(np.argmin(means[1]))
    world = FiniteSetWorld(features=POINTS, reward=means[0], cost=means[1], noise=0.1)
    return world, SafeAction(features=POINTS[safe], reward=float(means[0][safe]), cost=float(means[1][safe]))


def build_smooth_policies(size: str) -> dict[str, Builder]:
    """Return the kernel policies; the threshold is a quarter of the way from the safe cost to the largest."""
    settings: dict[str, dict[str, Any]] = {
        "KernelOPLB, RBF": {"kernel": RBF(lengthscale=0.3)},
        "KernelOPLB, RBF, directional": {"kernel": RBF(lengthscale=0.3), "optimism": "directional"},
        "KernelOPLB, RBF, capacity 5": {"kernel": RBF(lengthscale=0.3), "max_points": 5},
        "KernelOPLB, Matern 5/2": {
            "kernel": Matern(smoothness=2.5, lengthscale=0.3),
            "norm_bound": 2.0,
            "mean_cost_bound": 1.0,
        },
    }

    def make(changes: dict[str, Any] | None, run: int) -> tuple[Any, Any]:
        world, safe = draw_smooth_world(run)
        costs = world.table[1]
        options: dict[str, Any] = {
            "safe_action": safe,
            "threshold": float(costs.min() + 0.25 * (costs.max() - costs.min())),
        }
        if changes is None:
            return AlwaysSafe(**options), world
        model_settings: dict[str, Any] = {"norm_bound": 1.0, "noise": 0.1, "ridge": 0.1, "delta": DELTA}
        return KernelOPLB(**{**options, **model_settings, **changes}), world

    builders = {name: partial(make, changes) for name, changes in settings.items()}
    return {**builders, "always safe": partial(make, None)}


def build_rare_policies(size: str) -> dict[str, Builder]:
    """Return the policies over four arms, of which the best has a cost rate of one in a hundred, at τ = .02."""
    world = ArmsWorld(reward=[0.1, 0.3, 0.5, 0.6], cost=[0.0, 0.005, 0.01, 0.03])
    options: dict[str, Any] = {
        "arms": 4,
        "safe_action": SafeAction(arm=0, reward=0.1, cost=0.0),
        "threshold": 0.02,
        "delta": DELTA,
    }
    rounds = FAMILIES["rare costs"].sizes[size][0]
    players: dict[str, Any] = {
        "OPB, paper's radius": OPB(**options, interval="paper", horizon=rounds),
        "OPB, hoeffding": OPB(**options, interval="hoeffding"),
        "OPB, kl": OPB(**options, interval="kl"),
        "OPB, kl, directional": OPB(**options, interval="kl", optimism="directional"),
        "CAPS over arms": SafeArmPosteriorSampling(**options),
        "UCB": UCB(**options, interval="hoeffding"),
        "always safe": AlwaysSafe(safe_action=options["safe_action"], threshold=0.02),
    }
    return {name: partial(pair_with_world, player, lambda _: world) for name, player in players.items()}


def draw_ball_world(run: int) -> LinearWorld:
    """Draw θ* and μ* on the unit sphere in five dimensions."""
    theta, mu = draw_directions(np.random.default_rng([SEED, 4, run]), 2, 5)
    return LinearWorld(reward=theta, cost=mu, actions=BallSet(1.0), noise=0.1)


def build_ball_policies(size: str) -> dict[str, Builder]:
    """Return the policies that may play any point of a ball, at τ = .3."""
    noisy: dict[str, Any] = {"safe_action": at_zero(5), "threshold": 0.3, "noise": 0.1, "delta": DELTA}
    players: dict[str, Any] = {
        "LC-LUCB": LCLUCB(**noisy),
        "ROFUL": ROFUL(**noisy),
        "always safe": AlwaysSafe(safe_action=at_zero(5), threshold=0.3),
    }
    return {name: partial(pair_with_world, player, draw_ball_world) for name, player in players.items()}


FAMILIES = {
    "rays": Family(
        "the ten rays of the authors' code (Figure 1), d = 10, τ = .5, noise N(0, 1)",
        {"smoke": (100, 2), "quick": (100_000, 4), "full": (100_000, 10)},
        on_rays,
    ),
    "finite sets": Family(
        "twelve random actions, d = 4, τ = .2, noise .1; an instance a run",
        {"smoke": (20, 2), "quick": (300, 4), "full": (2_000, 10)},
        build_finite_policies,
    ),
    "function classes": Family(
        "twenty random functions of eight arms, τ = .3, Bernoulli outcomes; an instance a run",
        {"smoke": (20, 2), "quick": (500, 4), "full": (5_000, 10)},
        build_class_policies,
    ),
    "smooth signals": Family(
        "thirty points, signals of norm .9 in the space of a Gaussian kernel, noise .1; an instance a run",
        {"smoke": (60, 2), "quick": (10_000, 4), "full": (100_000, 10)},
        build_smooth_policies,
    ),
    "rare costs": Family(
        "four arms that cost 0, .005, .01, .03, τ = .02, Bernoulli outcomes",
        {"smoke": (100, 2), "quick": (100_000, 4), "full": (100_000, 10)},
        build_rare_policies,
    ),
    "unit ball": Family(
        "any point of the unit ball, d = 5, τ = .3, noise .1; an instance a run",
        {"smoke": (10, 2), "quick": (200, 4), "full": (2_000, 10)},
        build_ball_policies,
    ),
}


def build_name(family: str, policy: str) -> str:
    """Return the name of a curve."""
    return f"{make_slug(family)}-{make_slug(policy)}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    return build_cells(FAMILIES, size)


def build_cells(families: Mapping[str, Family], size: str, prefix: str = "") -> list[Cell]:
    """Return every curve of some families."""
    curves = []
    for family, about in families.items():
        rounds, runs = about.sizes[size]
        for policy, make in about.policies(size).items():
            options: dict[str, Any] = {"policy": policy, "preset": "ours", "family": family}
            curves.append(Cell(prefix + build_name(family, policy), options, rounds, runs, build_play(make, rounds)))
    return curves
