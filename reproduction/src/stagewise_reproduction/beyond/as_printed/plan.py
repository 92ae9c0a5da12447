"""Each algorithm of the paper as printed beside the form of stagewise, in problems where they differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.oplb import OPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.problem.actions import FiniteSet, RaySet
from stagewise.problem.safe_action import SafeAction
from stagewise.simulation.simulate import simulate
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.cell import RECORD, SEED, Cell, Play
from stagewise_reproduction.exact.oplb import ExactOPLB
from stagewise_reproduction.instances import DELTA, make_slug
from stagewise_reproduction.printed.lclucb import EMPTY, PrintedLCLUCB
from stagewise_reproduction.printed.oplb import PrintedOPLB
from stagewise_reproduction.printed.opnlb import PrintedOPNLB
from stagewise_reproduction.printed.unknown_baseline import PrintedUnknownBaseline

PRINTED, OURS, SAME_SETS = "as printed", "stagewise", "stagewise, the paper's sets"
REWARD, COST = (0.5, 0.8, 0.2), (0.1, 0.5, 0.1)
SIZES = ("smoke", "quick", "full")
AUDITED = "Algorithm 5"  # where optimism failures of our form are counted too


class CountingPolicy:
    """A policy that counts the decisions for which the estimated feasible set was empty."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.empty = policy, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def decide(self, state: Any, actions: Any, draw: Any) -> Any:
        """Return the policy's decision."""
        decision = self.policy.decide(state, actions, draw)
        self.empty += decision.reason_details == EMPTY
        return decision

    def start(self) -> Any:
        """Return the policy's initial state."""
        return self.policy.start()

    def learn(self, state: Any, decision: Any, outcome: Any) -> Any:
        """Return the policy's next state."""
        return self.policy.learn(state, decision, outcome)


@dataclass(frozen=True)
class Problem:
    """A world, its threshold, and the policies that play there, the printed form first."""

    world: Any
    threshold: float
    players: dict[str, Any]
    sizes: tuple[tuple[int, int], ...]  # rounds and runs of smoke, quick and full


def build_bonus_problem() -> Problem:
    """Return rays of which one is a multiple of the safe action, so that its reward and cost are known."""
    settings, same = build_linear_settings()
    players = {PRINTED: PrintedLCLUCB(**settings), OURS: LCLUCB(**settings), SAME_SETS: LCLUCB(**same)}
    world = LinearWorld(reward=REWARD, cost=COST, actions=RaySet(np.eye(3)), noise=0.1)
    return Problem(world, 0.5, players, ((500, 2), (4_000, 4), (100_000, 10)))


def build_linear_settings() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings for a safe action (0.2, 0, 0) with known values, and the same with the paper's sets."""
    safe = SafeAction(features=[0.2, 0.0, 0.0], reward=0.2 * REWARD[0], cost=0.2 * COST[0])
    settings: dict[str, Any] = {"safe_action": safe, "threshold": 0.5, "noise": 0.1, "delta": DELTA, "ridge": 0.1}
    return settings, {**settings, "radius": "paper", "split_delta": False, "mean_cost_bound": None}


def build_warm_up_problem() -> Problem:
    """Return a problem with a cheap, nearly optimal ray beside the best one, whose cost is exactly the threshold."""
    reward, cost, threshold, noise = np.array([0.2, 0.9, 1.0]), np.array([0.1, 0.1, 0.6]), 0.6, 0.1
    world = LinearWorld(reward=reward, cost=cost, actions=RaySet(np.eye(3)[1:]), noise=noise)
    settings: dict[str, Any] = {
        "safe_action": SafeAction(features=np.eye(3)[0]), "threshold": threshold, "noise": noise, "norm_bound": 1.5,
        "ridge": 0.1, "delta": DELTA,
    }  # fmt: skip
    players = {PRINTED: PrintedUnknownBaseline(**settings), OURS: LCLUCB(**settings, mean_cost_bound=None)}
    return Problem(world, threshold, players, ((1_000, 2), (4_000, 8), (100_000, 20)))


