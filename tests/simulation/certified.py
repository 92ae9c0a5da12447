"""Small problems that are certified in a moment, for the tests of certificates."""

from typing import Any

import numpy as np

import stagewise as sw

TARGETS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
SAFE = sw.SafeAction(features=[0.0, 0.0])
FIXED = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=0.5)
POLICY = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.5)
ROUNDS = 20


def certified(policy: Any = POLICY, world: Any = FIXED, **settings: Any) -> sw.SimulationCertificate:
    return sw.certify(policy, world, **({"rounds": ROUNDS, "runs": 2000, "progress": False} | settings))


def without_times(certificate: sw.SimulationCertificate) -> dict[str, Any]:
    return {name: value for name, value in certificate.content.items() if name != "made"}


def drawn(run: int) -> tuple[Any, Any]:
    """Return a policy and a world of its own for every run."""
    rng = np.random.default_rng(run)
    theta, mu = (row / np.linalg.norm(row) for row in rng.normal(size=(2, 2)))
    return POLICY, sw.LinearWorld(reward=theta, cost=mu, actions=sw.RaySet(TARGETS), noise=0.5)


FAMILIES = {
    "fixed": (POLICY, FIXED),
    "function": (None, drawn),
    "function that cannot travel": (POLICY, lambda run: drawn(run)[1]),
    "sphere": (POLICY, sw.LinearWorldFamily(FIXED, seed=4)),
    "arms": (
        sw.OPB(arms=3, safe_action=sw.SafeAction(arm=1, reward=0.3, cost=0.1), threshold=0.4, interval="kl"),
        sw.ArmsWorldFamily(sw.ArmsWorld(reward=[0.5, 0.3, 0.9], cost=[0.5, 0.1, 0.8]), safe=1, seed=4, spread=0.5),
    ),
}
