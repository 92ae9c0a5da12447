"""Each algorithm of the paper as printed beside the form that stagewise plays, in problems that tell them apart."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.oplb import OPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.problem.actions import Finite, Rays
from stagewise.problem.safe_action import SafeAction
from stagewise.simulation.simulate import simulate
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.linear import LinearWorld
from stagewise_reproduction.cell import RECORD, SEED, Cell, Play
from stagewise_reproduction.exact.oplb import ExactOPLB
from stagewise_reproduction.instances import DELTA, slug
from stagewise_reproduction.printed.lclucb import EMPTY, PrintedLCLUCB
from stagewise_reproduction.printed.oplb import PrintedOPLB
from stagewise_reproduction.printed.opnlb import PrintedOPNLB
from stagewise_reproduction.printed.unknown_baseline import PrintedUnknownBaseline

PRINTED, OURS, SAME = "as printed", "stagewise", "stagewise, the paper's sets"
REWARD, COST = (0.5, 0.8, 0.2), (0.1, 0.5, 0.1)
SIZES = ("smoke", "quick", "full")
AUDITED = "Algorithm 5"  # where optimism is counted of our form too


class Counted:
    """A policy, and how many of its decisions found the estimated feasible set empty."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.empty = policy, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def decide(self, state: Any, actions: Any, draw: Any) -> Any:
        """Return the policy's decision."""
        decision = self.policy.decide(state, actions, draw)
        self.empty += decision.cause == EMPTY
        return decision

    def start(self) -> Any:
        """Return what the policy knows at first."""
        return self.policy.start()

    def learn(self, state: Any, decision: Any, outcome: Any) -> Any:
        """Return what the policy knows next."""
        return self.policy.learn(state, decision, outcome)


@dataclass(frozen=True)
class Problem:
    """A world, its threshold, and who plays there, the printed form first."""

    world: Any
    threshold: float
    players: dict[str, Any]
    sizes: tuple[tuple[int, int], ...]  # rounds and runs of smoke, quick and full


def bonus() -> Problem:
    """Return rays of which one is a multiple of the safe action, so that its reward and cost are known already."""
    told, same = linear_settings()
    players = {PRINTED: PrintedLCLUCB(**told), OURS: LCLUCB(**told), SAME: LCLUCB(**same)}
    world = LinearWorld(reward=REWARD, cost=COST, actions=Rays(np.eye(3)), noise=0.1)
    return Problem(world, 0.5, players, ((500, 2), (4_000, 4), (100_000, 10)))


def linear_settings() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings for a safe action (0.2, 0, 0) with known values, and the same with the paper's sets."""
    safe = SafeAction(features=[0.2, 0.0, 0.0], reward=0.2 * REWARD[0], cost=0.2 * COST[0])
    told: dict[str, Any] = {"safe_action": safe, "threshold": 0.5, "noise": 0.1, "delta": DELTA, "ridge": 0.1}
    return told, {**told, "radius": "paper", "share_delta": False, "cost_bound": None}


def recipe() -> Problem:
    """Return a ray that is nearly as good as the best and cheap, beside the best, which costs all that is allowed."""
    reward, cost, threshold, noise = np.array([0.2, 0.9, 1.0]), np.array([0.1, 0.1, 0.6]), 0.6, 0.1
    world = LinearWorld(reward=reward, cost=cost, actions=Rays(np.eye(3)[1:]), noise=noise)
    told: dict[str, Any] = {
        "safe_action": SafeAction(features=np.eye(3)[0]), "threshold": threshold, "noise": noise, "norm_bound": 1.5,
        "ridge": 0.1, "delta": DELTA,
    }  # fmt: skip
    players = {PRINTED: PrintedUnknownBaseline(**told), OURS: LCLUCB(**told, cost_bound=None)}
    return Problem(world, threshold, players, ((1_000, 2), (4_000, 8), (100_000, 20)))