def build_dimension_problem() -> Problem:
    """Return ten dimensions with noise 1, where the warm-up ends before the safe action can be certified."""
    d, threshold = 10, 0.4
    reward, cost = np.full(d, 0.3), np.full(d, 0.2)
    reward[0], cost[0] = 0.2, 0.1
    world = LinearWorld(reward=reward, cost=cost, actions=RaySet(np.eye(d)[1:]), noise=1.0)
    settings: dict[str, Any] = {
        "safe_action": SafeAction(features=np.eye(d)[0]), "threshold": threshold, "noise": 1.0, "ridge": 1.0,
        "delta": DELTA,
    }  # fmt: skip
    players = {PRINTED: PrintedUnknownBaseline(**settings), OURS: LCLUCB(**settings)}
    return Problem(world, threshold, players, ((1_000, 2), (2_000, 4), (20_000, 20)))


def build_mixture_problem() -> Problem:
    """Return the same three actions without the points between them, for mixtures."""
    settings, same = build_linear_settings()
    coarse: dict[str, Any] = {"tolerance": 1e-2, "budget": 60}
    players = {
        PRINTED: PrintedOPLB(**settings, **coarse),
        OURS: OPLB(**settings),
        SAME_SETS: ExactOPLB(**same, **coarse),
    }
    world = LinearWorld(reward=REWARD, cost=COST, actions=FiniteSet(np.eye(3)), noise=0.1)
    return Problem(world, 0.5, players, ((50, 2), (200, 4), (2_000, 10)))


def build_functions_problem() -> Problem:
    """Return four arms and two classes of six functions, of which the first is the truth."""
    rng = np.random.default_rng([0, 11])
    rewards, costs = rng.uniform(size=(6, 4)).round(2), rng.uniform(size=(6, 4)).round(2)
    rewards[0], costs[0] = [0.1, 0.2, 0.4, 0.7], [0.0, 0.4, 0.5, 0.2]
    rewards[:, 0], costs[:, 0] = 0.1, 0.0
    settings: dict[str, Any] = {
        "reward_class": rewards, "cost_class": costs, "safe_action": SafeAction(arm=0, reward=0.1, cost=0.0),
        "threshold": 0.3, "delta": DELTA,
    }  # fmt: skip
    world = ArmsWorld(reward=rewards[0], cost=costs[0], outcomes="bernoulli")
    players = {PRINTED: PrintedOPNLB(**settings), OURS: OPNLB(**settings)}
    return Problem(world, 0.3, players, ((500, 2), (2_000, 4), (100_000, 10)))


def build_points_problem() -> Problem:
    """Return three safe actions without the segments to them, of which none is certified before it is played."""
    features = np.eye(3)
    reward, cost = np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.2, 0.3])
    settings: dict[str, Any] = {
        "safe_action": SafeAction(features=np.zeros(3), reward=0.0, cost=0.0), "threshold": 0.5, "noise": 0.1,
        "delta": DELTA, "ridge": 1.0, "norm_bound": 1.2,
    }  # fmt: skip
    world = LinearWorld(reward=reward, cost=cost, actions=FiniteSet(features), noise=0.1)
    players = {PRINTED: PrintedLCLUCB(**settings), OURS: OPLB(**settings, mean_cost_bound=None)}
    return Problem(world, 0.5, players, ((500, 2), (2_000, 4), (20_000, 10)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "LC-LUCB": build_bonus_problem,
    AUDITED: build_warm_up_problem,
    "Algorithm 5, d = 10": build_dimension_problem,
    "OPLB": build_mixture_problem,
    "OPNLB": build_functions_problem,
    "LC-LUCB on points": build_points_problem,
}


def build_name(problem: str, player: str) -> str:
    """Return the name of a curve."""
    return f"{make_slug(problem)}-{make_slug(player)}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    curves = []
    for name, make in PROBLEMS.items():
        problem = make()
        rounds, runs = problem.sizes[SIZES.index(size)]
        for player, policy in problem.players.items():
            cell_settings = {"policy": f"{name}, {player}", "preset": "ours", "tau": problem.threshold}
            play = build_counted_play(policy, problem.world, rounds, audit=player == PRINTED or name == AUDITED)
            curves.append(Cell(build_name(name, player), cell_settings, rounds, runs, play))
    return curves


def build_counted_play(policy: Any, world: Any, rounds: int, audit: bool) -> Play:
    """Return a function that plays a run; its manifest counts the rounds in which no action was certified."""

    def play(run: int) -> Any:
        player = CountingPolicy(policy) if isinstance(policy, PrintedLCLUCB) else policy
        settings: dict[str, Any] = {"seed": SEED, "record_points": RECORD, "progress": False, "audit": audit}
        result = simulate(player, world, rounds=rounds, runs=[run], **settings)
        result.manifest["empty"] = getattr(player, "empty", 0)
        return result

    return play
