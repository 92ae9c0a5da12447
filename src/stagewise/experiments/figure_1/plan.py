"""Figure 1 of the paper: LC-LUCB and Safe-LTS on ten rays in ten dimensions, under three thresholds."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.policy import Policy
from stagewise.policies.safe_lts import SafeLTS
from stagewise.problem.actions import Rays
from stagewise.problem.safe_action import SafeAction
from stagewise.simulation.python import one_run
from stagewise.worlds.linear import LinearWorld, best_on_rays

DIMENSION = 10
THRESHOLDS = (0.2, 0.5, 0.8)
POLICIES = ("LC-LUCB", "Safe-LTS")
SIZES = {"quick": (20_000, 4), "full": (1_000_000, 10)}


@dataclass(frozen=True)
class Cell:
    """One curve: a policy under a threshold, and one of its runs."""

    policy: str
    threshold: float
    run: int

    @property
    def name(self) -> str:
        """The name of its result file."""
        return f"{self.policy}-tau-{self.threshold:g}-run-{self.run}"


def cells(size: str) -> list[Cell]:
    """Return every run of the figure."""
    runs = SIZES[size][1]
    return [Cell(p, t, run) for t in THRESHOLDS for p in POLICIES for run in range(runs)]


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


def optimum(threshold: float) -> float:
    """Return the reward of the best feasible point."""
    here = world()
    means = here.parameters @ here.actions.features.T
    return best_on_rays(means, np.zeros(2), np.array([threshold]))


def play(cell: Cell, size: str, folder: Path) -> None:
    """Play one run and keep its every round, unless it is kept already."""
    path = folder / f"{cell.name}.npz"
    if path.exists():
        return
    run = one_run(policy(cell), world(), SIZES[size][0], 0, cell.run)
    draft = path.with_suffix(".part.npz")
    np.savez_compressed(draft, reward=run.reward.astype(np.float64), cost=run.cost[:, 0])
    draft.replace(path)


def load(folder: Path, name: str, threshold: float, size: str) -> tuple[Floats, Floats]:
    """Return the rewards and costs (runs, T) of one curve."""
    files = [np.load(folder / f"{Cell(name, threshold, run).name}.npz") for run in range(SIZES[size][1])]
    return np.array([file["reward"] for file in files]), np.array([file["cost"] for file in files])