def dimension() -> Problem:
    """Return ten dimensions with noise 1, where the warm-up is over before the safe action can be certified."""
    d, threshold = 10, 0.4
    reward, cost = np.full(d, 0.3), np.full(d, 0.2)
    reward[0], cost[0] = 0.2, 0.1
    world = LinearWorld(reward=reward, cost=cost, actions=Rays(np.eye(d)[1:]), noise=1.0)
    told: dict[str, Any] = {
        "safe_action": SafeAction(features=np.eye(d)[0]), "threshold": threshold, "noise": 1.0, "ridge": 1.0,
        "delta": DELTA,
    }  # fmt: skip
    players = {PRINTED: PrintedUnknownBaseline(**told), OURS: LCLUCB(**told)}
    return Problem(world, threshold, players, ((1_000, 2), (2_000, 4), (20_000, 20)))


def mixtures() -> Problem:
    """Return the same three actions without the points between, mixed."""
    told, same = linear_settings()
    coarse: dict[str, Any] = {"tolerance": 1e-2, "budget": 60}
    players = {PRINTED: PrintedOPLB(**told, **coarse), OURS: OPLB(**told), SAME: ExactOPLB(**same, **coarse)}
    world = LinearWorld(reward=REWARD, cost=COST, actions=Finite(np.eye(3)), noise=0.1)
    return Problem(world, 0.5, players, ((50, 2), (200, 4), (2_000, 10)))


def functions() -> Problem:
    """Return four arms and two classes of six functions, of which the first is the truth."""
    rng = np.random.default_rng([0, 11])
    rewards, costs = rng.uniform(size=(6, 4)).round(2), rng.uniform(size=(6, 4)).round(2)
    rewards[0], costs[0] = [0.1, 0.2, 0.4, 0.7], [0.0, 0.4, 0.5, 0.2]
    rewards[:, 0], costs[:, 0] = 0.1, 0.0
    told: dict[str, Any] = {
        "reward_class": rewards, "cost_class": costs, "safe_action": SafeAction(arm=0, reward=0.1, cost=0.0),
        "threshold": 0.3, "delta": DELTA,
    }  # fmt: skip
    world = ArmsWorld(reward=rewards[0], cost=costs[0], outcomes="bernoulli")
    players = {PRINTED: PrintedOPNLB(**told), OURS: OPNLB(**told)}
    return Problem(world, 0.3, players, ((500, 2), (2_000, 4), (100_000, 10)))


def points() -> Problem:
    """Return three safe actions without the segments to them, of which none is certified before it is played."""
    features = np.eye(3)
    reward, cost = np.array([0.3, 0.6, 0.9]), np.array([0.1, 0.2, 0.3])
    told: dict[str, Any] = {
        "safe_action": SafeAction(features=np.zeros(3), reward=0.0, cost=0.0), "threshold": 0.5, "noise": 0.1,
        "delta": DELTA, "ridge": 1.0, "norm_bound": 1.2,
    }  # fmt: skip
    world = LinearWorld(reward=reward, cost=cost, actions=Finite(features), noise=0.1)
    players = {PRINTED: PrintedLCLUCB(**told), OURS: OPLB(**told, cost_bound=None)}
    return Problem(world, 0.5, players, ((500, 2), (2_000, 4), (20_000, 10)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "LC-LUCB": bonus,
    AUDITED: recipe,
    "Algorithm 5, d = 10": dimension,
    "OPLB": mixtures,
    "OPNLB": functions,
    "LC-LUCB on points": points,
}


def name_of(problem: str, player: str) -> str:
    """Return the name of a curve."""
    return f"{slug(problem)}-{slug(player)}"


def cells(_: str, size: str) -> list[Cell]:
    """Return every curve."""
    found = []
    for name, make in PROBLEMS.items():
        problem = make()
        rounds, runs = problem.sizes[SIZES.index(size)]
        for player, policy in problem.players.items():
            about = {"policy": f"{name}, {player}", "preset": "ours", "tau": problem.threshold}
            play = counted(policy, problem.world, rounds, audit=player == PRINTED or name == AUDITED)
            found.append(Cell(name_of(name, player), about, rounds, runs, play))
    return found


def counted(policy: Any, world: Any, rounds: int, audit: bool) -> Play:
    """Return how a run is played; its manifest says how often nothing was certified."""

    def play(run: int) -> Any:
        player = Counted(policy) if isinstance(policy, PrintedLCLUCB) else policy
        told: dict[str, Any] = {"seed": SEED, "record": RECORD, "progress": False, "audit": audit}
        result = simulate(player, world, rounds=rounds, runs=[run], **told)
        result.manifest["empty"] = getattr(player, "empty", 0)
        return result

    return play
