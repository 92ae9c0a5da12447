"""Batch decisions of a problem's policy: for each user bitwise equal to a single decision."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stagewise.engine.batch import build_batch_decider
from stagewise.engine.compile import Flags, get_batch_rows
from stagewise.engine.layout import SAFE_INDEX
from stagewise.engine.limits import CONTRADICTED, SAFE_ACTION_DRAWN
from stagewise.policies.arrays import with_sizes
from stagewise.policies.policy import State
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.policies.settings import CAUSES
from stagewise.problem.context import Context
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails


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


def choose_batch(
    policy: ProblemPolicy, state: State, contexts: Sequence[Context], draws: Sequence[RandomKey]
) -> list[BatchDecision | None]:
    """Decide for many users; None where the data contradict a declared value."""
    decisions = list[BatchDecision | None]([None] * len(contexts))
    masks = [context.get_eligible(policy.actions) for context in contexts]
    for mask in {mask.tobytes(): mask for mask in masks}.values():
        users = [i for i, one in enumerate(masks) if one.tobytes() == mask.tobytes()]
        made = decide_eligible(policy, state, [contexts[i] for i in users], mask, [draws[i] for i in users])
        for i, decision in zip(users, made, strict=True):
            decisions[i] = decision
    return decisions


def decide_eligible(
    policy: ProblemPolicy, state: State, contexts: Sequence[Context], eligible: Flags, draws: Sequence[RandomKey]
) -> list[BatchDecision | None]:
    """Decide for users with the same eligible actions."""
    count, actions, m = len(draws), policy.actions, policy.thresholds.values.size
    numbers = np.array([context.features for context in contexts]).reshape(count, policy.context)
    segments = np.array([context.segments for context in contexts]).reshape(count, policy.segments)
    needs = policy.get_resources(policy.round_spec, policy.width, actions, policy.width)
    codes, bounds, odds = np.empty(count, dtype=np.int64), np.empty((count, 1 + m)), np.empty((count, actions + 1))
    estimates, keys, done = np.empty((count, 1 + m)), np.array(draws, dtype=np.int64), 0
    decide_users = build_batch_decider(with_sizes(policy.round_spec, *policy.sizes))
    while done < count:
        rows = slice(done, min(done + get_batch_rows(decide_users), count))
        decide_users(
            numbers[rows], segments[rows], keys[rows], policy._template.copy(), eligible, policy.layout,
            policy.settings, state.memory, codes[rows], bounds[rows], estimates[rows], odds[rows],
            np.empty(needs.answer), np.empty(needs.scratch),
        )  # fmt: skip
        done = rows.stop
    low, length = policy.reward_span
    to_user_units = policy.display_thresholds.to_user_units
    optimistic_reward, means = (low + length * bounds[:, 0]).tolist(), (low + length * estimates[:, 0]).tolist()
    pessimistic_cost, costs = to_user_units(bounds[:, 1:]).tolist(), to_user_units(estimates[:, 1:]).tolist()
    safe_index, chances = policy.layout.item(SAFE_INDEX), odds[:, :-1].tolist()
    return [
        None if code <= -CONTRADICTED else BatchDecision(
            code if code >= 0 else safe_index, chances[i], optimistic_reward[i], pessimistic_cost[i],
            None if code >= 0 or code == -SAFE_ACTION_DRAWN else CAUSES.get(-code), means[i], costs[i],
        )
        for i, code in enumerate(codes.tolist())
    ]  # fmt: skip
