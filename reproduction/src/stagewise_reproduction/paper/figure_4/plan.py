"""OPB on the paper's four arms: Figure 4 (τ = .8, .2) and its figure in the appendix (τ = .5, .6)."""

from stagewise.policies.arms import OPB
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.finite_worlds import ArmsWorld, Outcomes
from stagewise_reproduction.cell import Cell, build_repeated_play
from stagewise_reproduction.instances import DELTA, OURS, SIZES
from stagewise_reproduction.published import build_published_play

REWARDS, COSTS = [0.1, 0.2, 0.4, 0.7], [0.0, 0.4, 0.5, 0.2]


def build_name(preset: str, threshold: float) -> str:
    """Return the name of a curve."""
    return f"{preset}-opb-tau-{threshold:g}"


def cells(thresholds: tuple[float, ...], preset: str, size: str) -> list[Cell]:
    """Return every curve."""
    return [build_cell(preset, size, threshold) for threshold in thresholds]


def build_cell(preset: str, size: str, threshold: float) -> Cell:
    """Return one curve: Bernoulli arms by the text, N(mean, .1) cut to [0, 1] by the authors' code."""
    rounds, runs = SIZES[size]
    outcomes: Outcomes = "clipped-gaussian" if preset == "authors" else "bernoulli"
    world = ArmsWorld(reward=REWARDS, cost=COSTS, outcomes=outcomes)
    settings = OURS if preset == "ours" else {"delta": DELTA, "interval": "paper", "horizon": rounds}
    policy = OPB(arms=4, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=threshold, **settings)
    theirs = build_published_play("OPB", lambda _: (policy, world), rounds)
    play = theirs if preset == "authors" else build_repeated_play(policy, world, rounds)
    about = {"policy": "OPB", "preset": preset, "K": 4, "tau": threshold, "outcomes": outcomes}
    about |= {} if preset == "authors" else {"interval": policy.interval}
    return Cell(build_name(preset, threshold), about, rounds, runs, play)
