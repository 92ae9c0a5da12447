"""Rounds by hand and rounds in the loop are made of the same kernels: Numba compiles one for each kind of array."""

from typing import Any

import numba
import numpy as np
import pytest

import stagewise as sw
from stagewise.policies.rounds import Rounds
from stagewise.simulation.compiled_run import build_inputs
from stagewise.simulation.oracle import build_oracle

TOLD: dict[str, Any] = {"safe_action": sw.SafeAction(features=np.zeros(2)), "threshold": 0.5, "noise": 0.1}
RAYS, FINITE = sw.RaySet(np.eye(2)), sw.FiniteSet(np.eye(2))
FRESH = sw.RandomRaySet(count=3, dimension=2)
PULLED: dict[str, Any] = {"arms": 2, "safe_action": sw.SafeAction(arm=0), "threshold": 0.5}


def linear(actions: Any) -> sw.LinearWorld:
    return sw.LinearWorld(reward=[0.1, 0.2], cost=[0.2, 0.1], actions=actions, noise=0.1)


CASES: dict[str, tuple[Any, Any, int]] = {
    "rays": (sw.LCLUCB(**TOLD), linear(RAYS), 2),
    "rays, some": (sw.LCLUCB(**TOLD), linear(RAYS.only([True, False])), 2),
    "fresh rays": (sw.LCLUCB(**TOLD), linear(FRESH), 1),  # the loop writes them itself, the mask it does not
    "finite": (sw.OPLB(**TOLD), linear(FINITE), 2),
    "arms": (sw.OPB(**PULLED), sw.ArmsWorld(reward=[0.1, 0.2], cost=[0.1, 0.2]), 2),
    "arms without limits": (sw.UCB(arms=2), sw.ArmsWorld(reward=[0.1, 0.2], cost=[0.1, 0.2]), 2),
}


@pytest.mark.parametrize(("policy", "world", "alike"), CASES.values(), ids=CASES)
def test_actions_are_arrays_of_one_kind(policy: Any, world: Any, alike: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    chosen = Rounds.play
    monkeypatch.setattr(Rounds, "play", lambda self, *told: (seen.append(told[1:3]), chosen(self, *told))[1])
    policy.decide(policy.start(), world.actions.draw(sw.RandomKey()), sw.RandomKey())
    inputs = build_inputs(policy, build_oracle(policy, world), False)
    by_hand, in_the_loop = seen[0], (inputs.features, inputs.eligible)
    kinds = [numba.typeof(one) == numba.typeof(other) for one, other in zip(by_hand, in_the_loop, strict=True)]
    assert sum(kinds) == alike
    assert kinds[1]
