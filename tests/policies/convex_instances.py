"""Convex sets around a safe action, policies that have learned a little, and brute force over dense rays."""

from typing import Any

import numpy as np
from tests.policies import linear_instances
from tests.policies.linear_instances import Case, Instance

from stagewise import LCLUCB, ROFUL, Agent, BallSet, BoxSet, EllipsoidSet, PolytopeSet, RaySet
from stagewise.engine.compile import Floats
from stagewise.policies.policy import PolicyState

KINDS = [LCLUCB, ROFUL]
SHAPES = ["ball", "ellipsoid", "box", "polytope"]
CASES = {**linear_instances.KNOWN, **linear_instances.UNKNOWN}


def set_around(shape: str, safe: Floats, seed: int) -> Any:
    """Return a set of norm at most 1 with the safe action in it, mostly off its middle."""
    rng = np.random.default_rng([seed, safe.size])
    d, room = safe.size, 1.0 - float(np.linalg.norm(safe))
    shift = rng.normal(size=d)
    shift *= 0.4 * room / np.linalg.norm(shift)
    if shape == "ball":
        return BallSet(0.6 * room + 1e-6, safe + shift)
    if shape == "ellipsoid":
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        axes = turn @ np.diag(rng.uniform(0.45 * room, 0.6 * room, size=d) ** 2) @ turn.T
        return EllipsoidSet(0.5 * (axes + axes.T) + 1e-9 * np.eye(d), safe + shift)
    side = room / np.sqrt(d)
    if shape == "box":
        return BoxSet(safe - rng.uniform(0.0, side, size=d) - 1e-6, safe + rng.uniform(0.1 * side, side, size=d) + 1e-6)
    corners = rng.normal(size=(2 * d, d))
    return PolytopeSet(np.vstack([safe + 0.9 * room * corners / np.linalg.norm(corners, axis=1, keepdims=True), safe]))


def learned(kind: Any, instance: Instance, **settings: Any) -> tuple[Any, PolicyState]:
    """Return a policy and its memory after the instance's data."""
    policy = kind(**{**instance.settings, **settings})
    agent = Agent(policy)
    agent.learn_log(instance.actions, instance.observed[0], instance.observed[1:].T)
    return policy, agent.state


def instance_of(name: str, seed: int) -> Instance:
    random = np.random.default_rng([seed, *map(ord, name)])
    return linear_instances.random_instance(random, CASES[name])


def dense_rays(actions: Any, safe: Floats, count: int, seed: int = 0) -> RaySet:
    """Return rays to many points of the boundary: all around in two dimensions, at random in more, and to supports."""
    d, rng = safe.size, np.random.default_rng(seed)
    if d == 2:
        angles = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
        around = np.column_stack([np.cos(angles), np.sin(angles)])
    else:
        around = rng.normal(size=(count, d))
    points = np.vstack([actions.find_exits(actions.middle, around), actions.support(around)])
    ends = np.vstack([actions.find_exits(safe, around), actions.find_exits(safe, points - safe)])
    return RaySet(ends)


__all__ = ["CASES", "KINDS", "SHAPES", "Case", "dense_rays", "instance_of", "learned", "set_around"]
