"""Batch decisions of a problem's policy: for each user bitwise equal to a single decision."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.batch import OUT_OF_RANGE, build_batch_decider
from stagewise.engine.compile import Flags, Ints, get_batch_rows
from stagewise.engine.layout import SAFE_INDEX
from stagewise.engine.limits import CONTRADICTED, SAFE_ACTION_DRAWN
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.policies.settings import CAUSES
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails

NUMBER_TYPES = {float, int}  # types of context numbers that need no further check


class BatchDecision(NamedTuple):
    """The decision for one user."""

    index: int  # type: ignore[assignment]  # (a tuple has a method of that name)
    odds: list[float]
    """Of all actions, in order."""
    optimistic_reward: float
    pessimistic_cost: list[float]
    cause: ReasonDetails | None
    estimated_reward: float
    estimated_cost: list[float]


def get_plain_numbers(problem: Problem, context: Mapping[str, Any]) -> list[Any] | None:
    """Return the context numbers of a user; None where the context needs the single-user path."""
    if len(context) != len(problem.context_names) or not all(map(context.__contains__, problem.context_names)):
        return None
    values = [context[name] for name in problem.context]
    return values if NUMBER_TYPES.issuperset(map(type, values)) else None


def choose_batch(
    policy: ProblemPolicy,
    state: State,
    numbers: Sequence[Any],
    segments: Sequence[Any],
    eligible: Flags,
    draws: Sequence[RandomKey] | Ints,
) -> list[BatchDecision | None]:
    """Decide for users with these numbers (n, c) and segments (n, g); None: use the single-user path.

    That is where a number is outside its range, or where the data contradict a declared value.
    """
    count, actions, m = len(draws), policy.actions, policy.thresholds.values.size
    values = np.array(numbers, dtype=np.float64).reshape(count, policy.context)
    keys_of_users = np.array(segments, dtype=np.float64).reshape(count, policy.segments)
    needs = policy.get_resources(policy.round_spec, policy.width, actions, policy.width)
    codes, bounds, odds = np.empty(count, dtype=np.int64), np.empty((count, 1 + m)), np.empty((count, actions + 1))
    estimates = np.empty((count, 1 + m))
    decide_users, keys, done = (
        build_batch_decider(policy.round_spec),
        np.array(draws, dtype=np.int64),
        0,
    )
    while done < count:
        rows = slice(done, min(done + get_batch_rows(decide_users), count))
        decide_users(
            values[rows], policy.problem.ends, keys_of_users[rows], keys[rows], policy._template.copy(), eligible,
            policy.layout, policy.settings, state.memory, codes[rows], bounds[rows], estimates[rows], odds[rows],
            np.empty(needs.answer), np.empty(policy.context), np.empty(needs.scratch),
        )  # fmt: skip
        done = rows.stop
    low, length = policy.reward_span
    optimistic_reward, pessimistic_cost = (
        (low + length * bounds[:, 0]).tolist(),
        policy.display_thresholds.to_user_units(bounds[:, 1:]).tolist(),
    )
    means, costs = (
        (low + length * estimates[:, 0]).tolist(),
        policy.display_thresholds.to_user_units(estimates[:, 1:]).tolist(),
    )
    safe_index, chances = policy.layout.item(SAFE_INDEX), odds[:, :-1].tolist()
    return [
        None if code <= -CONTRADICTED or code == OUT_OF_RANGE else BatchDecision(
            code if code >= 0 else safe_index, chances[i], optimistic_reward[i], pessimistic_cost[i],
            None if code >= 0 or code == -SAFE_ACTION_DRAWN else CAUSES.get(-code), means[i], costs[i],
        )
        for i, code in enumerate(codes.tolist())
    ]  # fmt: skip
