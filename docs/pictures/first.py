"""Draw the README's picture: `python docs/pictures/first.py` plays its example and writes first.png and first.svg."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import stagewise as sw

ROUNDS, THRESHOLD = 20_000, 0.2
COLOURS = {"LCLUCB": "#0072B2", "ROFUL": "#009E73", "LinUCB (no limit)": "#D55E00"}


def means(policy: sw.Policy) -> np.ndarray:
    """Return the true expected reward and cost (T, 2) of every round of the README's example."""
    secret = np.arange(10) / np.linalg.norm(np.arange(10))
    rays = sw.Rays([np.roll(secret[::-1], shift) for shift in range(10)])
    rng, agent = np.random.default_rng(0), sw.Agent(policy, seed=7)
    seen = np.empty((ROUNDS, 2))
    for t in range(ROUNDS):
        decision = agent.decide(rays)
        seen[t] = secret @ decision.action, secret[::-1] @ decision.action
        reward, cost = seen[t] + 0.1 * rng.normal(size=2)
        agent.learn(decision, reward=float(reward), cost=float(cost))
    return seen


def main() -> None:
    """Play, then draw cost on the left and reward on the right."""
    safe = sw.SafeAction(features=np.zeros(10), reward=0.0, cost=0.0)
    runs = {
        "LinUCB (no limit)": means(sw.LinUCB(noise=0.1, delta=0.01)),
        "LCLUCB": means(sw.LCLUCB(safe_action=safe, threshold=THRESHOLD, noise=0.1, delta=0.01)),
        "ROFUL": means(sw.ROFUL(safe_action=safe, threshold=THRESHOLD, noise=0.1, delta=0.01)),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    rounds = np.arange(100, ROUNDS + 1, 100)
    for name, seen in runs.items():
        left.plot(rounds, seen[:, 1].reshape(-1, 100).max(axis=1), color=COLOURS[name], label=name, linewidth=1.4)
        right.plot(rounds, seen[:, 0].reshape(-1, 100).mean(axis=1), color=COLOURS[name], linewidth=1.4)
    left.axhline(THRESHOLD, color="black", linestyle="--", linewidth=1.2, label="threshold")
    right.axhline(THRESHOLD * 49 / 32, color="black", linestyle=":", linewidth=1.2, label="best under the limit")
    left.set(title="expected cost: largest of each 100 rounds", xlabel="round", ylim=(0, 1.35))
    right.set(title="expected reward: mean of each 100 rounds", xlabel="round", ylim=(0, 1.35))
    left.legend(frameon=False, loc="upper right", ncols=2)
    right.legend(frameon=False, loc="upper right")
    folder = Path(__file__).parent
    figure.savefig(folder / "first.png", dpi=110)
    figure.savefig(folder / "first.svg")


if __name__ == "__main__":
    main()
