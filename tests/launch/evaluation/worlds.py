"""Small worlds whose truth is known, and logs drawn in them: by a fixed lottery, or by a policy that adapts."""

from typing import Any

import numpy as np

import stagewise as sw

NAMES = ("nothing", "digest", "offer")
CLICK, OPT_OUT = np.array([0.2, 0.35, 0.5]), np.array([0.02, 0.05, 0.1])
SLOPE = np.array([0.0, 0.1, -0.2])  # of the clicks, in an age scaled to [-1, 1]
SHARES = np.array([0.5, 0.3, 0.2])


def problem(**changes: Any) -> sw.Problem:
    """Return three messages with one limit."""
    told: dict[str, Any] = {
        "action_names": list(NAMES),
        "safe_name": "nothing",
        "context": ["age"],
        "reward": sw.Reward("click"),
        "limits": {"opt_out": sw.Limit(0.15, safe_bound=0.02, model="rates")},
    }
    return sw.Problem(**{**told, **changes})


def drawn(rng: np.random.Generator, rows: int, shares: Any = SHARES) -> dict[str, Any]:
    """Return a log of a lottery with fixed shares."""
    age = rng.uniform(-1.0, 1.0, rows)
    actions = rng.choice(3, size=rows, p=shares)
    frame = outcomes(rng, age, actions)
    return frame | {f"probability.{name}": np.full(rows, shares[i]) for i, name in enumerate(NAMES)}


def adapted(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Return a log of a policy that goes where clicks came, and anywhere at least one in ten times."""
    age, chances, clicks = rng.uniform(-1.0, 1.0, rows), np.full((rows, 3), 0.1), np.empty(rows)
    actions, wins, tries = np.empty(rows, dtype=int), np.ones(3), np.full(3, 2.0)
    for row in range(rows):
        chances[row, np.argmax(wins / tries)] += 0.7
        actions[row] = action = rng.choice(3, p=chances[row])
        clicks[row] = rng.random() < CLICK[action] + SLOPE[action] * age[row]
        tries[action], wins[action] = tries[action] + 1.0, wins[action] + clicks[row]
    frame = outcomes(rng, age, actions) | {"click": clicks, "at": np.arange(rows)}
    return frame | {f"probability.{name}": chances[:, i] for i, name in enumerate(NAMES)}


def outcomes(rng: np.random.Generator, age: Any, actions: Any) -> dict[str, Any]:
    """Return what came of actions."""
    mean = CLICK[actions] + SLOPE[actions] * age
    return {
        "action": np.array(NAMES, dtype=object)[actions],
        "age": age,
        "click": (rng.random(age.size) < mean) * 1.0,
        "opt_out": (rng.random(age.size) < OPT_OUT[actions]) * 1.0,
    }


FRAIL, FRAIL_COST = 0.1, 1.0  # the share of users who opt out at every offer, and nobody else does
FRAIL_TRUTH = FRAIL * FRAIL_COST


def frail(rng: np.random.Generator, rows: int, least: float, names: Any = NAMES) -> dict[str, Any]:
    """Return a log with `propensity` only, in which the frail are offered something with probability `least`."""
    fragile, others = rng.random(rows) < FRAIL, len(names) - 1
    offer = np.where(fragile, least, 0.5)
    chances = np.column_stack([*((1.0 - offer) / others for _ in range(others)), offer])
    actions = (rng.random(rows)[:, None] > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    done = actions == others
    return {
        "at": np.arange(rows),
        "action": np.array(names, dtype=object)[actions],
        "age": rng.uniform(-1.0, 1.0, rows),
        "propensity": chances[np.arange(rows), actions],
        "click": (rng.random(rows) < 0.1) * 1.0,
        "opt_out": (done & fragile) * FRAIL_COST,
    }
