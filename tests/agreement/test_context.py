"""Users drawn afresh: by hand, in Python and compiled, every run is the same to the bit."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import same

import stagewise as sw

pytestmark = pytest.mark.compiled

RNG = np.random.default_rng(9)
K, D, M = 3, 3, 2
THETA = RNG.uniform(0.0, 0.15, size=(1 + M, K, D))
THETA[1:, 0] *= 0.2
SEGMENTS = {"segments": [0.3, 0.7], "offsets": RNG.uniform(0.0, 0.1, size=(1 + M, K, 2))}
SAFE = sw.SafeAction(cost=[0.3, 0.3])
ROUNDS = 60


def users(features: Any, segmented: bool, **settings: Any) -> sw.ContextWorld:
    told: dict[str, Any] = SEGMENTS if segmented else {}
    return sw.ContextWorld(reward=THETA[0], cost=THETA[1:], features=features, **told, **settings)


@pytest.mark.parametrize("features", ["crossed", "plain"])
@pytest.mark.parametrize("segmented", [True, False])
def test_users_are_the_same_by_hand_and_compiled(features: str, segmented: bool) -> None:
    world = users(features, segmented, outcomes="gaussian")
    policies: list[Any] = [sw.AlwaysSafe(safe_action=SAFE, threshold=[0.35, 0.35])]
    if features == "crossed":
        policies.append(sw.LinUCB(noise=0.5, norm_bound=1.0, threshold=[0.35, 0.35]))
    for policy in policies:
        plan: dict[str, Any] = {"rounds": ROUNDS, "runs": [3], "seed": 11, "audit": True}
        runs = [sw.simulate(policy, world, **plan, backend=backend) for backend in ("cpu", "python")]
        assert same(*runs), policy
