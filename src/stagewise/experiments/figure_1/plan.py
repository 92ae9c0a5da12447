"""Figure 1 of the paper: LC-LUCB and Safe-LTS on ten rays in ten dimensions, under three thresholds."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.policy import Policy
from stagewise.policies.safe_lts import SafeLTS
from stagewise.problem.actions import Rays
from stagewise.problem.safe_action import SafeAction
from stagewise.reports.result import Result
from stagewise.simulation.simulate import simulate
from stagewise.worlds.linear import LinearWorld

DIMENSION = 10
THRESHOLDS = (0.2, 0.5, 0.8)
POLICIES = ("LC-LUCB", "Safe-LTS")
SIZES = {"quick": (100_000, 4), "full": (1_000_000, 10)}


@dataclass(frozen=True)
class Cell:
    """One curve: a policy under a threshold."""

    policy: str
    threshold: float

    @property
    def name(self) -> str:
        """The name of its result folder."""
        return f"{self.policy}-tau-{self.threshold:g}"


def cells() -> list[Cell]:
    """Return every curve of the figure."""
    return [Cell(policy, threshold) for threshold in THRESHOLDS for policy in POLICIES]


def world() -> LinearWorld:
    """Return θ* = (0, 1, …, d−1)/‖·‖, μ* its reverse, and the ten shifts of μ*, which make the paper's numbers."""
    theta = np.arange(DIMENSION) / np.linalg.norm(np.arange(DIMENSION))
    targets = np.array([np.roll(theta[::-1], shift) for shift in range(DIMENSION)])
    return LinearWorld(theta=theta, mu=theta[::-1], actions=Rays(targets), noise=1.0)


def policy(cell: Cell) -> Policy:
    """Return the policy as the paper's text has it; it states neither noise nor delta, and we take 1 and 0.01."""
    safe = SafeAction(features=np.zeros(DIMENSION), reward=0.0, cost=0.0)
    kind = LCLUCB if cell.policy == "LC-LUCB" else SafeLTS
    return kind(safe_action=safe, threshold=cell.threshold, noise=1.0, delta=0.01, radius="paper", cost_bound=None)


def play(cell: Cell, size: str, run: int, folder: Path) -> None:
    """Play one run and keep its result, unless it is kept already."""
    place = folder / cell.name / f"run-{run}"
    if not (place / "manifest.json").exists():
        simulate(policy(cell), world(), rounds=SIZES[size][0], runs=[run], seed=0, record=400).save(place)


def load(folder: Path, cell: Cell, size: str) -> list[Result]:
    """Return the results of one curve, a run each."""
    return [Result.load(folder / cell.name / f"run-{run}") for run in range(SIZES[size][1])]
